#!/usr/bin/env python3
"""Training throughput on one GPU: lockstep against PyTorch, eager and compiled, in turn, in bf16, on made-up data.

    bench/gpu_against_pytorch.py [--python PYTHON] [--pairs 3] [gpt2] [resnet50] [shards]

PYTHON has PyTorch 2.11. `gpt2` is GPT-2 124M with a context of 1,024, `resnet50` images of 224 x 224. Both are also
told as a share of the card's own rate of bf16 products. `shards` trains with ever smaller shards: from which size on
the card starves. Machines are noisy, so only the ratios mean something. `--try` makes all of it small and runs on the
CPU, to see that the script works.
"""

import argparse
import json
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "build" / "bench-data"
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
  shards: {shards}
  steps: {steps}
  precision: bf16
  device: {device}
  loss: cross_entropy
  checkpoint: never
  evaluate: never
"""
# Floating-point operations of a step by sample: 6 for each parameter and token, and attention's; 3 times forward's.
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


class Bench:
    def __init__(self, arguments):
        self.python = arguments.python
        self.pairs = arguments.pairs
        small = arguments.small
        self.device = "cpu" if small else "cuda"
        self.steps = 2 if small else 40
        self.side, self.layers, self.context = (32, 1, 32) if small else (224, 12, 1024)
        self.batch = {"gpt2": 4 if small else 32, "resnet50": 8 if small else 256}
        self.shards = {"gpt2": 2 if small else 4, "resnet50": 2 if small else 4}
        make_data(self.side, 16 if small else 1024)
        self.product_rate = self.pytorch("matmul", side=256 if small else 8192)
        print(f"products in bf16: {self.product_rate / 1e12:.0f} TFLOP/s", flush=True)

    def lockstep(self, model, shards):
        job = DATA / f"{model}.yaml"
        job.write_text(({"gpt2": GPT2, "resnet50": RESNET50}[model] + BOTH).format(
            data=DATA, layers=self.layers, context=self.context, side=self.side, batch=self.batch[model], shards=shards,
            steps=self.steps + 10, device=self.device), encoding="utf-8")
        done = subprocess.run([ROOT / "build/release/bin/lockstep", "train", job, "--log", "json"], cwd=DATA,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"lockstep: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])["samples_per_second"]

    def pytorch(self, model, side=None, compiled=False):
        command = [self.python, ROOT / "bench" / "pytorch_gpu_step.py", model, "--steps", str(self.steps), "--device",
                   self.device, "--side", str(side or self.side), "--layers", str(self.layers), "--context",
                   str(self.context), "--batch", str(self.batch.get(model, 1)), *(["--compiled"] if compiled else [])]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rate"]

    def compare(self, model, flops):
        ratios = {"eager": [], "compiled": []}
        for _ in range(self.pairs):
            for kind, found in ratios.items():
                ours, theirs = self.lockstep(model, self.shards[model]), self.pytorch(model, compiled=kind == "compiled")
                found.append(ours / theirs)
                share = f" ({ours * flops / self.product_rate:.0%} of the card's products)" if self.device == "cuda" else ""
                print(f"{model:9} lockstep {ours:8.1f}{share}  PyTorch {kind} "
                      f"{theirs:8.1f} samples/s  ratio {found[-1]:.2f}", flush=True)
        for kind, found in ratios.items():
            print(f"{model:9} against {kind}: median ratio {statistics.median(found):.2f} "
                  f"({min(found):.2f} to {max(found):.2f} in {len(found)} pairs)")

    def starve(self):
        for model, batch in self.batch.items():
            shards = 1
            while shards <= batch:
                rate = self.lockstep(model, shards)
                print(f"{model:9} shards of {batch // shards:4}: {rate:8.1f} samples/s", flush=True)
                shards *= 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--try", dest="small", action="store_true")
    parser.add_argument("what", nargs="*", default=["gpt2", "resnet50", "shards"])
    arguments = parser.parse_args()
    bench = Bench(arguments)
    if "gpt2" in arguments.what:
        bench.compare("gpt2", GPT2_FLOPS)
    if "resnet50" in arguments.what:
        bench.compare("resnet50", RESNET50_FLOPS)
    if "shards" in arguments.what:
        bench.starve()


if __name__ == "__main__":
    main()
