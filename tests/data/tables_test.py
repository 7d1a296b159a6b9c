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

    def test_a_model_of_the_zoo_for_two_words(self):
        """One prediction, as scikit-learn's LogisticRegression has for them."""
        (self.folder / "job.yaml").write_text(JOB % (1, "tall", "binary_cross_entropy", "binary_accuracy"))
        words = ("data.train.table.features=sepal", "epochs=2", "learning_rate=0.01", "model={mlp: [4]}")
        self.run_it("train", "job.yaml", *words)
        line = self.run_it("predict", "runs/flowers", "flowers.csv").stdout.splitlines()[0]
        self.assertRegex(line, r"^flowers\.csv:2  yes [-.e\d]+$")
        self.assertIn("expected targets of two classes, 0 and 1, as binary_cross_entropy wants them, found class 2",
                      self.run_it("check", "job.yaml", *words, "data.train.table.target=kind", code=78).stderr)
        self.assertIn("metrics: expected metrics of a single prediction, found 'accuracy', which looks for",
                      self.run_it("check", "job.yaml", *words, "metrics=accuracy", code=78).stderr)

    def test_a_metric_of_one_label_where_a_sample_may_have_several(self):
        (self.folder / "labels.csv").write_text("x,low,high\n" + "".join(f"{i / 7},{i % 2},{i % 3 // 2}\n" for i in range(40)))
        (self.folder / "job.yaml").write_text(JOB % (2, "[low, high]", "binary_cross_entropy", "accuracy"))
        said = self.run_it("check", "job.yaml", "data.train.table.path=labels.csv").stderr
        self.assertIn("warning: metric 'accuracy' compares the largest prediction with the largest target, as if each sample "
                      "had one label; for several labels take binary_accuracy, f1 or auc\n", said)

    def test_a_source_in_braces(self):
        usual = self.run_it("data", "info", "table=flowers.csv", "target=kind", "except=[tall]").stdout
        for words in (("{path: flowers.csv, target: kind, except: [tall]}",),
                      ("{path: flowers.csv, target: kind}", "except=[tall]")):
            self.assertEqual(self.run_it("data", "info", "table=" + words[0], *words[1:]).stdout, usual)
        self.assertIn("target", self.run_it("data", "info", "table={path: flowers.csv}", code=78).stderr)

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
                ("a.feather", b"ARROW1\0\0", "a Feather or Arrow file"), ("a.csv.lz4", b"\4\"M\x18d", "an LZ4 file"), ("book.xlsx", None, "an Excel workbook")):
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
        for one, other in (("caf\u00e9", "cafe\u0301"), ("dog", "dog\u00a0"), ("dog", "d\u200bog"), ("a b", "a\u00a0b")):
            lines = "".join(f"{(one, other, 'x')[i % 3]},{('x', one, other)[i // 3 % 3]}\n" for i in range(30))
            (self.folder / "alike.csv").write_text("m,y\n" + lines)
            self.assertEqual(self.warnings("alike.csv"),
                             [told.format("classes", one), "column 'm': " + told.format("categories", one)])
        for names, told in (("caf\u00e9 cafe", []), ("A a", []), ("\u00c9tat \u00e9tat", ["'\u00c9tat' and '\u00e9tat'"]),
                            ("Yes yes", ["'Yes' and 'yes'"])):
            (self.folder / "alike.csv").write_text("m,y\n" + "".join(f"{names.split()[i % 2]},{i}\n" for i in range(30)))
            self.assertEqual(self.warnings("alike.csv"),
                             [f"column 'm': two categories differ in capitals only: {names}; write them alike" for names in told])

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

    def test_dates_without_marks(self):
        """Which are numbers, as pandas reads them, too."""
        def told(marks, *words, target="y"):
            (self.folder / "days.csv").write_text("day,y\n" + "".join(f"{mark},{i % 7}\n" for i, mark in enumerate(marks)))
            out = self.run_it("data", "info", "table=days.csv", f"target={target}", *words).stdout
            return [line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("  warning ")]
        days = [f"202401{i % 28 + 1:02}" for i in range(28)]
        numbers = "column 'day': looks like dates, such as {}, which are read as numbers"
        remedy = "; write them as 2024-05-01, or add the column to `categorical`"
        self.assertEqual(told(days), [numbers.format("20240101") + remedy])
        self.assertEqual(told(f"{day}.0" for day in days), [numbers.format("20240101.0") + remedy])
        self.assertEqual(told(f"{2000 + i}{i % 12 + 1:02}" for i in range(28)), [numbers.format("200001") + remedy])
        self.assertEqual(told(f"{day}1230" for day in days), [numbers.format("202401011230") + remedy])
        self.assertEqual(told([*days[:-1], "20240230"]), [])
        self.assertEqual(told(["20240101", "20240102"] * 14), [], "two of them may be anything")
        self.assertEqual(told(days, "categorical=day"), [
            "column 'day': looks like an identifier, with 28 categories in 28 rows; leave it out with `except: [day]`"])
        self.assertEqual(told(days, target="day")[0],
                         numbers.format("20240101") + "; write days since one of them, or add the column to `categorical`")
        self.assertEqual(told(days, "window=3", "time=day"),
                         [numbers.format("20240101") + ", so gaps are not seen; write them as 2024-05-01"])

    def test_dates_and_times_in_words(self):
        told = ("column '{}': looks like {}, such as '{}', which are read as categories; write {}, or add the column to "
                "`categorical`")
        for what, remedy, one, other in (
                ("dates", "them as 2024-05-01", "1 Jan 2024", "12 Feb 2024"),
                ("dates", "them as 2024-05-01", "01-May-24", "02-Jun-24"),
                ("dates", "them as 2024-05-01", "1/31/2024 10:30", "2/1/2024 9:05"),
                ("dates", "them as 2024-05-01", "20240131T1030", "20240201T1031"),
                ("times of the day", "hours as numbers", "09:30", "10:45:15.5")):
            (self.folder / "words.csv").write_text("m,y\n" + "".join(f"{(one, other)[i % 2]},{i % 7}\n" for i in range(30)))
            self.assertEqual(self.warnings("words.csv"), [told.format("m", what, one, remedy)])
        for words in (("May", "June"), ("1 mar", "2 bar"), ("10:3", "10:4"), ("ratio 1:2", "ratio 3:4")):
            (self.folder / "words.csv").write_text("m,y\n" + "".join(f"{words[i % 2]},{i % 7}\n" for i in range(30)))
            self.assertEqual(self.warnings("words.csv"), [], words)

    def test_numbers_that_double_does_not_hold(self):
        lines = "".join(f"{2**53 + 1 + 2 * i},{i % 7}\n" for i in range(30))
        (self.folder / "long.csv").write_text("m,y\n" + lines)
        self.assertEqual(self.warnings("long.csv"), [
            "column 'm': whole numbers such as 9007199254740993 have more digits than double holds and are rounded, so "
            "different ones may become one; leave it out with `except: [m]`, or add it to `categorical`"])
        (self.folder / "long.csv").write_text("m,y\n" + "".join(f"{2**60 * i},{i % 7}\n" for i in range(30)))
        self.assertEqual(self.warnings("long.csv"), [])
        # As pandas reads them: infinite, and 0.
        (self.folder / "long.csv").write_text("m,y\n1,1\n2,2\n1e400,3\n1e-400,4\n")
        self.assertIn("long.csv:4: column 'm': expected a number that fp32 can hold, found '1e400'",
                      self.run_it("data", "info", "table=long.csv", "target=y", code=65).stderr)
        (self.folder / "long.csv").write_text("m,y\n1,1\n2,2\n1e-400,4\n")
        self.assertIn("  column       m: numbers, mean 1, std 0.8165\n",
                      self.run_it("data", "info", "table=long.csv", "target=y").stdout)

    def test_numbers_among_words(self):
        lines = "".join(f"{i if i < 12 else 'none of them'},{i % 7}\n" for i in range(30))
        (self.folder / "mixed.csv").write_text("m,y\n" + lines)
        self.assertEqual(self.warnings("mixed.csv"), [
            "column 'm': 12 of 30 values are numbers, and all are read as categories, for most are not, such as 'none of "
            "them'; write what is missing as nothing, or add the column to `categorical`"])

    def test_fields_without_a_name(self):
        """R's row names are different; what quotes have cut in two is none of them."""
        (self.folder / "r.csv").write_text("m,y\n" + "".join(f"r{i},{i % 5},{i % 7}\n" for i in range(30)))
        self.assertEqual(self.warnings("r.csv"), [
            "r.csv:1: a name less than rows have fields: the first field of each is taken for the row's own name, as R "
            "writes it, and not used"])
        for text in ("".join(f"{i % 5},{i % 3},{i % 7}\n" for i in range(30)),
                     "".join(f"{i}, \"a,b{i % 3}\"\n" for i in range(30)), "".join(f"{i},'a,b{i % 3}'\n" for i in range(30))):
            (self.folder / "cut.csv").write_text("m,y\n" + text)
            self.assertIn("cut.csv:2: 3 fields; the header has 2",
                          self.run_it("data", "info", "table=cut.csv", "target=y", code=65).stderr)

    def test_a_class_that_is_called_missing(self):
        (self.folder / "codes.csv").write_text("m,y\n" + "".join(f"{i},{('NA', 'EU')[i % 2]}\n" for i in range(4)))
        self.assertIn("codes.csv:2: column 'y': expected a target, found 'NA', which stands for a missing value",
                      self.run_it("data", "info", "table=codes.csv", "target=y", code=65).stderr)

    def test_what_cannot_be_learnt(self):
        def told(*words):
            lines = self.run_it("check", "job.yaml", *words).stderr.splitlines()
            return [line.removeprefix("warning: ") for line in lines]
        (self.folder / "job.yaml").write_text(JOB % (3, "kind", "cross_entropy", "accuracy"))
        rows = flowers().splitlines(keepends=True)
        (self.folder / "flowers.csv").write_text("".join(row for row in rows if "rose" in row or "kind" in row))
        self.assertEqual(told("model={mlp: [4]}"), [
            "train: all 20 samples are of one class, 'rose': there is nothing to tell apart, and every model is right"])
        self.assertIn("warning      all 20 samples are of one class, 'rose': there is nothing to tell apart, and every model "
                      "is right\n", self.run_it("data", "info", "table=flowers.csv", "target=kind").stdout)
        (self.folder / "flowers.csv").write_text("".join(row for row in rows if "daisy" not in row) + rows[3])
        (self.folder / "list.txt").write_text("flowers.csv:42\n")
        self.assertEqual(told("data.validation={list: list.txt}"),
                         ["validation: 1 sample is of daisy, which training has no sample of"])
        (self.folder / "flowers.csv").write_text("x,y\n" + "".join(f"{i},2.5\n" for i in range(20)))
        self.assertEqual(told("data.train.table.target=y", "loss=mean_squared_error", "metrics=mae", "model={mlp: [4]}"),
                         ["train: column 'y': the target is 2.5 in all rows, so nothing is to be learnt"])

    def test_rows_that_training_has(self):
        """A copy of the training set under another name, and a table with copies of each row."""
        (self.folder / "job.yaml").write_text(JOB % (3, "kind", "cross_entropy", "accuracy"))
        rows = [f"{i * 7919 % 1000 / 10},{i * 104729 % 1000 / 10},{('rose', 'iris')[i % 2]},x\n" for i in range(60)]
        (self.folder / "flowers.csv").write_text("petal,sepal,kind,tall\n" + "".join(rows))
        def told(*words):
            return self.run_it("check", "job.yaml", "model={mlp: [4]}", *words).stderr
        for name, own in (("copy", rows), ("reverse", rows[::-1]), ("half", rows[:20] + [f"{i}.5,{i},rose,x\n" for i in range(20)])):
            (self.folder / f"{name}.csv").write_text("petal,sepal,kind,tall\n" + "".join(own))
            shared = 20 if name == "half" else 60
            self.assertIn(f"warning: validation: {shared} of {len(own)} samples are in the training set, too: {name}.csv:2, ",
                          told(f"data.validation={{table: {{path: {name}.csv, target: kind}}}}"))
        self.assertEqual(told("data.validation={fraction: 0.25}"), "")
        (self.folder / "flowers.csv").write_text("petal,sepal,kind,tall\n" + "".join(rows * 4))
        self.assertIn(" of 60 samples are in the training set, too: ", told("data.validation={fraction: 0.25}"))
        # Rows of few different values are alike by chance.
        rows = [f"{i % 3},{i % 5 % 2},{('rose', 'iris')[i % 2]},x\n" for i in range(60)]
        (self.folder / "flowers.csv").write_text("petal,sepal,kind,tall\n" + "".join(rows))
        self.assertEqual(told("data.validation={fraction: 0.25}"), "")

    def warnings_of(self, header, rows, *words):
        (self.folder / "rows.csv").write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
        out = self.run_it("data", "info", "table=rows.csv", *words).stdout
        return [line.removeprefix("  warning      ") for line in out.splitlines() if line.startswith("  warning")]

    def test_columns_that_give_the_target_away(self):
        rows = [[i * 7919 % 1000 / 10, "abc"[i % 3], i % 3, i // 3 % 2, "" if i % 5 == 0 else i % 4, i % 4]
                for i in range(60)]
        header, away = "x,letter,code,other,part,y", "so a model needs nothing else; leave it out with `except: [{0}]`"
        self.assertEqual(self.warnings_of(header, rows, "target=letter"), [
            f"column 'code': has one value for each value of the target 'letter', {away.format('code')}"])
        self.assertEqual(self.warnings_of(header, rows, "target=y"), [
            f"column 'part': equals the target 'y', {away.format('part')}"])
        self.assertEqual(self.warnings_of(header, rows, "target=code"), [
            f"column 'letter': has one value for each value of the target 'code', {away.format('letter')}"])
        self.assertEqual(self.warnings_of(header, rows, "target=code", "categorical=[code]", "except=[letter]"), [])
        self.assertEqual(self.warnings_of(header, rows, "target=x"), [])
        self.assertEqual(self.warnings_of(header, rows[:19], "target=letter"), [])  # easily by chance
        # Any two columns of different numbers pair; a line is no copy.
        self.assertEqual(self.warnings_of("x,y", [[i / 8, i / 4 + 1] for i in range(60)], "target=y"), [])

    def test_numbers_that_stand_for_missing_values(self):
        def told(values, target="y"):
            rows = [[value, i * 7919 % 1000 / 10] for i, value in enumerate(values)]
            return self.warnings_of("x,y", rows, f"target={target}")
        heights = [150 + i % 40 / 2 for i in range(60)]
        for mark in ("-999", "9999", "-99.9", "99999", "-32768"):
            text = (f"column 'x': 2 values are {mark}, far from the others, which are between 150 and 169.5: if that stands "
                    "for missing values, leave them empty")
            self.assertEqual(told(heights[:58] + [mark] * 2), [text])
            self.assertEqual(told(heights[:58] + [mark] * 2, target="x"), [text])
        for fine in (heights + [-999], heights + [151] * 9, [i % 3 for i in range(60)] + [-1] * 9, [99, 0] * 30,
                     [i * 170 for i in range(60)] + [9999] * 3, heights + [1000] * 5):
            self.assertEqual(told(fine), [])

    def test_codes_that_begin_with_zeros(self):
        zips = [f"{501 + i % 10 * 977:05}" for i in range(30)]
        rows = [[code, i % 7] for i, code in enumerate(zips)]
        self.assertEqual(self.warnings_of("zip,y", rows, "target=y"), [
            "column 'zip': read as numbers, which do not keep the zeros that 00501 begins with; if these are codes, add it to "
            "`categorical`"])
        self.assertEqual(self.warnings_of("zip,y", rows, "target=y", "categorical=[zip]"), [])
        for fine in ("0.5", "01", "0", "000"):
            self.assertEqual(self.warnings_of("x,y", [[fine, 1], *([str(i), i % 7] for i in range(1, 30, 3))], "target=y"), [])

    def test_numbers_that_leave_nothing_of_the_others(self):
        def told(values, target="y"):
            rows = [[value, i * 7919 % 1000 / 10] for i, value in enumerate(values)]
            return self.warnings_of("x,y", rows, f"target={target}")
        heights = [150 + i % 40 / 2 for i in range(60)]
        for extreme, shown in (("3e38", "3e+38"), ("-3e38", "-3e+38"), ("1e6", "1000000")):
            values = heights[:30] + [extreme] + heights[31:]
            for target in "yx":
                low, high = (150, 169.5) if extreme[0] != "-" else (150, 169)
                self.assertEqual(told(values, target), [
                    f"column 'x': most of its values are between {low} and {high}, and one is {shown} (rows.csv:32): normalized, "
                    "the others are nearly alike; correct it, leave it empty, or take the logarithm of the column"])
        for fine in (heights + [9000], [7] * 60 + [3e38], [1.3 ** i for i in range(60)]):
            self.assertEqual(told(fine), [])

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

    def test_gzip_is_whole(self):
        packed = gzip.compress((self.folder / "flowers.csv").read_bytes())
        for bytes_, told in ((packed + packed[:4], "truncated gzip file"), (packed[:-3], "truncated gzip file"),
                             (packed + b"more", "damaged gzip file (bytes behind its end that are no gzip)"),
                             (packed[:-6] + bytes([packed[-6] ^ 1]) + packed[-5:], "damaged gzip file (incorrect data check)")):
            (self.folder / "a.csv.gz").write_bytes(bytes_)
            self.assertEqual(self.run_it("data", "info", "table=a.csv.gz", "target=tall", code=65).stderr,
                             f"lockstep: a.csv.gz: {told}\n")
        (self.folder / "a.csv.gz").write_bytes(packed + bytes(512))
        self.assertIn("  samples      60\n", self.run_it("data", "info", "table=a.csv.gz", "target=tall").stdout)

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
