#!/usr/bin/env python3
"""Tables from beginning to end: the example of houses, whose price a line cannot say; classes; yes or no; several
targets. What a run learns is the same bits on any number of ranks, and `predict` says what training has seen.
"""
import bz2
import gzip
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """job:
  name: flowers
  model: {layers: [{linear: 16}, tanh, {linear: %d}]}
  data: {train: {table: {path: flowers.csv, target: %s}}}
  loss: %s
  metrics: [%s]
  batch_size: 12
  micro_batches: 4
  epochs: 40
  optimizer: adam
  learning_rate: 0.03
"""


def flowers():
    """Three kinds of flowers by two lengths, of which one is missing here and there; the others tell them apart."""
    rows = ["petal,sepal,kind,tall"]
    for i in range(60):
        kind = i % 3
        petal, sepal = 1 + kind + (i * 7 % 10) / 20, 5 - 2 * kind + (i * 3 % 10) / 20
        rows.append(f"{'' if i % 9 == 4 else petal},{sepal},{('rose', 'iris', 'daisy')[kind]},{'yes' if kind == 2 else 'no'}")
    return "\n".join(rows) + "\n"


class Commands(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "flowers.csv").write_text(flowers())

    def run_it(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=300, check=False,
                              env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def events(self, run, name):
        return events_of(self.folder / run, name)

    def evaluated(self, run):
        out = self.run_it("eval", run, "--set", "train").stdout
        return {name: float(value) for name, value in (line.split()[:2] for line in out.splitlines()[1:]) if name != "time"}


class Tables(Commands):
    def test_the_example_is_what_its_script_writes_and_learns_the_prices(self):
        made = subprocess.run([sys.executable, str(ROOT / "examples/houses.py")], capture_output=True, text=True, check=True)
        self.assertEqual(made.stdout, (ROOT / "examples/houses.csv").read_text())
        self.run_it("train", str(ROOT / "examples/houses.yaml"), "evaluate={every: 100 epochs}")
        metrics = self.events("runs/houses", "eval")[-1]["metrics"]
        self.assertLess(metrics["rmse"], 30)  # 15 of it are noise; prices have a standard deviation of 170
        self.assertLess(metrics["mae"], metrics["rmse"])

    def test_bits_do_not_depend_on_ranks(self):
        (self.folder / "job.yaml").write_text(JOB % (3, "kind", "cross_entropy", "accuracy"))
        hashes = set()
        for ranks in (1, 2, 3):
            self.run_it("train", "job.yaml", "--ranks", str(ranks), f"name=r{ranks}", "data.validation.fraction=0.2")
            hashes.add(self.events(f"runs/r{ranks}", "end")[-1]["parameters_sha256"])
            evaluation = self.events(f"runs/r{ranks}", "eval")[-1]
            hashes.add((evaluation["loss"], evaluation["metrics"]["accuracy"]))
        self.assertEqual(len(hashes), 2, hashes)

    def test_classes(self):
        (self.folder / "job.yaml").write_text(JOB % (3, "kind", "cross_entropy", "accuracy"))
        self.run_it("train", "job.yaml")
        self.assertEqual(self.evaluated("runs/flowers")["accuracy"], 1)
        (self.folder / "new.csv").write_text("sepal,petal,tall\n1.2,3.2,yes\n5.1,1.1,no\n")
        lines = self.run_it("predict", "runs/flowers", "new.csv", "--top", "1").stdout.split("\n")
        self.assertEqual([lines[0], lines[1].split()[1]], ["new.csv:2", "daisy"])
        self.assertEqual([lines[2], lines[3].split()[1]], ["new.csv:3", "rose"])
        (self.folder / "new.csv").write_text("sepal,tall\n1.2,yes\n")
        self.assertEqual(self.run_it("predict", "runs/flowers", "new.csv", code=65).stderr,
                         "lockstep: new.csv:1: expected a column 'petal', found sepal, tall\n")
        self.assertEqual(self.run_it("predict", "runs/flowers", code=64).stderr,
                         "lockstep: predict: expected CSV or Parquet files with the columns of the training set, found "
                         "none; give them after the job\n")

    def test_predictions_need_no_training_data(self):
        """Categories, and means and deviations of columns, are the checkpoint's, whatever became of the file."""
        (self.folder / "job.yaml").write_text(JOB % (3, "kind", "cross_entropy", "accuracy"))
        self.run_it("train", "job.yaml")
        (self.folder / "new.csv").write_text("sepal,petal,tall\n1.2,3.2,yes\n5.1,,no\n2.5,1.9,no\n")
        words = ["predict", "runs/flowers", "new.csv", "--log", "csv"]
        expected = self.run_it(*words).stdout
        self.assertEqual(len(expected.splitlines()), 4)
        (self.folder / "flowers.csv").write_text(flowers().replace("1.", "91.").replace("yes", "very"))
        self.assertEqual(self.run_it(*words).stdout, expected)
        (self.folder / "flowers.csv").unlink()
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        self.assertEqual(self.run_it(*words).stdout, expected)

    def test_yes_or_no(self):
        """Precision, recall and f1 against what `predict` says, counted here."""
        (self.folder / "job.yaml").write_text(JOB % (1, "tall", "binary_cross_entropy",
                                                     "binary_accuracy, precision, recall, f1"))
        self.run_it("train", "job.yaml", "data.train.table.features=sepal", "epochs=2", "learning_rate=0.01")
        line = self.run_it("predict", "runs/flowers", "flowers.csv").stdout.splitlines()[0]
        self.assertRegex(line, r"^flowers\.csv:2  yes [-.e\d]+$")
        metrics = self.evaluated("runs/flowers")
        said = [json.loads(line)["probabilities"][0] > 0.5
                for line in self.run_it("predict", "runs/flowers", "flowers.csv", "--log", "json").stdout.splitlines()]
        rows = [line.split(",")[3] == "yes" for line in flowers().splitlines()[1:]]
        both = sum(s and r for s, r in zip(said, rows))
        self.assertAlmostEqual(metrics["binary_accuracy"], sum(s == r for s, r in zip(said, rows)) / 60, 5)
        self.assertAlmostEqual(metrics["precision"], both / sum(said) if any(said) else 0, 5)
        self.assertAlmostEqual(metrics["recall"], both / sum(rows), 5)
        self.assertAlmostEqual(metrics["f1"], 2 * both / (sum(said) + sum(rows)), 5)

    def test_several_targets(self):
        (self.folder / "job.yaml").write_text(JOB % (2, "[petal, sepal]", "huber", "mae"))
        self.run_it("train", "job.yaml", "data.train.table.bad_samples=skip")
        self.assertLess(self.evaluated("runs/flowers")["mae"], 0.3)
        lines = self.run_it("predict", "runs/flowers", "flowers.csv").stdout.splitlines()
        self.assertEqual(len(lines), 60)
        self.assertRegex(lines[0], r"^flowers\.csv:2  petal [-.e\d]+  sepal [-.e\d]+$")
        header = self.run_it("predict", "runs/flowers", "flowers.csv", "--log", "csv").stdout.splitlines()[0]
        self.assertEqual(header, "row,petal,sepal")
        self.run_it("train", "job.yaml", 'data.train.table={path: flowers.csv, target: "[sp]e*al", bad_samples: skip}', "epochs=1",
                    "name=by_pattern")
        lines = self.run_it("predict", "runs/by_pattern", "flowers.csv").stdout.splitlines()
        self.assertRegex(lines[0], r"^flowers\.csv:2  petal [-.e\d]+  sepal [-.e\d]+$")

    def test_parquet_is_the_csv(self):
        """The same values in both forms, as another program wrote them."""
        for form in ("csv", "parquet"):
            shutil.copy(ROOT / f"tests/data/parquet/polars.{form}", self.folder)
            (self.folder / f"{form}.yaml").write_text(JOB.replace("flowers", f"polars.{form}", 1).replace(
                "flowers.csv", f"polars.{form}") % (1, "real, features: [small, word, flag]", "mean_squared_error", "mae"))
            self.run_it("train", f"{form}.yaml", "epochs=2")
        ends = [self.events(f"runs/polars.{form}", "end")[-1]["parameters_sha256"] for form in ("csv", "parquet")]
        self.assertEqual(*ends)
        lines = self.run_it("predict", "runs/polars.csv", "polars.parquet").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], [f"polars.parquet:{row}" for row in range(1, 121)])

    def test_a_target_that_is_no_share(self):
        (self.folder / "job.yaml").write_text(JOB % (1, "sepal", "binary_cross_entropy", "f1"))
        for command in ("check", "train"):
            error = self.run_it(command, "job.yaml", code=65).stderr
            self.assertEqual(error, "lockstep: flowers.csv:5: column 'sepal': expected a target from 0 to 1, as binary_cross_entropy "
                             "wants it, found 5.45; for other numbers use the loss mean_squared_error\n")

    def test_three_classes_for_a_loss_of_two(self):
        (self.folder / "job.yaml").write_text(JOB % (1, "kind", "binary_cross_entropy", "f1"))
        for command in ("check", "train"):
            error = self.run_it(command, "job.yaml", code=78).stderr
            self.assertEqual(error, "lockstep: job.yaml:5:9: job.loss: expected targets of two classes, 0 and 1, as binary_cross_entropy "
                             "wants them, found class 2 ('rose') in flowers.csv:2, column 'kind'; use the loss cross_entropy\n")

    def test_shares_that_do_not_add_up(self):
        (self.folder / "shares.csv").write_text("x,a,b,c\n1,0.5,0.25,0.25\n2,0.33,0.33,0.33\n3,0.5,0.5,0.5\n4,0,0,1\n")
        job = JOB.replace("flowers.csv", "shares.csv").replace("batch_size: 12", "batch_size: 4") % (3, "[a, b, c]", "kl_divergence", "")
        (self.folder / "job.yaml").write_text(job)
        for command in ("check", "train"):
            error = self.run_it(command, "job.yaml", code=65).stderr
            self.assertEqual(error, "lockstep: shares.csv:4: expected targets that add up to 1, as kl_divergence wants them, found 1.5 "
                             "in sum; divide each row by its sum\n")
        (self.folder / "shares.csv").write_text("x,a,b,c\n1,50,25,25\n2,0.33,0.33,0.33\n3,1,0,0\n4,0,0,1\n")
        self.assertEqual(self.run_it("check", "job.yaml", code=65).stderr,
                         "lockstep: shares.csv:2: column 'a': expected a target from 0 to 1, as kl_divergence wants it, found 50; divide "
                         "each row by its sum\n")

    def test_info_tells_what_columns_are(self):
        out = self.run_it("data", "info", "table=flowers.csv", "target=tall").stdout
        self.assertIn("column       petal: numbers, mean", out)
        self.assertIn("; some missing\n", out)
        self.assertIn("column       kind: 3 categories: daisy, iris, rose\n", out)
        self.assertIn("feature      features (columns): f64 [6]\n", out)
        refused = self.run_it("data", "pack", "table=flowers.csv", "target=tall", "flowers.pack", code=64).stderr
        self.assertEqual(refused, "lockstep: flowers.csv: tables are not packed: a rank reads all of one, once\n")


