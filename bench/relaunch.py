#!/usr/bin/env python3
"""What a killed rank costs: kills one of the ranks with kill -9, repeatedly, and measures the time until the next
finished step.

    LOCKSTEP=build/release/bin/lockstep bench/relaunch.py [--ranks 4] [--kills 20] [JOB] [key=value ...]

Times are seconds from the kill. Prints a table of the kills, then median and worst. The default job is the embedded
digits.
"""
import argparse
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "launch"))
os.environ.setdefault("LOCKSTEP", "build/release/bin/lockstep")
from launches import PROGRAM, processes_of, wait_until  # noqa: E402  pylint: disable=wrong-import-position
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position


def ready_for_a_kill(directory, launches):
    """Whether the newest attempt has done 15 steps."""
    events = events_of(directory)
    starts = [i for i, event in enumerate(events) if event["event"] == "launch"]
    return len(starts) == launches and sum(e["event"] == "step" for e in events[starts[-1]:]) >= 15


def first_after(events, name, moment):
    times = [event["time"] for event in events if event["event"] == name and event["time"] >= moment]
    return times[0] - moment if times else None


def kill_one(directory, launches):
    wait_until(lambda: ready_for_a_kill(directory, launches), "15 steps")
    process, rank = random.choice([(p, r) for p, r in processes_of(directory) if r is not None])
    moment = time.time()
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: ready_for_a_kill(directory, launches + 1), "steps after the kill")
    events = events_of(directory)
    launched = first_after(events, "launch", moment)
    after = moment + launched
    return rank, first_after(events, "restart", moment), launched, launched + first_after(
        events, "start", after), launched + first_after(events, "step", after)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("words", nargs="*", help="a job file and overrides")
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "launch", *arguments.words, "steps=1000000", "evaluate=never", "learning_rate=0.0001",
                   "checkpoint={every: 10 steps}", f"run_directory={folder}/run", "--ranks", str(arguments.ranks)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as launch:
            print(f"{'rank':>4} {'noticed':>8} {'relaunched':>11} {'ranks ready':>12} {'next step':>10}")
            totals = []
            for kill in range(arguments.kills):
                rank, *times = kill_one(f"{folder}/run", kill + 1)
                totals.append(times[-1])
                print(f"{rank:4} {times[0]:8.2f} {times[1]:11.2f} {times[2]:12.2f} {times[3]:10.2f}", flush=True)
            launch.terminate()
            launch.wait()
    print(f"next step after {arguments.kills} kills: median {statistics.median(totals):.2f} s, "
          f"worst {max(totals):.2f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
