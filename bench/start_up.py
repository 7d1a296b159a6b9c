#!/usr/bin/env python3
"""What starting costs: the time of a whole run of one step, on one rank and on several.

    LOCKSTEP=build/release/bin/lockstep bench/start_up.py [--ranks 2] [--rounds 10] [NAME=VALUE ...]

Each NAME=VALUE is an environment variable with which the runs are repeated for comparison, such as OMPI_MCA_btl=^tcp.
Rounds take turns, so that other load affects all variants. Seconds: median, least and most.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

PROGRAM = os.environ.get("LOCKSTEP", "build/release/bin/lockstep")


def seconds_of(ranks, environment):
    with tempfile.TemporaryDirectory() as folder:
        words = [PROGRAM, "train", "--ranks", str(ranks), "steps=1", "evaluate=never", "threads=1",
                 f"run_directory={folder}/run"]
        start = time.perf_counter()
        subprocess.run(words, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("environments", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args()
    cases = {"1 rank": (1, {}), f"{options.ranks} ranks": (options.ranks, {})}
    for word in options.environments:
        cases[f"{options.ranks} ranks, {word}"] = (options.ranks, dict([word.split("=", 1)]))
    times = {name: [] for name in cases}
    for _ in range(options.rounds):
        for name, (ranks, environment) in cases.items():
            times[name].append(seconds_of(ranks, environment))
    width = max(map(len, cases))
    for name, measured in times.items():
        print(f"{name:<{width}}  {statistics.median(measured):.2f}  {min(measured):.2f}  {max(measured):.2f}")


if __name__ == "__main__":
    main()
