#!/usr/bin/env python3
"""Training on one GPU in bf16: lockstep against PyTorch, eager and compiled, alternating.

    bench/gpu_against_pytorch.py [--python PYTHON] [--pairs 3] [gpt2] [resnet50] [micro-batches]
    bench/gpu_against_pytorch.py [--python PYTHON] [--pairs 3] --cifar DIR [--airbench FILE] cifar10

PYTHON has PyTorch 2.11; the program is $LOCKSTEP, or build/release/bin/lockstep by default. `gpt2` is GPT-2 124M with a
context of 1,024, `resnet50` uses images of 224 x 224: throughput, on made-up data. Both are also shown as a share of
the card's own rate of bf16 products. `micro_batches` trains with ever smaller micro-batches, to find the size below which the card
starves. Machines are noisy, so only the ratios mean something.

`cifar10` measures a whole training run to an accuracy: examples/cifar10-resnet9.yaml, trained to its end on CIFAR-10's
50,000 images and evaluated once, on its 10,000 test images. DIR holds the official binary files (data_batch_1.bin to
data_batch_5.bin, test_batch.bin). It shows the seconds of the whole process, those of training as each side reports
them (without start and evaluation), the accuracy, and ratios of times: below 1 lockstep is faster. Each pair has its
own seed. Batch norm is over a micro-batch of 64 samples in lockstep, over the whole batch of 512 in PyTorch. The first
compiled run may find PyTorch's cache of compiled code empty.

--airbench FILE also runs, once, Keller Jordan's airbench94.py (legacy/airbench94.py of his cifar10-airbench, which is
not part of lockstep; PYTHON then needs torchvision, too): another network and recipe, which reaches 94 % as fast as it
can.

`--try` makes everything small and runs on the CPU, to check that the script works; cifar10 then runs one pair, on
made-up data.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "build" / "bench-data"
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
WARM_UP = 10  # steps before the clock starts: kernels are loaded, launches recorded
GPT2 = """
job:
  name: bench-gpt2
  model: {{gpt: {{size: gpt2, layers: {layers}, vocabulary: 50257, dropout: 0}}}}
  data: {{train: {{tokens: {{path: {data}/tokens.bin, context: {context}}}}}}}
  optimizer: {{adamw: {{beta1: 0.9, beta2: 0.95, weight_decay: 0.1}}}}
  learning_rate: 0.0006
  clip_norm: 1
"""
RESNET50 = """
job:
  name: bench-resnet50
  model: {{resnet: {{depth: 50, classes: 1000}}}}
  data: {{train: {{images: {data}/images-{side}}}, augment: [flip]}}
  optimizer: {{sgd: {{momentum: 0.9, nesterov: true, weight_decay: 0.00005}}}}
  learning_rate: 0.1
"""
BOTH = """  batch_size: {batch}
  micro_batches: {micro_batches}
  steps: {steps}
  precision: bf16
  device: {device}
  loss: cross_entropy
  checkpoint: never
  evaluate: never
