#!/usr/bin/env python3
"""`normalize_target`: what is learnt has the bits of targets that the file has normalized already, on any number of ranks
and in parts; what is told, by every command, is in the file's units."""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
SETTINGS = """
  batch_size: 12
  micro_batches: 4
  epochs: 40
  optimizer: adam
  learning_rate: 0.03
"""
JOB = """job:
  name: goods
  model: {layers: [{linear: 16}, tanh, {linear: 2}]}
  data: {train: {table: {path: goods.csv, target: [price, weight]}}, normalize_target: true}
  loss: huber
  metrics: [mae, r2]""" + SETTINGS
BRANCHES = """job:
  name: branches
  model:
    layers:
      - {linear: {features: 16}}
      - {tanh: {}, name: trunk}
      - {linear: {features: 12}, inputs: trunk}
      - tanh
      - {linear: {features: 1}, name: of_price}
      - {linear: {features: 12}, inputs: trunk}
      - tanh
      - {linear: {features: 1}, name: of_weight}
  data: {train: {table: {path: goods.csv, target: [price, weight]}}, normalize_target: true, validation: {fraction: 0.2}}
  loss:
    - {mean_squared_error: {}, target: price, output: of_price}
    - {huber: {}, target: weight, output: of_weight, weight: 0.5}
  metrics: [price/mae, weight/rmse]""" + SETTINGS
IMAGES = """job:
  name: images
  model: {layers: [{conv: {filters: 4, kernel: 3}}, relu, flatten, {linear: 1}]}
  data: {train: {csv: {path: images.csv, target: year}}, normalize_target: true}
  loss: mean_squared_error
  metrics: [mae]""" + SETTINGS.replace("epochs: 40", "epochs: 10")


def single(x):
    """As fp32 holds it."""
    return struct.unpack("f", struct.pack("f", x))[0]


def statistics(column):
    column = [single(x) for x in column]
    mean = sum(column) / len(column)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in column) / len(column))


def normalized(x, mean, std):
    return single(single(single(x) + single(-mean)) * single(1 / std))


