"""Samples per second of PyTorch training; prints one JSON object.

Data are made up beforehand and stay in memory, so that only the step is measured.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F

from pytorch_models import Gpt, Recurrent, ResNet20


def resnet20(batch):
    model = ResNet20().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    x = torch.randn(batch, 3, 32, 32).to(memory_format=torch.channels_last)
    y = torch.randint(10, (batch,))
    return model, optimizer, lambda: F.cross_entropy(model(x), y), None


def gpt(batch):
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    x, y = torch.randint(65, (batch, 64)), torch.randint(65, (batch, 64))
    return model, optimizer, lambda: F.cross_entropy(model(x).flatten(0, 1), y.flatten()), 1.0


def recurrent(layer):
    def made(batch):
        model = Recurrent(layer, width=512, layers=2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
        x, y = torch.randint(65, (batch, 64)), torch.randint(65, (batch, 64))
        return model, optimizer, lambda: F.cross_entropy(model(x).flatten(0, 1), y.flatten()), 1.0
    return made


MODELS = {"resnet20": (resnet20, 128), "gpt": (gpt, 12), "lstm": (recurrent(nn.LSTM), 64), "gru": (recurrent(nn.GRU), 64)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=list(MODELS))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    make, batch = MODELS[arguments.model]
    batch = arguments.batch or batch
    model, optimizer, loss_of, clip = make(batch)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    for _ in range(5):
        step()
    start = time.perf_counter()
    for _ in range(arguments.steps):
        step()
    seconds = time.perf_counter() - start
    print(json.dumps({"model": arguments.model, "samples_per_second": batch * arguments.steps / seconds,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
