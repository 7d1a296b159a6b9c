"""Trains examples/cifar10-resnet9.yaml in PyTorch to its end and evaluates once; prints one JSON object.

    bench/pytorch_cifar10.py --cifar DIR [--seed 1] [--compiled] [--device cuda]

DIR holds CIFAR-10's binary files. They are decoded once and stay on the device as bytes; batches are augmented there.
bf16 by autocast, channels last, fused SGD. `seconds` is the training loop alone: without the start, the compilation and
the choice of cuDNN's algorithms (all in a first step whose result is discarded), and without the evaluation. Batch norm
is over the whole batch; lockstep's is over a micro-batch, 64 samples.
"""

import argparse
import json
import pathlib
import time

import numpy
import torch
from torch.nn import functional as F

from pytorch_models import ResNet9

WEIGHT_DECAY, SMOOTHING, PADDING, HOLE = 0.0005, 0.1, 4, 8  # from the job, like the options' defaults


def read_cifar(paths):
    """Images as bytes [samples, height, width, channels], and labels."""
    records = numpy.concatenate([numpy.fromfile(path, numpy.uint8).reshape(-1, 3073) for path in paths])
    images = numpy.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return torch.from_numpy(images), torch.from_numpy(records[:, 0].astype(numpy.int64))


def read_both_parts(folder):
    """The training set and the test set, each as (images, labels)."""
    folder = pathlib.Path(folder)
    return read_cifar(sorted(folder.glob("data_batch_*.bin"))), read_cifar([folder / "test_batch.bin"])


def augment(images, ids):
    """Random crop with a black margin, flip, a black square that may cross the edge: as in the job file, in this
    order."""
    count, side = len(ids), images.shape[1]

    def draw(below):
        return torch.randint(below, (count, 1, 1), device=images.device)

    row, column = torch.arange(side, device=images.device).view(-1, 1), torch.arange(side, device=images.device)
    hole_y, hole_x = row - draw(side) + HOLE // 2, column - draw(side) + HOLE // 2
    hole = (hole_y >= 0) & (hole_y < HOLE) & (hole_x >= 0) & (hole_x < HOLE)
    y = row + draw(2 * PADDING + 1) - PADDING
    x = torch.where(draw(2) == 1, side - 1 - column, column) + draw(2 * PADDING + 1) - PADDING
    kept = (y >= 0) & (y < side) & (x >= 0) & (x < side) & ~hole
    return images[ids.view(-1, 1, 1), y.clamp(0, side - 1), x.clamp(0, side - 1)] * kept.unsqueeze(-1)


class Training:
    def __init__(self, arguments):
        torch.manual_seed(arguments.seed)
        torch.backends.cudnn.benchmark = True
        self.device, self.batch = arguments.device, arguments.batch
        self.train, self.test = ([tensor.to(self.device) for tensor in part]
                                 for part in read_both_parts(arguments.cifar))
        self.steps_per_epoch = len(self.train[0]) // self.batch
        self.steps = arguments.epochs * self.steps_per_epoch
        self.warmup = arguments.warmup * self.steps_per_epoch
        self.peak = arguments.peak
        variance, mean = torch.var_mean(self.train[0].float(), dim=(0, 1, 2), unbiased=False)
        self.mean, self.scale = mean, variance.rsqrt()
        self.model = ResNet9().to(self.device, memory_format=torch.channels_last)
        self.forward, self.inputs = self.model, self.augmented
        if arguments.compiled:
            self.forward, self.inputs = torch.compile(self.model), torch.compile(self.augmented)

    def narrow(self):
        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda")  # few CPUs have it

    def normalized(self, images):
        x = (images.float() - self.mean) * self.scale
        return x.to(torch.bfloat16 if self.device == "cuda" else torch.float32).permute(0, 3, 1, 2)  # channels last

    def augmented(self, ids):
        return self.normalized(augment(self.train[0], ids))

    def gradient(self, ids):
        with self.narrow():
            logits = self.forward(self.inputs(ids))
        F.cross_entropy(logits.float(), self.train[1][ids], label_smoothing=SMOOTHING).backward()

    def warm_up(self):
        """Compiles and lets cuDNN choose algorithms; leaves no other trace."""
        before = {name: value.clone() for name, value in self.model.state_dict().items()}
        for _ in range(3):
            self.gradient(torch.randperm(len(self.train[0]), device=self.device)[:self.batch])
        self.model.zero_grad(set_to_none=True)
        self.model.load_state_dict(before)

    def optimizer(self):
        weights = [p for p in self.model.parameters() if p.dim() > 1]
        norms = [p for p in self.model.parameters() if p.dim() == 1]
        return torch.optim.SGD([{"params": weights, "weight_decay": WEIGHT_DECAY}, {"params": norms}], lr=self.peak,
                               momentum=0.9, nesterov=True, fused=True)

    def rate(self, step):
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        return self.peak * (1 - (step - self.warmup) / (self.steps - self.warmup))

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def run(self):
        """Trains; returns the seconds that it took."""
        self.model.train()
        self.warm_up()
        optimizer = self.optimizer()
        self.wait()
        start = time.perf_counter()
        for step in range(self.steps):
            place = step % self.steps_per_epoch
            if place == 0:
                order = torch.randperm(len(self.train[0]), device=self.device)
            for group in optimizer.param_groups:
                group["lr"] = self.rate(step)
            self.gradient(order[place * self.batch:(place + 1) * self.batch])
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.wait()
        return time.perf_counter() - start

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        torch.backends.cudnn.benchmark = False  # for these few batches, trying its algorithms would take longer
        right = 0
        for images, labels in zip(*(tensor.split(1000) for tensor in self.test)):
            with self.narrow():
                logits = self.model(self.normalized(images))
            right += (logits.argmax(1) == labels).sum()
        return right.item() / len(self.test[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cifar", required=True, metavar="DIR")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--warmup", type=int, default=5, help="epochs")
    parser.add_argument("--peak", type=float, default=0.4, help="learning rate at the end of the warm-up")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compiled", action="store_true", help="by torch.compile")
    parser.add_argument("--device", default="cuda")
    training = Training(parser.parse_args())
    seconds = training.run()
    print(json.dumps({"seconds": seconds, "accuracy": training.accuracy(), "steps": training.steps,
                      "parameters": sum(p.numel() for p in training.model.parameters()),
                      "samples": len(training.train[0]), "validation_samples": len(training.test[0]),
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