def grey_png(path, pixels):
    """Of rows of bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(row) for row in pixels))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


class NormalizedTargets(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        # A price in hundred thousands, which fp16 cannot hold and bf16 knows to 1,024; a weight in thousandths.
        self.rows = [[3 + i % 10, i * 7 % 13, 250000 + 9000 * (i % 10) + 40 * (i * 7 % 13), 0.001 * (i * 7 % 13)]
                     for i in range(60)]
        self.scales = [statistics([row[c] for row in self.rows]) for c in (2, 3)]
        self.write("goods.csv", self.rows)
        (self.folder / "job.yaml").write_text(JOB)

    def write(self, name, rows):
        (self.folder / name).write_text("\n".join(["a,b,price,weight"] + [",".join(map(repr, row)) for row in rows]) + "\n")

    def run_it(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=300, check=False,
                              env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def last(self, run, name):
        return events_of(self.folder / run, name)[-1]

    def hash_of(self, run):
        return self.last(run, "end")["parameters_sha256"]

    def evaluated(self, run, *words):
        return json.loads(self.run_it("eval", run, *words, "--log", "json").stdout)

    def predicted(self, *words, file="goods.csv"):
        lines = self.run_it(*words, file, "--log", "json").stdout.splitlines()
        return [json.loads(line)["values"] for line in lines]

    def error(self, said, of, rows=None):
        """The mean absolute one of a number."""
        rows = self.rows if rows is None else rows
        return sum(abs(values[of] - single(row[2 + of])) for values, row in zip(said, rows)) / len(rows)

    def test_the_bits_of_targets_that_were_normalized_before(self):
        self.write("scaled.csv", [[*row[:2], *(normalized(x, *scale) for x, scale in zip(row[2:], self.scales))]
                                  for row in self.rows])
        self.run_it("train", "job.yaml", "data.train.table.path=scaled.csv", "data.normalize_target=false", "name=scaled")
        for ranks in (1, 2, 3):
            self.run_it("train", "job.yaml", f"name=plain{ranks}", "--ranks", str(ranks))
        self.assertEqual(len({self.hash_of(f"runs/{run}") for run in ("scaled", "plain1", "plain2", "plain3")}), 1)
        own, theirs = self.evaluated("runs/plain1", "--set", "train"), self.evaluated("runs/scaled", "--set", "train")
        self.assertAlmostEqual(own["loss"], theirs["loss"], 6)
        self.assertAlmostEqual(own["metrics"]["r2"], theirs["metrics"]["r2"], 2)
        said = self.predicted("predict", "runs/plain1")
        errors = [self.error(said, 0), self.error(said, 1)]
        self.assertLess(errors[0], 8000)
        self.assertLess(errors[1], 0.002)
        self.assertAlmostEqual(own["metrics"]["mae"] / (sum(errors) / 2), 1, 4)

    def test_towers_in_parts(self):
        (self.folder / "towers.yaml").write_text(JOB.replace("{layers: [{linear: 16}, tanh, {linear: 2}]}", """
    layers:
      - {linear: {features: 16}, inputs: features}
      - {tanh: {}, name: left}
      - {linear: {features: 16}, inputs: features}
      - {tanh: {}, name: right}
      - {mul: {inputs: [left, right]}}
      - {linear: {features: 2}}"""))
        for name, words in {"whole": [], "parts": ["--ranks", "3", "parallel.parts=3"],
                            "towers": ["--ranks", "2", "parallel.parts.branches=auto"]}.items():
            self.run_it("train", "towers.yaml", f"name={name}", *words)
        self.assertEqual({self.hash_of("runs/parts"), self.hash_of("runs/towers")}, {self.hash_of("runs/whole")})
        self.assertLess(self.error(self.predicted("predict", "runs/towers"), 0), 8000)

    def test_branches_with_losses_of_their_own_and_in_parts(self):
        (self.folder / "branches.yaml").write_text(BRANCHES)
        ways = {"whole": [], "ranks": ["--ranks", "3"], "two": ["--ranks", "2", "parallel.parts=2"],
                "five": ["--ranks", "5", "parallel.parts=3"]}
        for name, words in ways.items():
            self.run_it("train", "branches.yaml", f"name={name}", *words)
        told = [(self.hash_of(f"runs/{name}"), self.last(f"runs/{name}", "eval")["loss"],
                 self.last(f"runs/{name}", "eval")["metrics"]) for name in ways]
        self.assertEqual(told, told[:1] * len(ways))
        self.assertEqual(told[0][1:], tuple(self.evaluated("runs/two")[key] for key in ("loss", "metrics")))
        lines = self.run_it("predict", "runs/two", "goods.csv", "--log", "csv").stdout.splitlines()
        said = [list(map(float, line.split(",")[1:])) for line in lines[1:]]
        self.assertLess(self.error(said, 0), 8000)
        self.assertLess(self.error(said, 1), 0.002)
        in_train, in_validation = (self.evaluated("runs/two", "--set", name)["metrics"] for name in ("train", "validation"))
        absolute = (48 * in_train["price/mae"] + 12 * in_validation["price/mae"]) / 60
        self.assertAlmostEqual(absolute / self.error(said, 0), 1, 4)
        squared = 48 * in_train["weight/rmse"] ** 2 + 12 * in_validation["weight/rmse"] ** 2
        expected = sum((values[1] - single(row[3])) ** 2 for values, row in zip(said, self.rows))
        self.assertAlmostEqual(squared / expected, 1, 4)

    def test_in_low_precision_units_are_exact(self):
        """What is told of the same weights: a number far from 0 is not rounded on its way."""
        for precision in ("bf16", "fp16"):
            run = f"runs/{precision}"
            self.run_it("train", "job.yaml", f"precision={precision}", f"name={precision}")
            metrics = self.evaluated(run, "--set", "train")["metrics"]
            said = self.predicted("predict", run)
            errors = [self.error(said, 0), self.error(said, 1)]
            self.assertLess(errors[0], 8000)
            self.assertAlmostEqual(metrics["mae"] / (sum(errors) / 2), 1, 4)
            self.assertTrue(any(values[0] % 512 for values in said), said[:3])
            as_fp32 = self.predicted("predict", run, "precision=fp32")
            for values, exact in zip(said, as_fp32):
                for value, wanted, (_, std) in zip(values, exact, self.scales):
                    self.assertLess(abs(value - wanted), 0.05 * std)

    def test_folds_have_statistics_of_their_own_training_sets(self):
        means, squares = [0, 0], [0, 0]
        for fold in range(1, 6):
            run = f"runs/fold{fold}"
            self.run_it("train", "job.yaml", f"data.validation.fold={fold} of 5", "epochs=8", f"name=fold{fold}")
            newest = sorted((self.folder / run / "checkpoints").glob("step-*"))[-1]
            found = json.loads((newest / "manifest.json").read_text())["data"]["targets"]["label"]
            for c in (0, 1):
                means[c] += 48 * found["mean"][c]
                squares[c] += 48 * (found["mean"][c] ** 2 + found["std"][c] ** 2)
            end = self.last(run, "eval")
            self.assertEqual({key: self.evaluated(run)[key] for key in ("loss", "metrics")},
                             {key: end[key] for key in ("loss", "metrics")})
        for c in (0, 1):  # each row is in four of five training sets
            column = [single(row[2 + c]) for row in self.rows]
            self.assertAlmostEqual(means[c] / (4 * sum(column)), 1, 9)
            self.assertAlmostEqual(squares[c] / (4 * sum(x * x for x in column)), 1, 9)

    def test_ensembles(self):
        """The loss of all rows is on the first member's scale, so that they can be compared; metrics are in units."""
        self.run_it("ensemble", "train", "job.yaml", "loss=mean_squared_error", "data.validation.fraction=0.3", "--members", "2",
                    "--by", "bootstrap", "--ranks", "1", "--directory", "e")
        runs = [f"e/trials/{m:04}" for m in range(2)]
        scales = []
        for run in runs:
            newest = sorted((self.folder / run / "checkpoints").glob("step-*"))[-1]
            scales.append(json.loads((newest / "manifest.json").read_text())["data"]["targets"]["label"])
        self.assertNotEqual(*scales)
        one = self.run_it("ensemble", "eval", "e", "--log", "json").stdout
        result = json.loads(one)
        two = json.loads(self.run_it("ensemble", "eval", "e", "--log", "json", "--ranks", "2").stdout)
        self.assertEqual({**result, "seconds": 0}, {**two, "seconds": 0})
        alone = [self.evaluated(run) for run in runs]
        self.assertEqual([member["metrics"] for member in result["members"]], [member["metrics"] for member in alone])
        self.assertAlmostEqual(result["members"][0]["loss"] / alone[0]["loss"], 1, 4)
        self.assertNotAlmostEqual(result["members"][1]["loss"] / alone[1]["loss"], 1, 4)
        own_scale = json.loads(self.run_it("ensemble", "eval", runs[1], runs[0], "--log", "json").stdout)
        self.assertAlmostEqual(own_scale["members"][0]["loss"] / alone[1]["loss"], 1, 4)
        together = self.predicted("ensemble", "predict", "e")
        members = [self.predicted("predict", run) for run in runs]
        for found, *of_members in zip(together, *members):
            for c in (0, 1):
                self.assertAlmostEqual(found[c] / (sum(values[c] for values in of_members) / 2), 1, 5)
        # The weights minimise what the loss measures, in which a weight counts as much as a price.
        by = {row["by"]: row["loss"] for row in result["combined"]}
        self.assertLessEqual(by["weighted"], by["mean"] * (1 + 1e-6))

    def images(self):
        """A year, told by how bright an image is."""
        years = [1900 + i * 37 % 110 for i in range(24)]
        for i, year in enumerate(years):
            grey_png(self.folder / f"{i}.png", [[(year - 1900) * 2 + (x * y + i) % 8 for x in range(6)] for y in range(6)])
        return years

    def write_images(self, name, years):
        (self.folder / name).write_text("image,year\n" + "".join(f"{i}.png,{year!r}\n" for i, year in enumerate(years)))

    def test_numbers_of_images(self):
        years = self.images()
        scale = statistics(years)
        self.write_images("images.csv", years)
        self.write_images("scaled.csv", [normalized(year, *scale) for year in years])
        (self.folder / "images.yaml").write_text(IMAGES)
        self.run_it("train", "images.yaml", "data.train.csv.path=scaled.csv", "data.normalize_target=false", "name=scaled")
        for ranks in (1, 2):
            self.run_it("train", "images.yaml", f"name=plain{ranks}", "--ranks", str(ranks))
        self.assertEqual(len({self.hash_of(f"runs/{run}") for run in ("scaled", "plain1", "plain2")}), 1)
        own = self.evaluated("runs/plain1", "--set", "train")
        said = [json.loads(line)["values"][0] for line in self.run_it(
            "predict", "runs/plain1", *(f"{i}.png" for i in range(24)), "--log", "json").stdout.splitlines()]
        error = sum(abs(value - year) for value, year in zip(said, years)) / 24
        self.assertLess(error, 15)
        self.assertAlmostEqual(own["metrics"]["mae"] / error, 1, 4)

    def test_what_cannot_be_normalized(self):
        where = "lockstep: job.data.normalize_target: "
        none = (where + "expected numbers to predict, and a loss of their differences such as mean_squared_error, found none; leave "
                "it out\n")
        (self.folder / "kinds.csv").write_text("a,kind\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(24)))
        words = ["data.train.table={path: kinds.csv, target: kind}", "loss=cross_entropy", "metrics=accuracy"]
        self.assertEqual(self.run_it("train", "job.yaml", *words, code=78).stderr, none)
        self.assertEqual(
            self.run_it("train", "job.yaml", "loss=[{huber: {}, target: price}, {huber: {}, target: weight}]", "metrics=price/mae",
                        code=78).stderr,
            where + "expected a layer for each target, found 'price' and 'weight' predicted by one; give each loss an `output` of its "
            "own\n")
        (self.folder / "images.yaml").write_text(IMAGES.replace("target: year", "mask: x, classes: [a, b]"))
        self.assertEqual(self.run_it("check", "images.yaml", "--no-data", code=78).stderr,
                         "lockstep: images.yaml:4:88: job.data.normalize_target: expected numbers to predict, of a table or of a csv "
                         "with a target, found csv; leave it out\n")


if __name__ == "__main__":
    unittest.main()
