#!/usr/bin/env python3
"""What `lockstep trace merge` says about real runs that were designed to have a known bottleneck.

verdicts_test.py             judges the timelines in tests/trace/recorded, of four steps each
verdicts_test.py --run       repeats the runs, on an otherwise idle machine, and judges them
verdicts_test.py --record    the same, and keeps their timelines
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from traced import merge, train

RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"
MODE = sys.argv.pop() if sys.argv[-1] in ("--run", "--record") else ""
ALWAYS = ["evaluate=never", "checkpoint=never", "threads=1", "metrics=[]", "optimizer=sgd", "learning_rate=0.001",
          "data.validation.digits.count=64", "steps=30"]
SMALL = "model.layers=[flatten,{linear: {features: 10}}]"
WIDE = ("model.layers=[flatten,{linear: {features: 2048}},relu,{linear: {features: 1024}},relu,"
        "{linear: {features: 10}}]")
DEEP = f"model.layers=[flatten,{{linear: {{features: 4}}}},{','.join(['relu'] * 40)},{{linear: {{features: 10}}}}]"


class Verdicts(unittest.TestCase):
    def judge(self, name, ranks, *words, hosts=False):
        """The verdict's word, its parts in percent, and the whole sentence."""
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder) / "run"
            if MODE:
                train(directory, ranks, "--profile", "21-24", *ALWAYS, *words, hosts=hosts)
            else:
                shutil.copytree(RECORDED / name, directory / "trace")
            if MODE == "--record":
                shutil.rmtree(RECORDED / name, ignore_errors=True)
                shutil.copytree(directory / "trace", RECORDED / name)
            sentence = merge(directory)[0][1]
        names = ("computing is", "waiting for data", "exposed communication", "load imbalance",
                 "kernel launches", "update")
        return sentence.split(":")[0], {name: int(re.search(f"{name} (\\d+) %", sentence)[1]) for name in names}, sentence

    def test_compute_bound(self):
        """A convolutional network on one rank, its few samples cached in memory."""
        word, parts, sentence = self.judge("compute", 1, "model=lenet", "data.train.digits.count=256", "batch_size=64",
                                           "micro_batches=4")
        self.assertEqual(word, "compute-bound", sentence)
        self.assertGreater(parts["computing is"], 60, sentence)
        self.assertTrue(sentence.endswith("More ranks or threads make it faster."), sentence)

    def test_input_bound(self):
        """A linear layer, and images that one thread resizes and rotates for it, anew in each step."""
        word, parts, sentence = self.judge(
            "input", 1, SMALL, "data.train.digits.count=256", "data.cache=none", "data.threads=1", "data.depth=1",
            "batch_size=64", "micro_batches=2", "data.augment=[{resized_crop: {size: 96}},{rotate: {degrees: 30}}]",
            "data.prepare=[{resize: {size: 96}}]")
        self.assertEqual(word, "input-bound", sentence)
        self.assertGreater(parts["waiting for data"], 40, sentence)
        self.assertIn("rank 0 on ", sentence)
        self.assertIn("Try data.threads, ", sentence)

    def test_reduce_bound(self):
        """Two pretended hosts, a large layer and few samples: gradients are sent as messages."""
        word, parts, sentence = self.judge("reduce", 2, WIDE, "data.train.digits.count=64", "batch_size=2", "micro_batches=2",
                                           hosts=True)
        self.assertEqual(word, "communication-bound", sentence)
        self.assertGreaterEqual(parts["exposed communication"], 20, sentence)
        self.assertIn("Try a larger batch_size, ", sentence)

    def test_imbalanced(self):
        """Two hosts, one of which the job wrongly declares to be seven times as fast."""
        word, parts, sentence = self.judge("imbalance", 2, "model=lenet", "data.train.digits.count=256", "batch_size=128",
                                           "micro_batches=8", "balance={weights: {h0: 7, h1: 1}}", hosts=True)
        self.assertEqual(word, "imbalanced", sentence)
        self.assertGreaterEqual(parts["load imbalance"], 20, sentence)
        self.assertIn("rank 0 on h0 is the slowest most often. Try balance=auto, ", sentence)

    def test_pipeline_bound(self):
        """Two parts with only two micro-batches to alternate between."""
        word, _, sentence = self.judge("pipeline", 2, WIDE, "data.train.digits.count=256", "batch_size=256", "micro_batches=2",
                                       "parallel.parts=2")
        self.assertEqual(word, "pipeline-bound", sentence)
        self.assertGreaterEqual(int(re.search(r"for other parts (\d+) %", sentence)[1]), 20, sentence)
        self.assertIn("Try more micro-batches, ", sentence)

    def test_launch_bound(self):
        """Kernels over four numbers."""
        word, parts, sentence = self.judge("launch", 1, DEEP, "data.train.digits.count=64", "batch_size=8", "micro_batches=8",
                                           "data.depth=64")
        self.assertEqual(word, "launch-bound", sentence)
        self.assertGreaterEqual(parts["kernel launches"], 20, sentence)
        self.assertRegex(sentence, r"; a kernel takes [\d.]+ us\. Try fewer and larger micro-batches")


if __name__ == "__main__":
    unittest.main(verbosity=2)