"""
CIFAR = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
# Floating-point operations of a step per sample: 6 for each parameter and token, and attention's; 3 times forward's.
GPT2_FLOPS = 1024 * (6 * 124.4e6 + 12 * 12 * 768 * 1024 / 2)
RESNET50_FLOPS = 3 * 2 * 4.09e9


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(side, generator):
    rows = b"".join(b"\0" + generator.randbytes(3 * side) for _ in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def make_data(side, images):
    generator = random.Random(1)
    DATA.mkdir(parents=True, exist_ok=True)
    tokens = DATA / "tokens.bin"
    if not tokens.exists():
        tokens.write_bytes(struct.pack("<4000000H", *(generator.randrange(50257) for _ in range(4000000))))
    folder = DATA / f"images-{side}"
    for i in range(images):
        file = folder / str(i % 2) / f"{i}.png"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(side, generator))


def make_cifar(folder):
    """2,000 and 500 records in CIFAR-10's format: each class is a color, with noise."""
    generator = random.Random(1)
    colours = [[generator.randrange(129) for _ in range(3)] for _ in range(10)]

    def record(label):
        planes = (generator.randbytes(1024).translate(bytes(colour + i // 2 for i in range(256)))
                  for colour in colours[label])
        return bytes([label]) + b"".join(planes)

    folder.mkdir(parents=True, exist_ok=True)
    for file in sum(CIFAR.values(), []):
        records = 500 if file in CIFAR["test"] else 400
        (folder / file).write_bytes(b"".join(record(i % 10) for i in range(records)))


def finished(name, command, folder=None):
    """The lines that a program prints to stdout, and the seconds from its start to its end."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout.splitlines(), seconds


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def text_of(run):
    return f"{run[0]:.1f} s whole, {run[1]:.1f} s training, {run[2]:.2%}"


class Bench:
    def __init__(self, arguments):
        self.python = arguments.python
        self.pairs = arguments.pairs
        small = arguments.small
        self.device = "cpu" if small else "cuda"
        self.steps = 2 if small else 40
        self.side, self.layers, self.context = (32, 1, 32) if small else (224, 12, 1024)
        self.batch = {"gpt2": 4 if small else 32, "resnet50": 8 if small else 256}
        self.micro_batches = {"gpt2": 2 if small else 4, "resnet50": 2 if small else 4}
        make_data(self.side, 16 if small else 1024)
        self.product_rate = self.pytorch("matmul", side=256 if small else 8192)
        print(f"products in bf16: {self.product_rate / 1e12:.0f} TFLOP/s", flush=True)

    def lockstep(self, model, micro_batches):
        job = DATA / f"{model}.yaml"
        job.write_text(({"gpt2": GPT2, "resnet50": RESNET50}[model] + BOTH).format(
            data=DATA, layers=self.layers, context=self.context, side=self.side, batch=self.batch[model], micro_batches=micro_batches,
            steps=WARM_UP + self.steps, device=self.device), encoding="utf-8")
        done = subprocess.run([PROGRAM, "train", job, "--log", "json"], cwd=DATA,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"lockstep: {done.stderr}")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        seconds = {event["step"]: event["seconds"] for event in events if event["event"] == "step"}
        return self.batch[model] * self.steps / (seconds[WARM_UP + self.steps] - seconds[WARM_UP])

    def pytorch(self, model, side=None, compiled=False):
        command = [self.python, ROOT / "bench" / "pytorch_gpu_step.py", model, "--steps", str(self.steps), "--device",
                   self.device, "--side", str(side or self.side), "--layers", str(self.layers), "--context",
                   str(self.context), "--batch", str(self.batch.get(model, 1)), *(["--compiled"] if compiled else [])]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rate"]

    def compare(self, model, flops):
        ratios = {"eager": [], "compiled": []}
        for _ in range(self.pairs):
            for kind, found in ratios.items():
                ours, theirs = self.lockstep(model, self.micro_batches[model]), self.pytorch(model, compiled=kind == "compiled")
                found.append(ours / theirs)
                share = f" ({ours * flops / self.product_rate:.0%} of the card's products)" if self.device == "cuda" else ""
                print(f"{model:9} lockstep {ours:8.1f}{share}  PyTorch {kind} "
                      f"{theirs:8.1f} samples/s  ratio {found[-1]:.2f}", flush=True)
        for kind, found in ratios.items():
            print(f"{model:9} against {kind}: median ratio {statistics.median(found):.2f} "
                  f"({min(found):.2f} to {max(found):.2f} in {len(found)} pairs)")

    def starve(self):
        for model, batch in self.batch.items():
            micro_batches = 1
            while micro_batches <= batch:
                rate = self.lockstep(model, micro_batches)
                print(f"{model:9} micro-batches of {batch // micro_batches:4}: {rate:8.1f} samples/s", flush=True)
                micro_batches *= 2


class Cifar10:
    """A whole training run to an accuracy. A result is the seconds of the whole run, those of training, and the
    accuracy."""

    def __init__(self, arguments):
        self.python, self.pairs, self.airbench = arguments.python, arguments.pairs, arguments.airbench
        self.folder = arguments.cifar.resolve() if arguments.cifar else DATA / "cifar10-made-up"
        self.device, self.job, self.options = "cuda", [], []
        if arguments.small:
            make_cifar(self.folder)
            self.device, self.pairs = "cpu", 1
            self.job = ["epochs=2", "batch_size=128", "learning_rate.warmup=1 epoch", "learning_rate.peak=0.02"]
            self.options = ["--epochs", "2", "--batch", "128", "--warmup", "1", "--peak", "0.02"]
        self.seed = 0
        self.facts = None
        DATA.mkdir(parents=True, exist_ok=True)

    def check(self, side, found):
        facts = {key: found[key] for key in ("parameters", "steps", "samples", "validation_samples")}
        self.facts = self.facts or facts
        if facts != self.facts:
            sys.exit(f"cifar10: the sides differ: {side} has {facts}, before it was {self.facts}")

    def lockstep(self):
        # An interval longer than the run: evaluates once, after the last step, when the training clock has stopped.
        lines, whole = finished("lockstep", [
            PROGRAM, "train", ROOT / "examples/cifar10-resnet9.yaml", "--log", "json",
            f"data.train.cifar={self.folder}", f"data.validation.cifar={self.folder}", f"device={self.device}",
            "precision=bf16", "checkpoint=never", "evaluate.every=1000 epochs", f"seed={self.seed}", *self.job], DATA)
        events = {event["event"]: event for event in map(json.loads, lines)}
        self.check("lockstep", events["start"])
        end = events["end"]
        return whole, end["seconds"], end["metrics"]["accuracy"]

    def pytorch(self, compiled):
        lines, whole = finished("PyTorch", [
            self.python, ROOT / "bench/pytorch_cifar10.py", "--cifar", self.folder, "--device", self.device, "--seed",
            str(self.seed), *(["--compiled"] if compiled else []), *self.options])
        found = json.loads(lines[-1])
        self.check("PyTorch", found)
        return whole, found["seconds"], found["accuracy"]

    def compare(self):
        airbench = self.run_airbench() if self.airbench else None
        pairs = {"eager": [], "compiled": []}
        for _ in range(self.pairs):
            for kind, found in pairs.items():
                self.seed += 1
                ours, theirs = self.lockstep(), self.pytorch(kind == "compiled")
                found.append((ours, theirs))
                print(f"cifar10   lockstep {text_of(ours)}  PyTorch {kind} {text_of(theirs)}  "
                      f"ratio {ours[0] / theirs[0]:.2f} whole, {ours[1] / theirs[1]:.2f} training", flush=True)
        for kind, found in pairs.items():
            whole, training = ([ours[i] / theirs[i] for ours, theirs in found] for i in range(2))
            accuracies = [statistics.mean(pair[side][2] for pair in found) for side in range(2)]
            print(f"cifar10   against {kind}: median ratio of times, lockstep's by PyTorch's: {spread(whole)} whole, "
                  f"{spread(training)} training, in {len(found)} pairs; mean accuracy {accuracies[0]:.2%} against "
                  f"{accuracies[1]:.2%}", flush=True)
        if airbench:
            training = statistics.median(ours[1] for found in pairs.values() for ours, _ in found)
            print(f"cifar10   against airbench: ratio of times {training / airbench:.2f}, lockstep's median training "
                  f"of {training:.1f} s by its {airbench:.2f} s")

    def run_airbench(self):
        """Seconds of training, by airbench's own clock."""
        lines, whole = finished("airbench", [self.python, ROOT / "bench/airbench_cifar10.py", self.airbench.resolve(),
                                             "--cifar", self.folder])
        found = json.loads(lines[-1])
        print(f"cifar10   airbench {whole:.1f} s whole, with a training to warm up, {found['seconds']:.2f} s training, "
              f"{found['accuracy']:.2%}, with one view of an image {found['accuracy_of_one_view']:.2%}", flush=True)
        return found["seconds"]


def check(arguments, what):
    """Exits with a one-line message if the request cannot be met."""
    if "cifar10" in arguments.what and not (arguments.cifar or arguments.small):
        sys.exit("cifar10 needs --cifar DIR, the folder of CIFAR-10's binary files")
    if arguments.cifar and arguments.small:
        sys.exit("--try makes data up: leave --cifar out")
    missing = [file for file in sum(CIFAR.values(), []) if arguments.cifar and not (arguments.cifar / file).is_file()]
    if missing:
        sys.exit(f"--cifar {arguments.cifar}: there is no {missing[0]}")
    if arguments.airbench and not (arguments.cifar and "cifar10" in what):
        sys.exit("--airbench is a part of cifar10 with --cifar DIR: it needs a GPU and the real data")
    if arguments.airbench and not arguments.airbench.is_file():
        sys.exit(f"--airbench {arguments.airbench}: there is no such file")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--cifar", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--airbench", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--try", dest="small", action="store_true")
    parser.add_argument("what", nargs="*", metavar="gpt2|resnet50|micro-batches|cifar10", help="default: all of them")
    arguments = parser.parse_args()
    what = arguments.what or ["gpt2", "resnet50", "micro_batches", "cifar10"]
    check(arguments, what)
    if not (arguments.what or arguments.cifar or arguments.small):
        what.remove("cifar10")
        print("cifar10   left out: --cifar DIR names the folder of CIFAR-10's binary files", flush=True)
    if set(what) & {"gpt2", "resnet50", "micro_batches"}:
        bench = Bench(arguments)
        if "gpt2" in what:
            bench.compare("gpt2", GPT2_FLOPS)
        if "resnet50" in what:
            bench.compare("resnet50", RESNET50_FLOPS)
        if "micro_batches" in what:
            bench.starve()
    if "cifar10" in what:
        Cifar10(arguments).compare()


if __name__ == "__main__":
    main()
