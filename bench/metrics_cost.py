#!/usr/bin/env python3
"""What `telemetry: {prometheus: ...}` costs a step: the same job with and without it, in turns, so that both meet the same
machine. With it the rank is scraped once a second.

    LOCKSTEP=build/release/bin/lockstep bench/metrics_cost.py [PAIRS] [STEPS]     20 pairs of 2,000 steps
"""
import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request

PROGRAM = os.environ["LOCKSTEP"]
JOB = ["model=lenet", "data.train.digits.count=512", "data.validation.digits.count=64", "batch_size=64", "shards=8",
       "threads=1", "evaluate=never", "checkpoint=never"]
SETTLING = 0.2  # of the steps, at the beginning


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def scrape(port, over, count):
    while not over.wait(1):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                count.append(len(answer.read()))
        except OSError:
            pass  # it has not begun to serve, or has ended


def run(steps, metrics):
    """(median seconds of a step, processor seconds of a step, scrapes)"""
    port, over, scrapes = free_port(), threading.Event(), []
    with tempfile.TemporaryDirectory() as folder:
        words = [f"steps={steps}", f"run_directory={folder}/run"]
        words += [f"telemetry.prometheus.port={port}"] if metrics else []
        scraper = threading.Thread(target=scrape, args=(port, over, scrapes))
        if metrics:
            scraper.start()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([PROGRAM, "train", *JOB, *words, "--log", "json"], capture_output=True, text=True,
                              check=True, cwd=pathlib.Path(folder))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        over.set()
        if metrics:
            scraper.join()
    ends = [event["seconds"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "step"]
    ends = ends[int(SETTLING * len(ends)):]
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return statistics.median(b - a for a, b in zip(ends, ends[1:])), spent / steps, len(scrapes)


def told(name, pairs):
    """Of (without, with)."""
    more = [100 * (b / a - 1) for a, b in pairs]
    low, middle, high = statistics.quantiles(more, n=4)
    return (f"{name}: {1e3 * statistics.median(a for a, _ in pairs):.3f} ms without, "
            f"{1e3 * statistics.median(b for _, b in pairs):.3f} ms with; of a pair {middle:+.2f} % "
            f"(quartiles {low:+.2f} and {high:+.2f})")


def main():
    pairs, steps = (int(word) for word in (sys.argv[1:] + ["20", "2000"][len(sys.argv) - 1:]))
    runs = []
    for i in range(pairs):
        first = i % 2 == 0  # whoever goes first has no advantage
        runs.append({metrics: run(steps, metrics) for metrics in (not first, first)})
    print(told("a step", [(pair[False][0], pair[True][0]) for pair in runs]))
    print(told("its processor time", [(pair[False][1], pair[True][1]) for pair in runs]))
    print(f"{pairs} pairs of {steps} steps, {sum(pair[True][2] for pair in runs)} scrapes")


if __name__ == "__main__":
    main()