REGRESSION = """job:
  name: line
  model: {mlp: [16]}
  data:
    train: {table: {path: line.csv, target: %s}}
    normalize_target: true
  loss: mean_squared_error
  metrics: [rmse, mae, r2]
  batch_size: 20
  epochs: 60
  optimizer: adam
  learning_rate: {peak: 0.02, schedule: cosine}
"""


def r2_of(said, wanted):
    """scikit-learn's r2_score of one output."""
    mean = sum(wanted) / len(wanted)
    return 1 - sum((a - b) ** 2 for a, b in zip(said, wanted)) / sum((b - mean) ** 2 for b in wanted)


def rmse_of(said, wanted):
    return (sum((a - b) ** 2 for a, b in zip(said, wanted)) / len(wanted)) ** 0.5


class Numbers(Commands):
    """Numbers far from 0, several at once, and what a job need not say of them."""

    def write_line(self, columns, rows):
        (self.folder / "line.csv").write_text("\n".join([columns] + [",".join(map(repr, row)) for row in rows]) + "\n")

    def said(self, run="runs/line"):
        lines = self.run_it("predict", run, "line.csv", "--log", "json").stdout.splitlines()
        return [json.loads(line)["values"] for line in lines]

    def result(self, run="runs/line"):
        return json.loads(self.run_it("eval", run, "--set", "train", "--log", "json").stdout)["metrics"]

    def test_unix_times_and_a_target_far_from_0(self):
        rows = [[1_732_800_000_000 + 977 * i % 60_000, 1e8 + 977 * i % 60_000 / 60_000] for i in range(200)]
        self.write_line("t,y", rows)
        (self.folder / "job.yaml").write_text(REGRESSION % '"y"')
        self.run_it("train", "job.yaml")
        said, metrics = [values[0] for values in self.said()], self.result()
        wanted = [row[1] for row in rows]
        self.assertGreater(metrics["r2"], 0.99)
        self.assertAlmostEqual(metrics["r2"], r2_of(said, wanted), 5)
        self.assertAlmostEqual(metrics["rmse"], rmse_of(said, wanted), 5)
        self.assertLess(max(abs(a - b) for a, b in zip(said, wanted)), 0.2)
        self.assertEqual(self.result(), metrics)

    def test_several_targets_are_told_one_by_one(self):
        rows = [[i % 10, i * 7 % 13, 3.0 * (i % 10), (i * 7919 % 101) / 100] for i in range(200)]
        self.write_line("a,b,line,noise", rows)
        (self.folder / "job.yaml").write_text(REGRESSION % "[line, noise]")
        self.run_it("train", "job.yaml")
        said, metrics = self.said(), self.result()
        for name, of in (("r2", r2_of), ("rmse", rmse_of)):
            own = [of([values[c] for values in said], [row[2 + c] for row in rows]) for c in (0, 1)]
            self.assertAlmostEqual(metrics[f"line/{name}"], own[0], 4)
            self.assertAlmostEqual(metrics[f"noise/{name}"], own[1], 4)
            self.assertAlmostEqual(metrics[name], sum(own) / 2, 4)
        self.assertGreater(metrics["line/r2"], 0.99)
        self.assertLess(metrics["noise/r2"], 0.9)

    def test_classes_that_are_numbers(self):
        self.write_line("x,label", [[i, i % 3] for i in range(60)])
        (self.folder / "job.yaml").write_text(
            "job:\n  model: mlp\n  data: {train: {table: {path: line.csv, target: label}}}\n  batch_size: 20\n"
            "  epochs: 1\n")
        self.assertEqual(self.run_it("check", "job.yaml", code=78).stderr.split("job.loss: ")[1],
                         "expected a target of classes, as cross_entropy wants it, found numbers in column 'label'; "
                         "add `categorical: [label]` to the table, or use the loss mean_squared_error\n")
        self.run_it("train", "job.yaml", "data.train.table.categorical=[label]")

    def test_a_category_unknown_to_the_model(self):
        (self.folder / "job.yaml").write_text(JOB % (1, "sepal, features: [kind]", "mean_squared_error", "mae"))
        self.run_it("train", "job.yaml", "epochs=1")
        (self.folder / "new.csv").write_text("kind\nrose\ntulip\n")
        words = ["predict", "runs/flowers", "new.csv"]
        self.assertEqual(self.run_it(*words, code=65).stderr,
                         "lockstep: new.csv: 1 of 2 samples is bad: new.csv:3: column 'kind': expected one of daisy, "
                         "iris, rose, as in the training set, found 'tulip', which data.train.table.unknown=ignore "
                         "takes for none of them. Repair or remove them, or add data.train.table.bad_samples=skip\n")
        ignored = self.run_it(*words, "data.train.table.unknown=ignore")
        self.assertEqual(len(ignored.stdout.splitlines()), 2)
        self.assertIn("warning: column 'kind': 1 value is of a category that the training set lacks: taken for no "
                      "category\n", ignored.stderr)
        skipped = self.run_it(*words, "data.train.table.bad_samples=skip")
        self.assertEqual(len(skipped.stdout.splitlines()), 1)
        self.assertIn("warning: skipped new.csv:3: column 'kind'", skipped.stderr)

    def test_files_that_are_no_tables(self):
        line = '{"petal": 1, "kind": "rose"}\n'
        with zipfile.ZipFile(self.folder / "book.xlsx", "w") as archive:
            for name in ("[Content_Types].xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"):
                archive.writestr(name, "<x/>")
        for name, content, kind in (
                ("a.jsonl", line.encode(), "JSON"), ("a.jsonl.gz", gzip.compress(line.encode()), "JSON"),
                ("a.json", b"\xef\xbb\xbf[\n " + line.encode() + b"]", "JSON"),
                ("a.html", b"<!DOCTYPE html>\n", "HTML or XML"),
                ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504), "an Excel workbook (.xls)"),
                ("a.feather", b"ARROW1\0\0", "a Feather or Arrow file"), ("book.xlsx", None, "an Excel workbook")):
            if content is not None:
                (self.folder / name).write_bytes(content)
            self.assertEqual(self.run_it("data", "info", f"table={name}", "target=kind", code=65).stderr,
                             f"lockstep: {name}: expected a CSV or Parquet file, found {kind}; write it as one of "
                             "these, as pandas' to_csv and to_parquet do\n")

    def warnings(self, name, target="y"):
        out = self.run_it("data", "info", f"table={name}", f"target={target}").stdout
        return [line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("  warning ")]

    def test_numbers_in_groups_of_three_digits(self):
        told = ("column 'm': looks like numbers in groups of three digits, such as '{}', which are read as categories; write "
                "the numbers alone, or add the column to `categorical`")
        for mark, lowest in ((" ", "1 000"), ("'", "1'000"), ("_", "1_000"), ("\u00a0", "1\u00a0000")):
            lines = "".join(f"{1 + i % 5}{mark}000,{i}\n" for i in range(30))
            (self.folder / "groups.csv").write_text("m,y\n" + lines)
            self.assertEqual(self.warnings("groups.csv"), [told.format(lowest)])
        (self.folder / "groups.csv").write_text("m;y\n" + "".join(f"{1 + i % 5}.000,5;{i}\n" for i in range(30)))
        self.assertEqual(self.warnings("groups.csv"), [told.format("1.000,5")])
        # In a file with decimal commas, points are likely to group.
        (self.folder / "groups.csv").write_text("m;n;y\n" + "".join(f"{1 + i % 5}.000;{i},5;{i}\n" for i in range(30)))
        self.assertEqual(self.warnings("groups.csv"),
                         ["column 'm': '1.000' is read as 1.000; if its points group thousands, leave them out"])
        (self.folder / "groups.csv").write_text("m;n;y\n" + "".join(f"{1 + i % 5}.25;{i},5;{i}\n" for i in range(30)))
        self.assertEqual(self.warnings("groups.csv"), [])

    def test_names_that_look_alike(self):
        told = "two {} called '{}' look alike: they differ in spaces or characters that are not seen; write them alike"
        for one, other in (("caf\u00e9", "cafe\u0301"), ("dog", "dog\u00a0"), ("dog", "d\u200bog")):
            lines = "".join(f"{(one, other, 'x')[i % 3]},{('x', one, other)[i % 3]}\n" for i in range(30))
            (self.folder / "alike.csv").write_text("m,y\n" + lines)
            self.assertEqual(self.warnings("alike.csv"),
                             [told.format("classes", one), "column 'm': " + told.format("categories", one)])
        (self.folder / "alike.csv").write_text("m,y\n" + "caf\u00e9,1\ncafe,2\n" * 15)
        self.assertEqual(self.warnings("alike.csv"), [])

    def test_a_header_in_the_middle(self):
        lines = "".join(f"{'pq'[i % 2]},{('no', 'yes')[i % 2]}\n" for i in range(20))
        (self.folder / "joined.csv").write_text(f"m,y\n{lines}m,y\n{lines}")
        self.assertEqual(self.run_it("data", "info", "table=joined.csv", "target=y", code=65).stderr,
                         "lockstep: joined.csv: 1 of 41 samples is bad: joined.csv:22: the header again, as where files are "
                         "joined. Repair or remove them, or say `bad_samples: skip`\n")
        out = self.run_it("data", "info", "table=joined.csv", "target=y", "bad_samples=skip").stdout
        self.assertIn("  column       m: 2 categories: p, q\n", out)
        (self.folder / "texts.csv").write_text(f"text,label\n{lines}text,label\n{lines}")
        self.assertIn("texts.csv:22: the header again", self.run_it("data", "info", "texts=texts.csv", "context=4", code=65).stderr)

    def test_numbers_and_dates_that_are_written_otherwise(self):
        warnings = self.warnings
        rows = [(f"{i % 7}%", f"${i % 9}.50", f"{i % 5} kg", f"{i % 12 + 1}/{i % 28 + 1}/2024",
                 f"{i % 28 + 1:02}.05.2024", f"u{i % 4}", f"#{i % 4}", f"{i % 3}.{i % 2}.1", f"{i % 4 + 1}th", i)
                for i in range(40)]
        names = "share,price,mass,day,tag,user,number,version,place,y"
        (self.folder / "units.csv").write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n")
        told = ("column '{}': looks like {}, such as '{}', which are read as categories; write {}, or add the column "
                "to `categorical`")
        self.assertEqual(warnings("units.csv"), [
            told.format(*words) for words in (
                ("share", "numbers with '%'", "0%", "the numbers alone"),
                ("price", "numbers with '$'", "$0.50", "the numbers alone"),
                ("mass", "numbers with 'kg'", "0 kg", "the numbers alone"),
                ("day", "dates", "1/1/2024", "them as 2024-05-01"),
                ("tag", "dates", "01.05.2024", "them as 2024-05-01"))])
        lines = "".join(f"{i + 1},{i * 37 % 1000:03}\t{i * i}\n" for i in range(9))
        (self.folder / "thousands.tsv").write_text("m\ty\n" + lines)
        self.assertEqual(warnings("thousands.tsv"),
                         ["column 'm': '1,000' is read as 1.000; if its commas group thousands, leave them out"])
        lines = "".join(f"{i},{i * 37 % 1000:03};{i * i}\n" for i in range(9))
        (self.folder / "points.csv").write_text("m;y\n" + lines)
        self.assertEqual(warnings("points.csv"), [])

    def test_predictions_far_from_0(self):
        self.write_line("x,y", [[i, 1e8 + i / 8] for i in range(60)])
        (self.folder / "job.yaml").write_text(
            "job:\n  name: far\n  model: {layers: [{linear: 1}]}\n  data:\n"
            "    train: {table: {path: line.csv, target: 'y'}}\n    normalize_target: true\n"
            "  loss: mean_squared_error\n  batch_size: 20\n  epochs: 90\n  optimizer: adam\n  learning_rate: 0.05\n")
        self.run_it("train", "job.yaml")
        people = [line.split()[1] for line in self.run_it("predict", "runs/far", "line.csv").stdout.splitlines()]
        exact = self.run_it("predict", "runs/far", "line.csv", "--log", "csv").stdout.splitlines()[1:]
        self.assertEqual(len(people), 60)
        for shown, number in zip(people, (float(line.split(",")[1]) for line in exact)):
            self.assertNotIn("e", shown)
            self.assertAlmostEqual(float(shown), number, delta=1e-5 * abs(number - 1e8) + 1e-7)

    def test_files_that_are_packed_or_of_other_endings(self):
        text = (self.folder / "flowers.csv").read_bytes()
        expected = self.run_it("data", "info", "table=flowers.csv", "target=tall").stdout.split("digest")[1]
        (self.folder / "a.csv.bz2").write_bytes(bz2.compress(text))
        (self.folder / "a.csv.xz").write_bytes(lzma.compress(text))
        with zipfile.ZipFile(self.folder / "a.csv.zip", "w") as archive:
            archive.writestr("flowers.csv", text)
        (self.folder / "A.CSV").write_bytes(text)
        (self.folder / "a.tsv").write_bytes(text.replace(b",", b"\t"))
        (self.folder / "a.txt").write_bytes(text.decode().replace("\n", "\r").encode("utf-16"))
        for name in ("a.csv.bz2", "a.csv.xz", "a.csv.zip", "A.CSV", "a.tsv", "a.txt"):
            found = self.run_it("data", "info", f"table={name}", "target=tall").stdout.split("digest")[1]
            self.assertEqual(found, expected, name)


if __name__ == "__main__":
    unittest.main()
