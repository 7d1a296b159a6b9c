"""Runs a user's copy of Keller Jordan's airbench94.py on CIFAR-10's binary files; prints one JSON object.

    bench/airbench_cifar10.py FILE --cifar DIR

Needs a GPU, PyTorch and torchvision. The data are written in the form that FILE expects, to a folder that is removed
afterwards. It trains twice: once to warm up, as its author does, and once for the numbers. `seconds` is the time that
it prints: training and the evaluation of six views of each image, without the start and the evaluations in between.
`accuracy` is over these six views, `accuracy_of_one_view` over each image as it is.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import tempfile

import torch

from pytorch_cifar10 import read_both_parts

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_data(cifar, folder):
    folder.mkdir()
    for name, (images, labels) in zip(("train.pt", "test.pt"), read_both_parts(cifar)):
        torch.save({"images": images, "labels": labels, "classes": CLASSES}, folder / name)


def load(file):
    spec = importlib.util.spec_from_file_location("airbench", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table_of(airbench, run):
    """The rows that a training run prints, each as a list of columns."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        airbench.main(run)
    rows = [line for line in printed.getvalue().splitlines() if line.startswith("|")]
    return [[column.strip() for column in row.strip("|").split("|")] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--cifar", required=True, type=pathlib.Path, metavar="DIR")
    arguments = parser.parse_args()
    file, cifar = arguments.file.resolve(), arguments.cifar.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_data(cifar, pathlib.Path("cifar10"))
        airbench = load(file)
        table_of(airbench, "warmup")
        one_view, all_views, seconds = table_of(airbench, 0)[-1][-3:]
        os.chdir("/")
    print(json.dumps({"seconds": float(seconds), "accuracy": float(all_views),
                      "accuracy_of_one_view": float(one_view), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
