#!/usr/bin/env python3
"""What a checkpoint every 10 steps costs in throughput, on made-up data of real shapes.

    bench/checkpoint_cost.py [--checkpoints 40] [--threads 2] [--every 10] [resnet20] [gpt]

Trains with a checkpoint every 20 steps and compares the 10 steps during which one is copied and written with the 10
steps after them, when nothing is written any more: neighbours in one run, so that a machine whose speed drifts does not
matter. Prints the median over all such pairs, with the quartiles. If writing takes longer than 10 steps the comparison
says nothing, and the script says so.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from against_pytorch import DATA, ROOT, make_data  # noqa: E402

CASES = {
    "resnet20": ["examples/cifar10-resnet20.yaml", f"data.train.cifar={DATA}/data_batch_1.bin", "learning_rate=0.1"],
    "gpt": ["examples/shakespeare-gpt.yaml", f"data.train.text.path={DATA}/text.txt", "learning_rate=0.001"],
}


def train(words, arguments):
    """When each step ended, by its number, and the checkpoint events."""
    steps = 2 * arguments.every * (arguments.checkpoints + 1)
    program = ROOT / "build" / "release" / "bin" / "lockstep"
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as directory:
        command = [program, "train", *words, f"steps={steps}", f"threads={arguments.threads}", "evaluate=never",
                   f"checkpoint={{every: {2 * arguments.every} steps, keep: 2}}", f"run_directory={directory}/run",
                   "--log", "json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    ends = {event["step"]: event["seconds"] for event in events if event["event"] == "step"}
    return ends, [event for event in events if event["event"] == "checkpoint"][:-1]  # the last checkpoint ends the run


def report(model, ends, written, every):
    costs, windows = [], []
    for event in written:
        step = event["step"]
        busy = ends[step + every] - ends[step]
        quiet = ends[step + 2 * every] - ends[step + every]
        costs.append(100 * (busy / quiet - 1))
        windows.append(busy)
    low, middle, high = statistics.quantiles(costs, n=4)
    blocked = statistics.median(event["blocked_seconds"] for event in written)
    safe = [event["seconds"] for event in written]
    print(f"{model}: {len(written)} checkpoints of {written[0]['bytes'] / 1e6:.1f} MB, one every {every} steps of "
          f"{1000 * statistics.median(windows) / every:.1f} ms, cost {middle:.2f} % (quartiles {low:.2f} and {high:.2f}); "
          f"each stops training for {1000 * blocked:.2f} ms and is safe after {1000 * statistics.median(safe):.0f} ms",
          flush=True)
    late = sum(seconds > window for seconds, window in zip(safe, windows))
    if late > len(written) // 4:
        print(f"{model}: {late} of them took longer than {every} steps to write: the disk does not keep up, and the "
              "comparison says nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoints", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=10, help="steps")
    parser.add_argument("models", nargs="*", default=list(CASES), metavar="MODEL", help="resnet20, gpt")
    arguments = parser.parse_args()
    make_data()
    for model in arguments.models:
        report(model, *train(CASES[model], arguments), arguments.every)


if __name__ == "__main__":
    sys.exit(main())
