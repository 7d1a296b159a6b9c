#!/usr/bin/env python3
"""slow_rank.py [--build DIR] [--rounds N]: how fast the balancer reacts to a rank at half its speed.

Two ranks of one thread each; from one step on, rank 1 is stopped half of the time (SIGSTOP and SIGCONT, 10 ms each). In
each round `balance: auto` is compared with fixed splits (`weights`) under the same slow-down, one run after the other.
The steady time of a run is the median of its steps from the tenth after the slow-down on; the best fixed split is the
one with the smallest median over the rounds. Fixed splits need ranks with names: in all runs, each rank is put on its
own pretended host.
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
SLOW_FROM, SETTLED, STEPS, MICRO_BATCHES = 6, 10, 32, 16
JOB = ["model.resnet.depth=20", "batch_size=256", f"micro_batches={MICRO_BATCHES}", "data.train.digits.count=2048",
       "evaluate=never", "checkpoint=never", "threads=1"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
AS_HOST = 'LOCKSTEP_HOST_ID=h$OMPI_COMM_WORLD_RANK exec "$0" "$@"'


def pid_of_rank(rank, launcher):
    """The process id of a rank started by this launcher."""
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
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # this thread: on time under load
    except PermissionError:
        print("no right to run before the ranks: their slow-down will vary")
    try:
        while not stop.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(period)
            os.kill(pid, signal.SIGCONT)
            time.sleep(period)
    except ProcessLookupError:
        pass


def run(program, words, slow_from, steps):
    """The seconds of each step, the moves and the hash of a job; rank 1 is slowed after step `slow_from` (0: never)."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    stop, seconds, moves, last, digest = threading.Event(), [], [], 0.0, ""
    slower = None
    with tempfile.TemporaryDirectory() as directory:
        command = [*MPIRUN, "sh", "-c", AS_HOST, str(program), "train", *words, f"steps={steps}",
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
                if event["step"] == slow_from:
                    slower = threading.Thread(target=halve, args=(pid_of_rank(1, mark), stop))
                    slower.start()
                if event["step"] == steps - 1:
                    stop.set()
    stop.set()
    if slower:
        slower.join()
    return seconds, moves, digest


def steady(seconds):
    return statistics.median(seconds[SLOW_FROM + SETTLED:STEPS - 1])


def checked_run(program, balance, quiet_hash):
    """A slowed run: seconds of each step, and the moves."""
    seconds, moves, digest = run(program, [*JOB, f"balance={balance}"], SLOW_FROM, STEPS)
    if digest != quiet_hash:
        raise SystemExit(f"the hash differs: {digest or 'no end'}, expected {quiet_hash}")
    return seconds, moves


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build" / "release", type=Path)
    parser.add_argument("--rounds", default=3, type=int)
    arguments = parser.parse_args()
    program = arguments.build / "bin" / "lockstep"
    quiet_seconds, _, quiet_hash = run(program, [*JOB, "balance=auto"], 0, STEPS)
    if not quiet_hash:
        raise SystemExit("the undisturbed run did not come to its end")
    print(f"undisturbed: {statistics.median(quiet_seconds):.3f} s a step, {quiet_hash[:16]}")
    auto, fixed = [], {fast: [] for fast in range(MICRO_BATCHES // 2, MICRO_BATCHES - MICRO_BATCHES // 4 + 1)}
    for number in range(arguments.rounds):
        seconds, moves = checked_run(program, "auto", quiet_hash)
        auto.append(steady(seconds))
        for fast, found in fixed.items():
            found.append(steady(checked_run(program, f"{{weights: {{h0: {fast}, h1: {MICRO_BATCHES - fast}}}}}", quiet_hash)[0]))
        print(f"round {number + 1}: auto {auto[-1]:.3f} s a step; "
              + ", ".join(f"{fast}:{MICRO_BATCHES - fast} {found[-1]:.3f}" for fast, found in fixed.items()), flush=True)
        for step, shares, reason in moves:
            print(f"    after step {step} ({step - SLOW_FROM:+d}): {shares} {reason}", flush=True)
    best = min(fixed, key=lambda fast: statistics.median(fixed[fast]))
    best_seconds, auto_seconds = statistics.median(fixed[best]), statistics.median(auto)
    print(f"medians: auto {auto_seconds:.3f}, equal {statistics.median(fixed[MICRO_BATCHES // 2]):.3f}, best fixed split "
          f"{best}:{MICRO_BATCHES - best} {best_seconds:.3f} s a step; auto has {100 * best_seconds / auto_seconds:.1f} % of "
          "the best one's throughput")


if __name__ == "__main__":
    main()
