#!/usr/bin/env python3
"""Trains an example to its end, once for each seed, and compares the mean result with the goal.

    scripts/accuracy.py digits
    scripts/accuracy.py cifar10-resnet20 --seeds 1,2,3 --data /data
    scripts/accuracy.py cifar10-resnet20 --seeds 1 --data /data --report-only micro_batches=32

Real data are not part of the project: --data, or $LOCKSTEP_DATA, is the folder with the files that the example names.
Without it, an example that needs one exits with 77 (skipped). `key=value` is passed on to `lockstep train`. Exits with
1 if the goal is missed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))

# Used instead of MNIST, which this script does not download.
DIGITS = ["data.train.digits=60000", "data.validation.digits.first=1000000"]
# example: the file it needs and the key for its path; the metric, the goal, and whether more is better
EXAMPLES = {
    "digits": (None, None, "accuracy", 0.97, True),
    "digits-mlp": (None, None, "accuracy", 0.96, True),
    "digits-one-cycle": (None, None, "accuracy", 0.975, True),
    "digits-accumulate": (None, None, "accuracy", 0.97, True),
    "digits-bf16": (None, None, "accuracy", 0.98, True),
    "digits-large-batch": (None, None, "accuracy", 0.97, True),
    "digits-mixup": (None, None, "accuracy", 0.98, True),
    "digits-vit": (None, None, "accuracy", 0.93, True),
    "digits-mobilenet": (None, None, "accuracy", 0.98, True),
    "digits-unet": (None, None, "iou", 0.9, True),
    "digits-autoencoder": (None, None, "rmse", 0.11, False),
    "mnist-cnn": (None, None, "accuracy", 0.97, True),
    "two-towers": (None, None, "accuracy", 0.95, True),
    "cifar10-resnet20": ("cifar10-train.tar.zst", "data.train.images", "accuracy", 0.81, True),
    "shakespeare-llama": ("tinyshakespeare.txt", "data.train.text.path", "loss", 1.73, False),
    "shakespeare-lstm": ("tinyshakespeare.txt", "data.train.text.path", "loss", 1.85, False),
    "shakespeare-bert": ("tinyshakespeare.txt", "data.train.text.path", "accuracy", 0.46, True),
    "shakespeare-pipeline": ("tinyshakespeare.txt", "data.train.text.path", "loss", 2.12, False),
    "shakespeare-sharded": ("tinyshakespeare.txt", "data.train.text.path", "loss", 1.86, False),
    "shakespeare-gpt": ("tinyshakespeare.txt", "data.train.text.path", "loss", 1.92, False),
}


def train(example, words):
    """Runs once in its own directory; returns the `end` event."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "train", str(ROOT / "examples" / f"{example}.yaml"), "--log", "json", *words,
                   "checkpoint=never", f"run_directory={folder}/run"]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}")
    return json.loads(result.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", choices=sorted(EXAMPLES))
    parser.add_argument("--seeds", default="1", help="comma-separated, default 1")
    parser.add_argument("--ranks", default="1")
    parser.add_argument("--data", default=os.environ.get("LOCKSTEP_DATA"), help="folder of the real data")
    parser.add_argument("--report-only", action="store_true", help="print what is reached, judge nothing")
    parser.add_argument("words", nargs="*", metavar="key=value")
    arguments = parser.parse_args()

    file, key, metric, goal, more_is_better = EXAMPLES[arguments.example]
    words = ["--ranks", arguments.ranks, *(DIGITS if arguments.example == "mnist-cnn" else []), *arguments.words]
    if file is not None:
        path = pathlib.Path(arguments.data or "") / file
        if arguments.data is None or not path.is_file():
            print(f"skipped: {file} is not there; LOCKSTEP_DATA or --data names its folder")
            sys.exit(77)
        words.append(f"{key}={path.resolve()}")

    reached = []
    for seed in arguments.seeds.split(","):
        end = train(arguments.example, [*words, f"seed={seed}"])
        reached.append(end["metrics"][metric])
        print(f"{arguments.example}  seed {seed}  {metric} {reached[-1]:.4f}  {end['steps']} steps  "
              f"{end['seconds']:.0f} s  {end['samples_per_second']:.0f} samples/s  "
              f"parameters sha256 {end['parameters_sha256'][:16]}", flush=True)
    mean = statistics.mean(reached)
    met = mean >= goal if more_is_better else mean <= goal
    print(f"{arguments.example}  mean {metric} of {len(reached)}: {mean:.4f}, goal "
          f"{'at least' if more_is_better else 'at most'} {goal}: {'met' if met else 'MISSED'}")
    sys.exit(0 if met or arguments.report_only else 1)


if __name__ == "__main__":
    main()
