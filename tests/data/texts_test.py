#!/usr/bin/env python3
"""Texts of several lengths from beginning to end: what `data info` tells of them, what a run learns on any number of ranks, and
what `eval` and `predict` say of texts in files, CSV and JSON lines."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """job:
  name: calls
  model:
    layers:
      - {embedding: {vocabulary: 256, width: 8}, inputs: tokens}
      - {gru: 12}
      - {last: {inputs: [previous, length]}}
      - {linear: 2}
  data: {train: {texts: {path: calls.jsonl, text: call, label: animal, context: 30}}, validation: {fraction: 0.25}}
  metrics: [accuracy]
  batch_size: 12
  micro_batches: 4
  epochs: 20
  optimizer: adam
  learning_rate: 0.02
"""
CALLS = {"cat": "meow", "dog": "woof"}


def call(animal, times):
    return " ".join([CALLS[animal]] * times)


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        lines = [json.dumps({"call": call(animal, i % 5 + 1), "animal": animal}) for i in range(32) for animal in CALLS]
        (cls.folder / "calls.jsonl").write_text("\n".join(lines) + "\n")
        (cls.folder / "job.yaml").write_text(JOB)

    def run_it(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=300, check=False,
                              env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_what_is_told_of_them(self):
        out = self.run_it("data", "info", "texts=calls.jsonl", "text=call", "label=animal", "context=20").stdout
        self.assertIn("lengths      4 to 20 tokens, half of them up to 14\n", out)
        self.assertIn("warning      12 of 64 texts are longer than the context of 20 tokens, the longest has 24: their ends are "
                      "cut off\n", out)

    def test_texts_that_training_has(self):
        words = ["red", "green", "lamp", "road", "bus"]
        rows = [f"{i} {' '.join(words[i // 5 ** k % 5] for k in range(3))},{'ab'[i % 2]}\n" for i in range(60)]
        def told(train, validation):
            (self.folder / "train.csv").write_text("text,label\n" + "".join(train))
            (self.folder / "own.csv").write_text("text,label\n" + "".join(validation or []))
            own = "{texts: own.csv}" if validation else "{fraction: 0.25}"
            (self.folder / "job.yaml").write_text(
                "job:\n  model: {layers: [{embedding: {vocabulary: 256, width: 2}, inputs: tokens}, {mean: {axis: 1, inputs: "
                "[previous, length]}}, {linear: 2}]}\n  data: {train: {texts: {path: train.csv, context: 24}}, validation: "
                f"{own}}}\n  batch_size: 8\n  epochs: 1\n")
            return self.run_it("check", "job.yaml").stderr
        self.assertIn("warning: validation: 60 of 60 samples are in the training set, too: own.csv:2, ", told(rows, rows[::-1]))
        self.assertIn("warning: validation: 40 of 60 samples are in the training set, too: ", told(rows[20:], rows))
        self.assertIn(" of 60 samples are in the training set, too: train.csv:", told(rows * 4, None))
        self.assertEqual(told(rows[40:], rows), "", "short texts may be there twice")

    def test_text_that_training_has(self):
        """Wherever it lies: a validation text is no sample of its own but part of the one that is trained on."""
        random.seed(1)
        words = ["red", "green", "lamp", "road", "bus", "tree", "stone"]
        def text(count):
            return " ".join(random.choice(words) + str(random.randrange(100)) for _ in range(count))
        trained, other = text(2000), text(400)
        def told(validation, train=trained, context=16):
            (self.folder / "train.txt").write_text(train)
            (self.folder / "own.txt").write_text(validation or "")
            own = "{text: own.txt}" if validation else "{fraction: 0.1}"
            (self.folder / "job.yaml").write_text(
                "job:\n  model: {layers: [{embedding: {vocabulary: 256, width: 4}}, {linear: {features: 256}}]}\n"
                f"  data: {{train: {{text: {{path: train.txt, context: {context}, tokenizer: bytes}}}}, validation: {own}}}\n"
                "  batch_size: 4\n  epochs: 1\n")
            return self.run_it("check", "job.yaml").stderr
        for context in (4, 16, 100):
            windows = (3000 - 1) // context
            found = re.fullmatch(r"warning: validation: (\d+) of (\d+) samples are in the training set, too: #0, #1, #2 and "
                                 r"\d+ more\n", told(trained[1001:4001], context=context))
            self.assertGreaterEqual(int(found[1]), windows * 0.97 - 1)
            self.assertEqual(int(found[2]), windows)
            self.assertEqual(told(other, context=context), "")
        self.assertEqual(told(other + trained[100:1000]), "", "less than half of it")
        self.assertIn(" samples are in the training set, too: ", told(None, train=other * 4))
        self.assertEqual(told(None), "")

    def test_classes_that_are_no_texts(self):
        for values, classes in (([True, False], "false true"), ([0, 1], "0 1"), ([0.0, 1.0], "0.0 1.0"),
                                ([1, 2.0, 1.0, 2], "1 2")):
            lines = [json.dumps({"text": "meow", "label": values[i % len(values)]}) for i in range(8)]
            (self.folder / "labels.jsonl").write_text("\n".join(lines))
            out = self.run_it("data", "info", "texts=labels.jsonl", "context=8").stdout
            self.assertEqual(re.findall(r"^ +4  (\S+)$", out, re.MULTILINE), classes.split())
        for value, fault in (("null", "entry 'label': expected a class, found nothing"),
                             ("[1]", "expected an object with the entry 'label', a text, a number, true or false")):
            (self.folder / "labels.jsonl").write_text('{"text": "a", "label": 1}\n{"text": "a", "label": %s}\n' % value)
            self.assertEqual(self.run_it("data", "info", "texts=labels.jsonl", "context=8", code=65).stderr,
                             f"lockstep: labels.jsonl: 1 of 2 samples is bad: labels.jsonl:2: {fault}. Repair or "
                             "remove them, or say `bad_samples: skip`\n")
        (self.folder / "labels.json").write_text("[]")
        self.assertEqual(self.run_it("data", "info", "texts=labels.json", "context=8", code=65).stderr,
                         "lockstep: labels.json: expected texts, or a CSV, Parquet or .jsonl file of such, found a "
                         ".json file; write a .jsonl file, an object a line\n")

    def test_learning_and_predicting(self):
        hashes = set()
        for ranks in (1, 3):
            self.run_it("train", "job.yaml", "--ranks", str(ranks), f"name=r{ranks}")
            hashes.add(events_of(self.folder / f"runs/r{ranks}", "end")[-1]["parameters_sha256"])
        self.assertEqual(len(hashes), 1)
        self.assertEqual(json.loads(self.run_it("eval", "runs/r1", "--log", "json").stdout)["metrics"]["accuracy"], 1)
        details = self.run_it("eval", "runs/r1", "--details").stdout
        self.assertRegex(details, r"calls\.jsonl:\d+: (meow|woof)")
        self.assertNotIn("\0", details)  # of a text, not of what stands behind it
        (self.folder / "a.txt").write_text(call("dog", 2))
        (self.folder / "b.csv").write_text(f"number,call\n1,{call('cat', 5)}\n2,{call('cat', 1)}\n")
        (self.folder / "c.jsonl").write_text(json.dumps({"call": call("dog", 4)}) + "\n")
        out = self.run_it("predict", "runs/r1", "a.txt", "b.csv", "c.jsonl", "--top", "1").stdout.splitlines()
        self.assertEqual(out[::2], ["a.txt", "b.csv:2", "b.csv:3", "c.jsonl:1"])
        self.assertEqual([line.split()[1] for line in out[1::2]], ["dog", "cat", "cat", "dog"])
        self.assertEqual(self.run_it("ensemble", "predict", "runs/r1", "runs/r3", "a.txt", "b.csv", "c.jsonl", "--top",
                                     "1").stdout.splitlines(), out)
        lines = self.run_it("predict", "runs/r1", "a.txt", "b.csv", "--log", "json", "--ranks", "2").stdout.splitlines()
        self.assertEqual([json.loads(line)["row"] for line in lines], ["a.txt", "b.csv:2", "b.csv:3"])
        (self.folder / "post/late").mkdir(parents=True)
        (self.folder / "post/.hidden").write_text("meow")
        (self.folder / "post/b").write_text(call("cat", 2))
        (self.folder / "post/late/a.txt").write_text(call("dog", 1))
        out = self.run_it("predict", "runs/r1", "post", "--top", "1").stdout.splitlines()
        self.assertEqual([out[0], out[1].split()[1], out[2], out[3].split()[1]], ["post/b", "cat", "post/late/a.txt", "dog"])
        (self.folder / "none").mkdir()
        self.assertEqual(self.run_it("predict", "runs/r1", "none", code=64).stderr,
                         "lockstep: predict: 'none': expected files in this folder, found none\n")
        csv = self.run_it("predict", "runs/r1", "c.jsonl", "--log", "csv").stdout.splitlines()
        self.assertEqual(csv[0], "row,cat,dog")
        self.assertEqual(self.run_it("predict", "runs/r1", code=64).stderr,
                         "lockstep: predict: expected texts, or CSV, Parquet or .jsonl files of such, found none; give them "
                         "after the job\n")
        self.assertEqual(self.run_it("predict", "runs/r1", "--prompt", "meow", code=64).stderr,
                         "lockstep: --prompt: this job classifies texts and continues none; give files of texts instead\n")


if __name__ == "__main__":
    unittest.main()
