#!/usr/bin/env python3
"""What a checkpoint every 10 steps costs: the same training with and without, in turn, on made-up data of real shapes.

    bench/checkpoint_cost.py [--pairs 7] [--threads 2] [--every 10] [resnet20] [gpt]

Times go from the end of step 10 to the end of the last step, so that the start does not count, and neither does the
last checkpoint: it must wait for the disk. Prints each pair and the median. Machines are noisy: only the median of many
pairs on a quiet machine means something. The order within a pair changes from pair to pair.
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
    "resnet20": ["examples/cifar10-resnet20.yaml", f"data.train.cifar={DATA}/data_batch_1.bin", "steps=70",
                 "learning_rate=0.1"],
    "gpt": ["examples/shakespeare-gpt.yaml", f"data.train.text.path={DATA}/text.txt", "steps=310",
            "learning_rate=0.001"],
}
FIRST = 10


def train(words, threads, checkpoint, directory):
    program = ROOT / "build" / "release" / "bin" / "lockstep"
    command = [program, "train", *words, f"threads={threads}", f"checkpoint={checkpoint}", "evaluate=never",
               f"run_directory={directory}", "--resume", "never", "--log", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [event["seconds"] for event in events if event["event"] == "step"]
    written = [event for event in events if event["event"] == "checkpoint"]
    return steps[-1] - steps[FIRST - 1], len(steps) - FIRST, written


def pair(words, arguments, swapped):
    results = {}
    for with_checkpoints in (True, False) if swapped else (False, True):
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as directory:
            checkpoint = f"{{every: {arguments.every} steps, keep: 2}}" if with_checkpoints else "never"
            results[with_checkpoints] = train(words, arguments.threads, checkpoint, f"{directory}/run")
    return results[False], results[True]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=10, help="steps")
    parser.add_argument("models", nargs="*", default=list(CASES), metavar="MODEL", help="resnet20, gpt")
    arguments = parser.parse_args()
    make_data()
    for model in arguments.models:
        costs = []
        for number in range(arguments.pairs):
            (without, steps, _), (seconds, _, written) = pair(CASES[model], arguments, number % 2 == 1)
            costs.append(100 * (seconds / without - 1))
            blocked = statistics.median(event["blocked_seconds"] for event in written)
            safe = statistics.median(event["seconds"] for event in written)
            print(f"{model:9} {steps} steps: {without:7.3f} s without, {seconds:7.3f} s with {len(written)} checkpoints "
                  f"of {written[0]['bytes'] / 1e6:.1f} MB: {costs[-1]:+.2f} %; each stops training for "
                  f"{1000 * blocked:.1f} ms and is safe after {1000 * safe:.0f} ms", flush=True)
        print(f"{model:9} median cost {statistics.median(costs):+.2f} % "
              f"({min(costs):+.2f} to {max(costs):+.2f} in {len(costs)} pairs)")


if __name__ == "__main__":
    sys.exit(main())
