#!/usr/bin/env python3
"""slow_rank.py [--build DIR] [--rounds N]: how fast the balancer answers a rank at half its speed.

Two ranks of one thread each; from one step on, rank 1 is stopped for half of the time (SIGSTOP and SIGCONT, 10 ms
each). In each round `balance: auto` is compared with fixed splits (`weights`) under the same slow-down, one run after
the other. The steady time is the median of the steps from the tenth after the slow-down on. Fixed splits need ranks
that have names: each is put on a pretended host of its own, in all runs alike.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SLOW_FROM, SETTLED, STEPS, SHARDS = 6, 10, 32, 16
JOB = ["model.resnet.depth=8", f"steps={STEPS}", "batch_size=256", f"shards={SHARDS}", "data.train.digits.count=2048",
       "evaluate=never", "checkpoint=never", "threads=1"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
AS_HOST = 'LOCKSTEP_HOST_ID=h$OMPI_COMM_WORLD_RANK exec "$0" "$@"'


def pid_of_rank(rank, launcher):
    """The process of a rank below this launcher."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue
        if name == "lockstep" and f"OMPI_COMM_WORLD_RANK={rank}".encode() in environment \
                and f"BENCH_ID={launcher}".encode() in environment:
            return int(folder.name)
    raise SystemExit("no such rank")


def halve(pid, stop, period=0.01):
    try:
        while not stop.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(period)
            os.kill(pid, signal.SIGCONT)
            time.sleep(period)
    except ProcessLookupError:
        pass


def run(program, balance, slowed):
    """Seconds of each step, the moves and the hash."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    stop, seconds, moves, last, digest = threading.Event(), [], [], 0.0, ""
    slower = None
    with tempfile.TemporaryDirectory() as directory:
        command = [*MPIRUN, "sh", "-c", AS_HOST, str(program), "train", *JOB, f"balance={balance}",
                   f"run_directory={directory}", "--log", "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "BENCH_ID": mark}) as child:
            for line in child.stdout:
                event = json.loads(line)
                if event["event"] == "balance":
                    moves.append((event["step"], event["shares_by_rank"], event["reason"]))
                if event["event"] == "end":
                    digest = event["parameters_sha256"]
                if event["event"] != "step":
                    continue
                seconds.append(event["seconds"] - last)
                last = event["seconds"]
                if slowed and event["step"] == SLOW_FROM:
                    slower = threading.Thread(target=halve, args=(pid_of_rank(1, mark), stop))
                    slower.start()
                if event["step"] == STEPS - 1:
                    stop.set()
    stop.set()
    if slower:
        slower.join()
    return seconds, moves, digest


def steady(seconds):
    return statistics.median(seconds[SLOW_FROM + SETTLED:STEPS - 1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build" / "release", type=Path)
    parser.add_argument("--rounds", default=3, type=int)
    arguments = parser.parse_args()
    program = arguments.build / "bin" / "lockstep"
    quiet_seconds, _, quiet_hash = run(program, "auto", False)
    print(f"undisturbed: {statistics.median(quiet_seconds):.3f} s a step, {quiet_hash[:16]}")
    ratios = []
    for number in range(arguments.rounds):
        seconds, moves, digest = run(program, "auto", True)
        if digest != quiet_hash:
            raise SystemExit(f"the hash differs: {digest}, expected {quiet_hash}")
        fixed = {}
        for fast in range(SHARDS // 2, SHARDS - SHARDS // 4 + 1):
            others, _, digest = run(program, f"{{weights: {{h0: {fast}, h1: {SHARDS - fast}}}}}", True)
            if digest != quiet_hash:
                raise SystemExit(f"the hash differs: {digest}, expected {quiet_hash}")
            fixed[fast] = steady(others)
        best = min(fixed, key=fixed.get)
        ratios.append(fixed[best] / steady(seconds))
        print(f"round {number + 1}: auto {steady(seconds):.3f} s a step; equal {fixed[SHARDS // 2]:.3f}; best fixed "
              f"{best}:{SHARDS - best} {fixed[best]:.3f}; throughput {100 * ratios[-1]:.1f} % of the best fixed split")
        for step, shares, reason in moves:
            print(f"    after step {step} ({step - SLOW_FROM:+d}): {shares} {reason}")
    print(f"median: {100 * statistics.median(ratios):.1f} % of the best fixed split")


if __name__ == "__main__":
    main()
