"""Samples per second of PyTorch training on one GPU, eager or compiled; prints one JSON object.

Data are made up beforehand and stay on the GPU, so that only the step is measured. `matmul` instead measures the card's
rate of bf16 products, in floating-point operations per second.
"""

import argparse
import json
import time

import torch
from torch.nn import functional as F

from pytorch_models import Gpt, ResNet50


def resnet50(arguments, device):
    model = ResNet50().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-5, fused=True)
    x = torch.randn(arguments.batch, 3, arguments.side, arguments.side, device=device)
    x = x.to(memory_format=torch.channels_last)
    y = torch.randint(1000, (arguments.batch,), device=device)
    return model, optimizer, x, y, None


def gpt2(arguments, device):
    model = Gpt(50257, arguments.layers, 12, 768, arguments.context, bias=True).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    x, y = (torch.randint(50257, (arguments.batch, arguments.context), device=device) for _ in range(2))
    return model, optimizer, x, y, 1.0


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(work, times, device):
    wait(device)
    start = time.perf_counter()
    for _ in range(times):
        work()
    wait(device)
    return time.perf_counter() - start


def matmul(arguments, device):
    size = arguments.side
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds_of(lambda: a @ b, 3, device)
    return 2 * size**3 * arguments.steps / seconds_of(lambda: a @ b, arguments.steps, device)


def train(arguments, device):
    torch.manual_seed(1)
    model, optimizer, x, y, clip = {"resnet50": resnet50, "gpt2": gpt2}[arguments.model](arguments, device)
    forward = torch.compile(model) if arguments.compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):  # few CPUs have it
            logits = forward(x)
        F.cross_entropy(logits.float().flatten(0, -2), y.flatten()).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    seconds_of(step, 5, device)
    return arguments.batch * arguments.steps / seconds_of(step, arguments.steps, device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["resnet50", "gpt2", "matmul"])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--side", type=int, default=224, help="of images, or of matmul's matrices")
    parser.add_argument("--compiled", action="store_true", help="by torch.compile")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    rate = (matmul if arguments.model == "matmul" else train)(arguments, arguments.device)
    print(json.dumps({"model": arguments.model, "rate": rate, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
