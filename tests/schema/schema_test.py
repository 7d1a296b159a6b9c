#!/usr/bin/env python3
"""A trained model and data that have changed since: the same answer, or a clear refusal. A row of READERS each."""
import csv
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1]), str(HERE.parents[2] / "python")]
import lockstep_reader  # noqa: E402  pylint: disable=wrong-import-position
from readers import CLASSES, GPT, READERS, ROWS, images, table, text  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
REFUSED = "the data, or how they are split, have changed since the model was trained, so its {} samples are not known"
CHANGES = {"appended": ROWS + ROWS[:1], "removed": ROWS[:-1], "shuffled": ROWS[60:] + ROWS[:60]}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.environment = {**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache"), "LOCKSTEP_PLUGINS": "always"}

    def lockstep(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, code, f"{words}:\n{done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def train(self, source, job, run, **settings):
        whole = {"job": {"name": "schema", "run_directory": run, "batch_size": 8, "steps": 10, "seed": 3, **job,
                         "data": {"train": source, "validation": {"fraction": 0.25}}, **settings}}
        (self.folder / f"{run}.yaml").write_text(json.dumps(whole))
        self.lockstep("train", f"{run}.yaml")

    def eval(self, *words):
        found = json.loads(self.lockstep("eval", *words, "--log", "json"))
        return found["samples"], found["loss"], found["metrics"]


class ChangedData(Folder):
    def test_every_reader_refuses(self):
        for reader in READERS:
            if reader.words(ROWS):  # it has no files
                continue
            with self.subTest(reader.name):
                path = self.folder / reader.path
                reader.write(path, ROWS)
                self.train(reader.source, reader.job, reader.name)
                sets = ("validation", "train")
                before = {one: self.eval(reader.name, "--set", one) for one in sets}
                for change, rows in CHANGES.items():
                    with self.subTest(change):
                        reader.write(path, rows)
                        for one in sets:
                            said = self.lockstep("eval", reader.name, "--set", one, code=65)
                            self.assertIn(REFUSED.format("training" if one == "train" else one), said)
                reader.write(path, ROWS)
                shutil.rmtree(self.folder / "cache", ignore_errors=True)
                self.assertEqual({one: self.eval(reader.name, "--set", one) for one in sets}, before)
                self.assertIn("validation samples are not known",
                              self.lockstep("eval", reader.name, "data.validation.fraction=0.3", code=65))
                path.rename(self.folder / f"{reader.name}-data")

    def test_columns_have_names(self):
        table(self.folder / "data", ROWS)
        self.train(READERS[0].source, CLASSES, "run")
        before = self.eval("run")
        table(self.folder / "other", ROWS, ("k", "label", "c", "a", "b"))
        self.assertEqual(self.eval("run", "data.train.table.path=other"), before)
        table(self.folder / "other", ROWS, ("k", "label", "c", "a"))
        self.assertIn("'b'", self.lockstep("eval", "run", "data.train.table.path=other", code=65))

    def test_a_class_is_renamed(self):
        images(self.folder / "data", ROWS)
        self.train({"images": "data"}, CLASSES, "run")
        images(self.folder / "data", ROWS, lambda name: "a-" + name if name == "yes" else name)
        self.assertIn("a-yes", self.lockstep("eval", "run", code=65))


class InitializedFromOtherData(Folder):
    def test_columns_categories_and_classes(self):
        table(self.folder / "data", ROWS)
        self.train(READERS[0].source, CLASSES, "run")
        self.lockstep("checkpoint", "export", "run", "run.safetensors")
        table(self.folder / "turned", ROWS, ("c", "b", "a", "k", "label"))
        table(self.folder / "other", [[*row[:3], row[3].replace("red", "azure"), row[4]] for row in ROWS])
        renamed = [[*row[:4], "zero" if row[4] == "yes" else row[4]] for row in ROWS]
        for origin in ("run", "run.safetensors"):
            job = {**CLASSES, "initialize": origin}
            self.train({"table": {"path": "data", "target": "label", "count": 100}}, job, "fewer-" + origin)
            for path, other in (
                    ("turned", "the columns a, b, c, k, found c, b, a, k"),
                    ("other", "in column 'k' the categories green, red, found azure, green")):
                self.assertIn(f"job.initialize: expected data as {origin} was trained with: {other}; its weights are "
                              "of those: restore them, or name the weights that are of neither in `only`",
                              self.refused(path, job))
            table(self.folder / "renamed", renamed)
            # Other classes: fine-tuning.
            self.train({"table": {"path": "renamed", "target": "label"}}, job, "tuned-" + origin)

    def refused(self, path, job):
        whole = {"job": {"name": "x", "run_directory": "x", "batch_size": 8, "steps": 10, "seed": 3, **job,
                         "data": {"train": {"table": {"path": path, "target": "label"}}}}}
        (self.folder / "x.yaml").write_text(json.dumps(whole))
        self.assertEqual(said := self.lockstep("check", "x.yaml", code=78), self.lockstep("train", "x.yaml", code=78))
        return said


class EnsemblesOfOtherData(Folder):
    def evaluate(self, *words):
        return json.loads(self.lockstep("ensemble", "eval", *words, "--log", "json"))

    def test_members_read_their_own_columns(self):
        table(self.folder / "data", ROWS)
        alone = []
        for run, features in (("one", ["a", "b"]), ("two", ["k", "c"])):
            self.train({"table": {"path": "data", "target": "label", "features": features}}, CLASSES, run)
            alone.append(self.eval(run))
        together = self.evaluate("one", "two")
        self.assertEqual([(together["samples"], one["loss"], one["metrics"]) for one in together["members"]], alone)
        self.assertIn("two: expected a member that reads samples as one does, found other columns, categories or "
                      "tokens; use it alone",
                      self.lockstep("ensemble", "predict", "one", "two", "data", code=78))
        self.lockstep("ensemble", "soup", "one", "two", "--to", "soup.safetensors", code=78)

    def test_members_predict_other_columns(self):
        table(self.folder / "data", ROWS)
        for run, target in (("one", "a"), ("two", "c")):
            self.train({"table": {"path": "data", "target": target, "features": ["b"]}},
                       {"model": {"mlp": {"hidden": [4]}}, "loss": "mean_squared_error"}, run)
        self.assertEqual(self.lockstep("ensemble", "predict", "one", "two", "data", code=78),
                         "lockstep: two: expected the targets a, as one has, found c; only predictions of the same can be "
                         "combined\n")

    def test_other_units(self):
        """Meters, and then millimeters."""
        table(self.folder / "data", ROWS)
        table(self.folder / "other", [[str(1000 * float(row[0]) + 20000), *row[1:]] for row in ROWS])
        self.train({"table": {"path": "data", "target": "label"}}, {"model": {"mlp": {"hidden": [4]}}}, "one")
        self.train({"table": {"path": "data", "target": "label"}}, {"model": {"mlp": {"hidden": [4]}}, "seed": 4}, "two")
        test = ("--set", "test", "data.test.table={path: %s, target: label}")
        for words in (("predict", "one", "%s"), ("eval", "one", *test), ("ensemble", "predict", "one", "two", "%s"),
                      ("ensemble", "eval", "one", "two", *test)):
            for path, told in (("data", False), ("other", True)):
                done = subprocess.run([PROGRAM, *(word.replace("%s", path) for word in words)], cwd=self.folder,
                                      env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
                found = re.search(r"warning: column 'a': its mean is [12][\d.]*e\+04, that of the training set -?[.\d]+ with a "
                                  r"standard deviation of [.\d]+: are they in the same units\?\n", done.stderr)
                self.assertEqual(found is not None, told, f"{words} {done.stderr}")

    def test_classes_of_other_names(self):
        """Weights of a run whose outputs stand for others."""
        table(self.folder / "data", ROWS)
        job = {"model": {"mlp": {"hidden": [4]}}}
        source = {"table": {"path": "data", "target": "label"}}
        self.train(source, job, "one")
        table(self.folder / "data", [[*row[:4], {"yes": "ja"}.get(row[4], row[4])] for row in ROWS])
        whole = {"job": {**job, "batch_size": 8, "steps": 10, "initialize": "one", "data": {"train": source}}}
        (self.folder / "two.yaml").write_text(json.dumps(whole))
        done = subprocess.run([PROGRAM, "check", "two.yaml"], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE, check=True)
        self.assertEqual(done.stderr, "warning: job.initialize: the outputs of one are called no, yes, and the classes of the "
                         "data ja, no: they are taken in this order\n")

    def test_targets_in_another_order(self):
        table(self.folder / "data", ROWS)
        job = {"model": {"mlp": {"hidden": [4]}}, "loss": "mean_squared_error"}
        source = {"path": "data", "features": ["b", "k"]}
        self.train({"table": {**source, "target": ["a", "c"]}}, job, "one")
        whole = {"job": {**job, "batch_size": 8, "steps": 10, "initialize": "one",
                         "data": {"train": {"table": {**source, "target": ["c", "a"]}}}}}
        (self.folder / "two.yaml").write_text(json.dumps(whole))
        done = subprocess.run([PROGRAM, "check", "two.yaml"], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE, check=True)
        self.assertEqual(done.stderr, "warning: job.initialize: the outputs of one are called a, c, and the targets of the data "
                         "c, a: they are taken in this order\n")

    def test_predictions_of_targets_far_from_0(self):
        table(self.folder / "data", [[*row[:4], f"{1e8 + float(row[0]):.6f}"] for row in ROWS])
        job = {"model": {"mlp": {"hidden": [8]}}, "loss": "mean_squared_error", "metrics": ["rmse"]}
        whole = {"train": READERS[0].source, "validation": {"fraction": 0.25}, "normalize_target": True}
        table(self.folder / "other", [[*row[:4], f"{2e8 + float(row[0]):.6f}"] for row in ROWS])
        for run, seed, path in (("one", 3, "data"), ("two", 4, "data"), ("other-run", 3, "other")):
            own = {"name": "far", "run_directory": run, "batch_size": 8, "steps": 10, "seed": seed,
                   "data": {**whole, "train": {"table": {"path": path, "target": "label"}}, "split_seed": 1}}
            (self.folder / "far.yaml").write_text(json.dumps({"job": {**job, **own}}))
            self.lockstep("train", "far.yaml")
        self.assertEqual(self.lockstep("ensemble", "eval", "one", "other-run", code=78),
                         "lockstep: other-run: expected targets less the same numbers (those far from 0, with "
                         "normalize_target), as one has, found others; only predictions of the same can be combined\n")
        self.lockstep("ensemble", "eval", "one", "two", "--predictions", "p.csv")
        targets = {f"data:{i + 2}": 1e8 + float(row[0]) for i, row in enumerate(ROWS)}
        with open(self.folder / "p.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                self.assertAlmostEqual(float(row["target"]), targets[row["sample"]], places=4)
                self.assertLess(abs(float(row["predicted"]) - 1e8), 10)

    def test_a_student_reads_other_columns(self):
        table(self.folder / "data", ROWS)
        for run, seed in (("one", 3), ("two", 4)):
            self.train(READERS[0].source, CLASSES, run, seed=seed)
        table(self.folder / "turned", ROWS, ("c", "b", "a", "k", "label"))
        job = {"job": {**CLASSES, "batch_size": 8, "steps": 10,
                       "data": {"train": {"table": {"path": "turned", "target": "label"}}}}}
        (self.folder / "student.yaml").write_text(json.dumps(job))
        self.assertIn("one: expected the columns a, b, c, k, found c, b, a, k",
                      self.lockstep("ensemble", "distill", "one", "two", "--to", "small", "--job", "student.yaml",
                                    code=78))

    def test_members_were_validated_on_other_samples(self):
        table(self.folder / "data", ROWS)
        self.train(READERS[0].source, CLASSES, "one")
        self.train(READERS[0].source, CLASSES, "two", seed=4)
        said = self.lockstep("ensemble", "eval", "one", "two", code=78)
        self.assertIn("two: expected the validation samples that one has: sample data:", said)
        self.assertIn("; a member may have been trained on those of another: choose --set test, or out-of-fold if they "
                      "are folds of one data.split_seed", said)
        table(self.folder / "test", ROWS[:10])
        result = self.evaluate("one", "two", "data.test.table={path: test, target: label}", "--set", "test")
        self.assertEqual(result["weights"], [])


class Noise(Folder):
    """Labels that nothing predicts: no command may report better than chance on samples it has not trained on."""

    def test_samples_of_training_are_named(self):
        """As a test set, whatever the file is called and however its rows are ordered and spelled."""
        table(self.folder / "data", ROWS)
        job = {**CLASSES, "model": {"mlp": {"hidden": [128]}}, "optimizer": "adam", "learning_rate": 0.01, "steps": 400}
        source = {"table": {"path": "data", "target": "label"}}
        for run in ("one", "two"):
            self.train(source, job, run)
        table(self.folder / "same", CHANGES["shuffled"], ("label", "k", "c", "b", "a"))
        spelled = [[f"{float(cell):+.9f}" for cell in row[:3]] + [f" {row[3]}", row[4]] for row in ROWS]
        table(self.folder / "spelled", spelled)
        table(self.folder / "new", [[f"-{cell}" for cell in row[:3]] + row[3:] for row in
                                    [[cell.lstrip("-") for cell in row[:3]] + row[3:] for row in ROWS]
                                    if not row[0].startswith("-")])
        for words in (("eval", "one"), ("ensemble", "eval", "one", "two")):
            for path in ("data", "same", "spelled"):
                done = self.told(*words, "--set", "test", f"data.test.table={{path: {path}, target: label}}")
                self.assertRegex(done, rf"warning: test: 90 of 120 samples are in the training set, too: {path}:\d+, ")
            self.assertEqual(self.told(*words, "--set", "test", "data.test.table={path: new, target: label}"), "")
        for one in ("validation", "train"):
            self.assertEqual(self.told("eval", "one", "--set", one), "")

    def test_images_and_text_of_training_are_named(self):
        images(self.folder / "data", ROWS)
        self.train({"images": "data"}, CLASSES, "images")
        shutil.copytree(self.folder / "data/no", self.folder / "copy/no")
        (self.folder / "data/yes").rename(self.folder / "copy/yes")
        self.assertRegex(self.told("eval", "images", "--set", "test", "data.test.images=copy"),
                         r"warning: test: \d+ of 120 samples are in the training set, too: no/")
        text(self.folder / "words", ROWS)
        self.train({"text": {"path": "words", "context": 16}}, GPT, "text")
        self.assertEqual(self.told("eval", "text", "--set", "test", "data.test.text=words"),
                         "warning: test: it reads what training reads, too: words\n")

    def told(self, *words):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=True)
        return done.stderr

    def test_folds(self):
        table(self.folder / "data", ROWS)
        sweep = {"method": "grid", "metric": "accuracy",
                 "parameters": {"data.validation.fold": {"choice": ["1 of 3", "2 of 3", "3 of 3"]},
                                "seed": {"choice": [1, 2]}}}
        job = {"name": "noise", "model": {"mlp": {"hidden": [128]}}, "batch_size": 8, "steps": 1200,
               "metrics": ["accuracy"], "optimizer": "adam", "learning_rate": 0.01, "evaluate": {"every": "1200 steps"},
               "data": {"train": READERS[0].source, "validation": {"fold": "1 of 3"}, "split_seed": 1}}
        (self.folder / "folds.yaml").write_text(json.dumps({"job": job, "sweep": sweep}))
        self.lockstep("sweep", "folds.yaml", "--ranks", "2")
        self.assertGreater(self.eval("sweeps/folds/trials/0000", "--set", "train")[2]["accuracy"], 0.9)
        self.assertIn("choose --set test, or out-of-fold if they are folds of one data.split_seed",
                      self.lockstep("ensemble", "eval", "sweeps/folds", code=78))
        words = ("ensemble", "eval", "sweeps/folds", "--set", "out-of-fold", "--log", "json")
        said = self.lockstep(*words, "--predictions", "p.csv")
        self.assertEqual(self.lockstep(*words, "--ranks", "3").split('"seconds"')[0], said.split('"seconds"')[0])
        found = json.loads(said)
        self.assertEqual((found["samples"], found["weights"], len(found["members"])), (len(ROWS), [], 6))
        self.assertLess(found["combined"][0]["metrics"]["accuracy"], 0.65)
        with open(self.folder / "p.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["sample"]: row["target"] for row in rows},
                         {f"data:{i + 2}": row[4] for i, row in enumerate(ROWS)})
        right = sum(row["target"] == row["predicted"] == max(("no", "yes"), key=lambda name, of=row: float(of[name]))
                    for row in rows)
        self.assertAlmostEqual(right / len(ROWS), found["combined"][0]["metrics"]["accuracy"], places=12)
        self.assertIn("none for fold 3", self.lockstep("ensemble", "eval", "sweeps/folds/trials/0000",
                                                       "sweeps/folds/trials/0002", "--set", "out-of-fold", code=78))

    def test_one_checkpoint_stands_for_a_run(self):
        table(self.folder / "data", ROWS)
        job = {**CLASSES, "model": {"mlp": {"hidden": [64]}}, "steps": 300, "optimizer": "adam", "learning_rate": 0.01,
               "evaluate": {"every": "30 steps"}, "checkpoint": {"every": "30 steps", "best": "loss"},
               "early_stop": {"metric": "loss", "patience": 100, "restore_best": True}}
        self.train(READERS[0].source, job, "run")
        best = (self.folder / "run/checkpoints/best").read_text().strip()
        step = int(best.rpartition("-")[2])
        self.assertLess(step, 300)
        events = [json.loads(line) for line in (self.folder / "run/events.jsonl").read_text().splitlines()]
        losses = {event["step"]: event["loss"] for event in events if event["event"] == "eval"}
        self.assertEqual(min(losses, key=losses.get), step)
        self.assertIn(f"run/checkpoints/{best}, the best, on 30", self.lockstep("eval", "run"))
        self.assertEqual(self.eval("run")[1], losses[step])
        self.assertIn(f"the model of run/checkpoints/{best}, the best checkpoint",
                      self.lockstep("checkpoint", "export", "run", "run.safetensors"))
        self.assertEqual(self.eval("run", "--checkpoint", "run.safetensors")[1], losses[step])
        self.assertEqual(lockstep_reader.open_run(self.folder / "run").checkpoint().step, step)
        self.assertIn(f"of run, its best checkpoint, {best}", self.start_of({**job, "steps": 1, "initialize": "run"}))
        self.lockstep("checkpoint", "diff", "run", f"run/checkpoints/{best}")
        sweep = {"method": "grid", "metric": "accuracy", "parameters": {"seed": {"choice": [3, 4]}}}
        whole = json.loads((self.folder / "run.yaml").read_text())["job"]
        whole = {key: value for key, value in whole.items() if key not in ("run_directory", "seed")}
        (self.folder / "sweep.yaml").write_text(json.dumps({"job": whole, "sweep": sweep}))
        self.lockstep("sweep", "sweep.yaml")
        for trial in json.loads((self.folder / "sweeps/sweep/trials.json").read_text())["trials"]:
            self.assertEqual(self.eval(f"sweeps/sweep/trials/{trial['trial']:04}")[2]["accuracy"], trial["value"])

    def start_of(self, job):
        self.train(READERS[0].source, job, "tuned")
        return json.loads((self.folder / "tuned/events.jsonl").read_text().splitlines()[0])["initialized"]


class NotFinite(Folder):
    """Numbers that are none are named, and neither used nor stored."""

    def test_weights_and_updates(self):
        table(self.folder / "data", ROWS)
        self.train(READERS[0].source, CLASSES, "run")
        self.lockstep("checkpoint", "export", "run", "run.safetensors")
        weights = (self.folder / "run.safetensors").read_bytes()
        (self.folder / "nan.safetensors").write_bytes(weights[:-4] + struct.pack("<f", float("nan")))
        said = ("nan.safetensors: expected finite numbers; the model's '[a-z0-9.]+' is nan at element [0-9]+: take "
                "another")
        self.assertRegex(self.lockstep("eval", "run", "--checkpoint", "nan.safetensors", code=65), said)
        job = {"name": "x", "batch_size": 8, "steps": 10, **CLASSES, "data": {"train": READERS[0].source}}
        (self.folder / "x.yaml").write_text(json.dumps({"job": job}))
        self.assertRegex(self.lockstep("train", "x.yaml", "initialize=nan.safetensors", "--ranks", "2", code=65), said)
        table(self.folder / "large", [[f"{1e6 * float(value)}" for value in row[:3]] + row[3:] for row in ROWS])
        words = ("x.yaml", "data.train.table.path=large", "data.normalize=never", "steps=1", "learning_rate=3e38",
                 "--ranks", "2")
        self.assertRegex(self.lockstep("train", *words, code=76),
                         "step 1: after the update, the model's '[a-z0-9.]+' is infinite at element [0-9]+: it is not "
                         "stored; try a smaller learning rate, a longer warm-up, or clip_norm")
        self.assertFalse(list(self.folder.glob("runs/x/checkpoints/step-*")))


class Warnings(Folder):
    def test_every_command_says_what_was_left_out(self):
        table(self.folder / "data", ROWS)
        for run, seed in (("one", 3), ("two", 4)):
            self.train(READERS[0].source, CLASSES, run, seed=seed)
        table(self.folder / "new", [["", *row[1:]] for row in ROWS[:2]] + ROWS[2:9])
        filled = ("warning: column 'a': 2 values are missing, but none in the training set: taken for its mean, or for "
                  "no category\n")
        self.assertIn(filled, self.said("predict", "one", "new"))
        test = ("data.test.table={path: new, target: label}", "--set", "test")
        self.assertIn(filled, self.said("eval", "one", *test))
        self.assertEqual(self.said("ensemble", "eval", "one", "two", *test).count(filled), 1)

    def said(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=True).stderr


if __name__ == "__main__":
    unittest.main()
