#!/usr/bin/env python3
"""Each job in examples/ trains, in small: two steps, and an evaluation. Data that are not here are stood in for by made-up
ones, where that is easy, or the example is skipped. What an example reaches, scripts/accuracy.py looks at."""

import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
DATA = pathlib.Path(os.environ.get("LOCKSTEP_DATA", "/nowhere"))
STEPS = ["steps=2", "evaluate={every: 2 steps}"]
DIGITS = ["data.validation.digits.count=40"]
FEW = {  # samples, where the example has more than two steps need
    "digits-large-batch": ["batch_size=40"], "digits-mixup": ["data.train.digits.count=120"],
    "mnist-cnn": ["data.train.digits=200", "data.validation.digits={count: 40, first: 1000000}"]}
REAL = {"cifar10-resnet20": "cifar10-train.tar.zst", "cifar10-resnet9": "cifar10-train.tar.zst"}
MADE_UP = "".join(f"Scene {i * i % 89}.\nTo be, or not to be: line {i}.\n" for i in range(500))


class Examples(unittest.TestCase):
    def test_each_trains_in_small(self):
        for path in sorted(EXAMPLES.glob("*.yaml")):
            text = path.read_text(encoding="utf-8")
            if "\nsweep:" not in text:
                with self.subTest(example=path.stem), tempfile.TemporaryDirectory() as folder:
                    self.train(path, text, folder)

    def train(self, path, text, folder):
        words = [*STEPS, f"run_directory={folder}/run", *FEW.get(path.stem, [])]
        if path.stem in REAL:
            if not (DATA / REAL[path.stem]).exists():
                self.skipTest(f"{REAL[path.stem]} is not there")
            words.append(f"data.train.images={DATA / REAL[path.stem]}")
        if "tinyshakespeare.txt" in text:
            (pathlib.Path(folder) / "text.txt").write_text(MADE_UP, encoding="utf-8")
            words.append(f"data.train.text.path={folder}/text.txt")
        if "validation: {digits: {count" in text and path.stem not in FEW:
            words += DIGITS
        done = subprocess.run([PROGRAM, "train", str(path), *words], cwd=EXAMPLES, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("validation", done.stderr)


if __name__ == "__main__":
    unittest.main()
