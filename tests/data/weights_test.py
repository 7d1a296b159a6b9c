#!/usr/bin/env python3
"""Weights of samples and of classes: what the weighted mean is, that no bit of it depends on ranks, and what is told.

A weight of 2 is a row that stands there twice, and weights that are all the same are none.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """job:
  model: {layers: [{linear: 8}, tanh, {linear: %d}]}
  data: {train: {table: {path: %s, target: %s, features: [a, b]%s}}, normalize: never}
  loss: %s
  batch_size: %d
  micro_batches: 4
  steps: 20
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.1
"""
ROWS = 24


def row(i):
    """Two features, a number, and one of two classes, of which the second is half as frequent."""
    a, b = (i * 7 % 24) / 24, (i * 5 % 24) / 12 - 1
    return f"{a:.4f},{b:.4f},{2 * a - b * b + (i % 5) / 10:.4f},{'dog' if i % 3 == 2 else 'cat'}"


def table(copies=lambda i: 1, **columns):
    """`columns`: more of them, each a function of the row's number."""
    lines = ["a,b,size,kind" + "".join(f",{name}" for name in columns)]
    for i in range(ROWS):
        lines += [row(i) + "".join(f",{of(i)}" for of in columns.values())] * copies(i)
    return "\n".join(lines) + "\n"


class Weights(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def run_it(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=300, check=False,
                              env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def train(self, name, text, target="size", loss="mean_squared_error", settings="", rows=ROWS, overrides=(), ranks=1):
        """Steps' losses, and the hash of the parameters."""
        (self.folder / f"{name}.csv").write_text(text)
        outputs = 1 if loss == "mean_squared_error" else 2
        (self.folder / f"{name}.yaml").write_text(JOB % (outputs, f"{name}.csv", target, settings, loss, rows))
        self.run_it("train", f"{name}.yaml", "--ranks", str(ranks), f"run_directory=runs/{name}{ranks}", *overrides)
        run = self.folder / f"runs/{name}{ranks}"
        return [e["loss"] for e in events_of(run, "step")], events_of(run, "end")[-1]["parameters_sha256"]

    def weigh(self, name, weight, **others):
        return self.train(name, table(w=weight), settings=", weight: w", **others)

    def test_a_weight_is_a_number_of_copies(self):
        weighted, _ = self.weigh("weighted", lambda i: 1 + i % 3)
        repeated, _ = self.train("repeated", table(lambda i: 1 + i % 3), rows=2 * ROWS)
        plain, _ = self.train("plain", table())
        for step, (one, other) in enumerate(zip(weighted, repeated)):
            self.assertAlmostEqual(one, other, delta=2e-5 * other, msg=f"step {step + 1}")
        self.assertGreater(abs(plain[-1] - repeated[-1]), 1e-3 * repeated[-1])

    def test_a_weight_of_0_leaves_a_row_out(self):
        weighted, _ = self.weigh("without", lambda i: i % 2)
        left, _ = self.train("left", table(lambda i: i % 2), rows=ROWS // 2)
        for one, other in zip(weighted, left):
            self.assertAlmostEqual(one, other, delta=2e-5 * other)

    def test_equal_weights_are_none(self):
        plain = self.train("plain", table())
        self.assertEqual(self.weigh("one", lambda i: 1), plain)
        self.assertEqual(self.weigh("two", lambda i: 2), plain)  # a power of two changes no bit of a quotient

    def test_bits_do_not_depend_on_ranks(self):
        runs = {str(self.weigh("ranks", lambda i: 0.3 + i % 4, ranks=ranks)) for ranks in (1, 2, 3)}
        self.assertEqual(len(runs), 1)
        balanced = ["data.class_weights=balanced"]
        runs = {str(self.train("classes", table(), "kind", "cross_entropy", overrides=balanced, ranks=ranks))
                for ranks in (1, 2, 3)}
        self.assertEqual(len(runs), 1)

    def test_class_weights_are_weights_of_the_samples(self):
        # 16 cats and 8 dogs: 24 / (2 * 16) and 24 / (2 * 8)
        of_rows = self.train("rows", table(w=lambda i: 1.5 if i % 3 == 2 else 0.75), "kind", "cross_entropy", ", weight: w")
        for number, weights in enumerate(("balanced", "[0.75, 1.5]", "{cat: 0.75, dog: 1.5}")):
            of_classes = self.train(f"classes{number}", table(), "kind", "cross_entropy",
                                    overrides=[f"data.class_weights={weights}"])
            self.assertEqual(of_classes, of_rows, weights)
        start = events_of(self.folder / "runs/classes01", "start")[-1]
        self.assertEqual(start["weights"], "by class: cat 0.75, dog 1.5")
        self.assertEqual(events_of(self.folder / "runs/rows1", "start")[-1]["weights"], "of each sample")
        doubled = self.train("doubled", table(w=lambda i: 2), "kind", "cross_entropy", ", weight: w",
                             overrides=["data.class_weights=balanced"])
        self.assertEqual(doubled, of_rows)  # both multiply

    def test_validation_counts_all_alike(self):
        cut = ["data.validation.fraction=0.25"]
        self.weigh("weighted", lambda i: 1 + i, rows=16, overrides=cut)
        loss = events_of(self.folder / "runs/weighted1", "eval")[-1]["loss"]
        self.assertIn(f"{loss:.6g}", self.run_it("eval", "runs/weighted1").stdout)
        self.train("plain", table(), rows=16, overrides=[*cut, "initialize.from=runs/weighted1", "learning_rate=1e-30"])
        plain = events_of(self.folder / "runs/plain1", "eval")[-1]["loss"]
        self.assertAlmostEqual(loss, plain, delta=1e-5 * loss)

    def test_data_info_tells_them(self):
        (self.folder / "t.csv").write_text(table(w=lambda i: 2))
        (self.folder / "job.yaml").write_text(JOB % (2, "t.csv", "kind", ", weight: w", "cross_entropy", ROWS))
        out = self.run_it("data", "info", "job.yaml", "data.class_weights=balanced").stdout
        self.assertIn("                      16  cat, weight 0.75\n                       8  dog, weight 1.5\n", out)
        self.assertIn("  feature      sample_weight (weight): f32 []\n", out)
        self.assertIn("weights by class: cat 0.75, dog 1.5\n",
                      self.run_it("check", "job.yaml", "data.class_weights=balanced").stdout)

    def test_predictions_need_no_weights(self):
        self.weigh("asked", lambda i: 1 + i % 3)
        (self.folder / "new.csv").write_text("a,b\n0.5,0.25\n")
        self.assertTrue(self.run_it("predict", "runs/asked1", "new.csv").stdout.startswith("new.csv:2  "))

    def test_a_batch_that_does_not_count(self):
        (self.folder / "t.csv").write_text(table(w=lambda i: 0))
        (self.folder / "job.yaml").write_text(JOB % (1, "t.csv", "size", ", weight: w", "mean_squared_error", ROWS))
        self.assertEqual(self.run_it("check", "job.yaml", code=65).stderr.split("table: ")[1],
                         "t.csv: column 'w': expected a weight above 0 for one sample at least, found none\n")
        (self.folder / "t.csv").write_text(table(w=lambda i: int(i == 0)))
        error = self.run_it("train", "job.yaml", "batch_size=1", "micro_batches=1", code=65).stderr
        self.assertEqual(error.splitlines()[-1],
                         "lockstep: step 1: nothing of the batch counts: all of its samples have weight 0, or all of its "
                         "targets are ignored; use a larger batch")


if __name__ == "__main__":
    unittest.main()
