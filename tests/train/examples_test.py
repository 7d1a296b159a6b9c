#!/usr/bin/env python3
"""Each job in examples/ trains, in small, to a stated quality. Data that an example says how to make are made; a text that is
made up stands in for one to be fetched, and so do images of CIFAR's format. What an example reaches in full is in
docs/examples.md, and looked at by scripts/accuracy.py."""

import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from lockstep_reader.history import HIGHER_IS_BETTER  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
EXAMPLES = ROOT / "examples"
CIFAR_CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()
MADE_UP = "".join(f"Scene {i * i % 89}.\nTo be, or not to be: line {i}.\n" for i in range(500))
FEW = "data.validation.digits.count=300"
RATE = "learning_rate=0.003"
SHORT = ["steps=40", RATE]
# What makes an example small, and the metric of its validation set with the value that it must reach; where batch norm has no
# statistics yet, the loss of the last step. The bounds are far from what one machine reaches.
TASKS = {
    "churn": (["epochs=5"], "f1", 0.55),
    "complaints": (["epochs=3"], "loss", 1.2),
    "digits": (["steps=80", FEW], "accuracy", 0.5),
    "digits-accumulate": (["steps=16", FEW, "optimizer=adam", RATE], "loss", 2.2),
    "digits-autoencoder": (["steps=40", FEW, RATE], "rmse", 0.22),
    "digits-bf16": (["steps=60", FEW], "accuracy", 0.4),
    "digits-contrastive": (["steps=120", "data.validation.digits.count=256", "learning_rate=0.003"], "loss", 3.2),
    "digits-early-stop": (["data.train.digits=400", "data.validation.digits.count=200"], "accuracy", 0.5),
    "digits-ensemble": (["epochs=5", FEW], "accuracy", 0.4),
    "digits-large-batch": (["steps=20", "batch_size=100", FEW, "learning_rate=0.05"], "loss", 2.1),
    "digits-longer": (["epochs=1", FEW, "learning_rate=0.003"], "accuracy", 0.4),
    "digits-mixup": (["steps=100", FEW], "accuracy", 0.3),
    "digits-mlp": (["epochs=1", FEW], "accuracy", 0.5),
    "digits-mobilenet": (["steps=40", "batch_size=32", "micro_batches=2", "data.validation.digits.count=50", "learning_rate=0.004"], "last step", 2.2),
    "digits-one-cycle": (["steps=80", FEW], "accuracy", 0.5),
    "digits-plateau": (["epochs=3", FEW], "accuracy", 0.7),
    "digits-student": (["epochs=2", FEW], "accuracy", 0.5),
    "digits-sweep": (["steps=80", "learning_rate=0.1"], "accuracy", 0.3),
    "digits-triplet": (["steps=80", "data.validation.digits.count=256", "learning_rate=0.003"], "loss", 0.8),
    "digits-unet": (["steps=30", "batch_size=16", "micro_batches=1", "data.validation.digits.count=40"], "iou", 0.3),
    "digits-vit": (["steps=60", FEW, RATE], "loss", 2.2),
    "faults": (["epochs=8"], "f1", 0.6),
    "gauges": (["epochs=8"], "mae", 1),
    "gestures": (["epochs=3"], "accuracy", 0.8),
    "homes": (["epochs=5"], "kind/accuracy", 0.7),
    "houses": (["epochs=30"], "rmse", 35),
    "load": (["epochs=6", "learning_rate=0.02"], "r2", 0.6),
    "mnist-cnn": (["steps=60", "data.train.digits=2000", "data.validation.digits={count: 300, first: 1000000}"], "accuracy", 0.5),
    "ratings": (["epochs=40"], "r2", 0.5),
    "reviews": (["epochs=3"], "accuracy", 0.85),
    "same-bits": ([], "loss", 2.2),
    "shakespeare-bert": (SHORT, "loss", 3),
    "shakespeare-bpe": (SHORT, "loss", 3),
    "shakespeare-gpt": (SHORT, "loss", 2.5),
    "shakespeare-llama": (SHORT, "loss", 2.5),
    "shakespeare-lstm": (["steps=60", "learning_rate=0.01"], "loss", 2.6),
    "shakespeare-pipeline": (SHORT, "loss", 2.8),
    "shakespeare-sharded": (SHORT, "loss", 2.8),
    "shapes": (["epochs=6"], "mean_iou", 0.5),
    "songs": (["epochs=5"], "f1", 0.8),
    "species": (["epochs=10"], "accuracy", 0.95),
    "stains": (["steps=80", "data.train.csv.count=200"], "rmse", 0.3),
    "symbols": (["epochs=10"], "accuracy", 0.6),
    "symbols-finetune": (["epochs=4"], "accuracy", 0.5),
    "symbols-transfer": (["epochs=4"], "accuracy", 0.5),
    "trips": (["epochs=5"], "mae", 4),
    "two-towers": (["steps=20", "batch_size=32", "data.validation.digits.count=100"], "loss", 0.72),
    "cifar10-resnet20": (["steps=30", "batch_size=32", "micro_batches=2", "learning_rate=0.05"], "last step", 1.9),
    "cifar10-resnet9": (["steps=3", "batch_size=16", "micro_batches=1", "learning_rate=0.02"], "last step", 2.7),
}


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        text = cls.folder / "data/tinyshakespeare/input.txt"
        text.parent.mkdir(parents=True)
        text.write_text(MADE_UP, encoding="utf-8")
        write_cifar(cls.folder / "data/cifar10/cifar-10-binary.tar.gz", 600)
        for script, *words in (["make_data.py", "all"], ["make_tokenizer.py", str(text), "--size", "300"]):
            subprocess.run([sys.executable, str(EXAMPLES / script), *words], cwd=cls.folder, check=True, capture_output=True)
        cls.train("digits")  # whose weights others begin with

    @classmethod
    def run_program(cls, *words):
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    @classmethod
    def train(cls, name, *words, ranks=1):
        """The `end` event."""
        job = str(EXAMPLES / f"{name}.yaml")
        out = cls.run_program("train", job, "--ranks", str(ranks), "--log", "json", *TASKS[name][0], *words)
        return json.loads(out.splitlines()[-1])

    def test_each_is_in_the_table_and_in_the_docs(self):
        names = {path.stem for path in EXAMPLES.glob("*.yaml")}
        self.assertEqual(names, set(TASKS))
        page = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
        self.assertEqual([name for name in sorted(names) if f"(../examples/{name}.yaml)" not in page], [])

    def test_each_says_what_to_fetch_or_to_make(self):
        fetched = json.loads((ROOT / "share/mirrors.json").read_text(encoding="utf-8"))
        for path in EXAMPLES.glob("*.yaml"):
            first, _, job = path.read_text(encoding="utf-8").partition("\n")
            if re.search(r"\bdata/", job):
                with self.subTest(example=path.stem):
                    said = re.search(r"lockstep data fetch (\w+)|examples/make_data.py (\w+)", first)
                    self.assertIsNotNone(said)
                    self.assertIn(said[1] or said[2], fetched if said[1] else (EXAMPLES / "make_data.py").read_text(encoding="utf-8"))

    def test_the_scripts_beside_them_are_python(self):
        for path in EXAMPLES.rglob("*.py"):
            compile(path.read_text(encoding="utf-8"), path, "exec")

    def test_each_reaches_what_it_must(self):
        for name, (_, metric, bound) in TASKS.items():
            with self.subTest(example=name):
                end = self.train(name)
                reached = end["loss"] if metric == "last step" else end["metrics"][metric]
                if HIGHER_IS_BETTER.get(metric.rpartition("/")[2]):
                    self.assertGreaterEqual(reached, bound)
                else:
                    self.assertLessEqual(reached, bound)

    def test_a_model_on_two_ranks_has_the_bits_of_one(self):
        for name in ("shakespeare-pipeline", "shakespeare-sharded"):
            ends = [self.train(name, "steps=6", "evaluate=never", f"run_directory=runs/{name}{ranks}", ranks=ranks) for ranks in (1, 2)]
            self.assertEqual(ends[0]["parameters_sha256"], ends[1]["parameters_sha256"], name)

    def test_a_finished_run_goes_on_to_the_bits_of_a_long_one(self):
        short, more, long = (self.train("digits-longer", f"epochs={epochs}", f"run_directory=runs/{where}")
                             for epochs, where in ((1, "longer"), (2, "longer"), (2, "long")))
        self.assertEqual((short["steps"], more["steps"], more["outcome"]), (100, 200, "done"))
        self.assertEqual(more["parameters_sha256"], long["parameters_sha256"])

    def test_what_stops_early_keeps_its_best(self):
        end = self.train("digits-early-stop", "run_directory=runs/early")
        self.assertEqual(end["outcome"], "stopped early")
        best, newest, told = (json.loads(self.run_program("eval", "runs/early", "--log", "json", *words)) for words in
                              (["--checkpoint", "best"], ["--checkpoint", "newest"], []))
        self.assertLess(best["loss"], newest["loss"])
        self.assertEqual(end["best"], {"loss": best["loss"]})
        self.assertEqual(newest["loss"], end["metrics"]["loss"])
        self.assertEqual(told["checkpoint"], best["checkpoint"])

    def test_borrowed_weights_stay_or_move(self):
        for name, changed in (("symbols-transfer", False), ("symbols-finetune", True)):
            self.train(name, f"run_directory=runs/{name}-again")
            for i, run in enumerate(("digits", f"{name}-again")):
                self.run_program("checkpoint", "export", f"runs/{run}", f"{name}{i}.safetensors")
            first, second = (tensor(self.folder / f"{name}{i}.safetensors", "conv1.weight") for i in range(2))
            self.assertEqual(first != second, changed, name)

    def test_an_ensemble_teaches_a_student(self):
        few = TASKS["digits-ensemble"][0]
        self.run_program("ensemble", "train", str(EXAMPLES / "digits-ensemble.yaml"), "--members", "2", *few)
        self.run_program("ensemble", "distill", "ensembles/digits-ensemble", "--job", str(EXAMPLES / "digits-student.yaml"), "--to",
                         "runs/student", "--weight", "1", "epochs=2")
        end = json.loads(self.run_program("train", "runs/student/job.yaml", "--log", "json").splitlines()[-1])
        self.assertGreater(end["metrics"]["accuracy"], 0.5)


def write_cifar(path, samples):
    """An archive like the official one. A class is a coarse pattern of colours, of which each image has a noisy copy."""
    chance = random.Random(4)
    patterns = [[chance.randrange(256) for _ in range(3 * 4 * 4)] for _ in range(10)]
    records = b""
    for i in range(samples):
        noise = chance.randbytes(3 * 32 * 32)
        pattern = patterns[i % 10]
        coarse = b"".join(bytes(pattern[channel * 16 + row // 8 * 4 + column] for column in range(4) for _ in range(8))
                          for channel in range(3) for row in range(32))
        records += bytes([i % 10]) + bytes((a + b) // 2 for a, b in zip(coarse, noise))
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("batches.meta.txt", "\n".join(CIFAR_CLASSES).encode()), ("data_batch_1.bin", records)):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def tensor(path, name):
    """Its bytes in a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return data[8 + size + begin:8 + size + end]


if __name__ == "__main__":
    unittest.main()
