#!/usr/bin/env python3
"""64 and 256 ranks on however many cores there are: they start, train two steps to the bits of one rank, and end; none
is considered hung."""
import json
import os
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ["LOCKSTEP"]
JOB = ["data.train.digits.count=512", "data.validation.digits.count=32", "batch_size=256", "micro_batches=256", "steps=2",
       "threads=1", "evaluate=never", "checkpoint={every: 1 steps}"]


def ends(command, log):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{log}: exit code {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    with tempfile.TemporaryDirectory() as folder:
        one = ends([PROGRAM, "train", *JOB, "checkpoint=never", f"run_directory={folder}/one", "--log", "json"], "one")
        for ranks in (64, 256):
            start = time.monotonic()
            events = ends([PROGRAM, "launch", *JOB, "timeout=600", f"run_directory={folder}/{ranks}", "--ranks",
                           str(ranks), "--log", "json"], f"{ranks} ranks")
            seconds = time.monotonic() - start
            begun = next(event for event in events if event["event"] == "start")
            launched = next(event for event in events if event["event"] == "launch")
            print(f"{ranks} ranks on {os.cpu_count()} cores: ready after {begun['time'] - launched['time']:.1f} s, "
                  f"two steps and the end after {seconds:.1f} s, load {os.getloadavg()[0]:.1f}")
            assert sum(event["event"] == "launch" for event in events) == 1, "started again"
            assert events[-1]["parameters_sha256"] == one[-1]["parameters_sha256"], "other bits"


if __name__ == "__main__":
    main()
