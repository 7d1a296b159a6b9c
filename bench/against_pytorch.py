#!/usr/bin/env python3
"""Training throughput of lockstep against PyTorch, with as many threads each, alternating, on made-up data of the real shapes.

    bench/against_pytorch.py [--pairs 5] [--threads 1] [MODEL...]

PyTorch comes from tests/peer/requirements.txt (about 5 GB in build/venv-peer). Prints each pair and the median of the
ratios; machines are noisy, so only the ratios mean something.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = [ROOT / "scripts" / "python.sh", "--packages", "tests/peer/requirements.txt"]
DATA = ROOT / "build" / "bench-data"


def make_data():
    DATA.mkdir(parents=True, exist_ok=True)
    generator = random.Random(1)
    images = DATA / "data_batch_1.bin"
    if not images.exists():
        records = (bytes([i % 10]) + generator.randbytes(3072) for i in range(10000))
        images.write_bytes(b"".join(records))
    text = DATA / "text.txt"
    if not text.exists():
        letters = [chr(ord("!") + i) for i in range(65)]
        text.write_text("".join(generator.choices(letters, k=300000)))


def lockstep(words, threads):
    program = ROOT / "build" / "release" / "bin" / "lockstep"
    command = [program, "train", *words, f"threads={threads}", "checkpoint=never", "evaluate=never", "--log", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["samples_per_second"]


def pytorch(model, steps, threads):
    command = [*PYTHON, ROOT / "bench" / "pytorch_step.py", model, "--steps", str(steps), "--threads", str(threads)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["samples_per_second"]


def recurrent(layer):
    """Two layers of 512 units over 64 characters; four micro-batches of 16 samples."""
    layers = ("[{embedding: {vocabulary: 65, width: 512}}, " + 2 * f"{{{layer}: {{features: 512}}}}, " +
              "{linear: {features: 65}}]")
    return ([f"data={{train: {{text: {{path: {DATA}/text.txt, tokenizer: characters, context: 64}}}}}}",
             f"model={{layers: {layers}}}", "batch_size=64", "micro_batches=4", "steps=20", "loss=cross_entropy",
             "metrics=[]", "optimizer=adamw", "learning_rate=0.001", "clip_norm=1", "run_directory=build/bench-run"], 20)


CASES = {
    "resnet20": (["examples/cifar10-resnet20.yaml", f"data.train.cifar={DATA}/data_batch_1.bin", "steps=60",
                  "learning_rate=0.1"], 60),
    "gpt": (["examples/shakespeare-gpt.yaml", f"data.train.text.path={DATA}/text.txt", "steps=400",
             "learning_rate=0.001"], 400),
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("models", nargs="*", default=list(CASES), metavar="MODEL", help=", ".join(CASES))
    arguments = parser.parse_args()
    make_data()
    subprocess.run([*PYTHON, "-c", ""], check=True)  # installs PyTorch if it is missing
    for model in arguments.models:
        words, steps = CASES[model]
        ratios = []
        for _ in range(arguments.pairs):
            ours, theirs = lockstep(words, arguments.threads), pytorch(model, steps, arguments.threads)
            ratios.append(ours / theirs)
            print(f"{model:9} lockstep {ours:8.1f}  PyTorch {theirs:8.1f} samples/s  ratio {ratios[-1]:.2f}", flush=True)
        print(f"{model:9} median ratio {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} pairs)")


if __name__ == "__main__":
    sys.exit(main())
