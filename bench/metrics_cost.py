#!/usr/bin/env python3
"""What `telemetry: {prometheus: ...}` costs per step: the same job with and without it, alternating, so that both meet
the same machine. With it the rank is scraped once a second.

    LOCKSTEP=build/release/bin/lockstep bench/metrics_cost.py [PAIRS] [STEPS]     20 pairs of 2,000 steps
    LOCKSTEP=build/release/bin/lockstep bench/metrics_cost.py --exporter SECONDS

The second form measures the CPU time of the serving threads in one run that is scraped every 5 s: other load on the
machine changes the run's speed, but hardly that.
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
import time
import urllib.request

PROGRAM = os.environ["LOCKSTEP"]
JOB = ["model=lenet", "data.train.digits.count=512", "data.validation.digits.count=64", "batch_size=64", "micro_batches=8",
       "threads=1", "evaluate=never", "checkpoint=never"]
EVERY = 5  # seconds between scrapes
SETTLING = 0.2  # fraction of the steps that is skipped at the start


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
            pass  # not serving yet, or ended


def run(steps, metrics):
    """(median seconds of a step, CPU seconds of a step, scrapes)"""
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


def exporter(seconds):
    """The CPU time of the serving threads, as a fraction of the process's and of the elapsed time."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        words = ["steps=1000000000", f"run_directory={folder}/run", f"telemetry.prometheus.port={port}"]
        with subprocess.Popen([PROGRAM, "train", *JOB, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            try:
                measure(run.pid, port, seconds)
            finally:
                run.terminate()


def measure(process, port, seconds):
    def fetch():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return answer.read()

    def spent():
        """CPU seconds of the serving threads, and of all threads."""
        serving = everything = 0.0
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            own = int((task / "schedstat").read_text().split()[0]) * 1e-9
            everything += own
            serving += own if (task / "comm").read_text().startswith("civetweb") else 0
        return serving, everything

    while True:
        try:
            size = len(fetch())
            break
        except OSError:
            time.sleep(0.1)
    before, began, scrapes = spent(), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        time.sleep(EVERY)
        fetch()
        scrapes += 1
    serving, everything = (b - a for a, b in zip(before, spent()))
    passed = time.monotonic() - began
    print(f"{scrapes} scrapes of {size} bytes in {passed:.0f} s: {1e3 * serving / scrapes:.3f} ms of processor time each; "
          f"{100 * serving / passed:.4f} % of the time, {100 * serving / everything:.4f} % of the run's processor time")


def text_of(name, pairs):
    """`pairs`: (without, with) in seconds."""
    more = [100 * (b / a - 1) for a, b in pairs]
    low, middle, high = statistics.quantiles(more, n=4)
    return (f"{name}: {1e3 * statistics.median(a for a, _ in pairs):.3f} ms without, "
            f"{1e3 * statistics.median(b for _, b in pairs):.3f} ms with; of a pair {middle:+.2f} % "
            f"(quartiles {low:+.2f} and {high:+.2f})")


def main():
    if sys.argv[1:2] == ["--exporter"]:
        exporter(float(sys.argv[2]))
        return
    pairs, steps = (int(word) for word in (sys.argv[1:] + ["20", "2000"][len(sys.argv) - 1:]))
    runs = []
    for i in range(pairs):
        first = i % 2 == 0  # alternate which one runs first
        runs.append({metrics: run(steps, metrics) for metrics in (not first, first)})
    print(text_of("a step", [(pair[False][0], pair[True][0]) for pair in runs]))
    print(text_of("its processor time", [(pair[False][1], pair[True][1]) for pair in runs]))
    print(f"{pairs} pairs of {steps} steps, {sum(pair[True][2] for pair in runs)} scrapes")


if __name__ == "__main__":
    main()
