#!/usr/bin/env python3
"""Validation and test sets whose settings are not those of the training set, and samples of which a model predicts
nothing: read as training read its own, or refused."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]
import readers  # noqa: E402  pylint: disable=wrong-import-position
from readers import CLASSES, GPT, READERS, ROWS, table  # noqa: E402  pylint: disable=wrong-import-position
from schema_test import PROGRAM, Folder  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE  # noqa: E402  pylint: disable=wrong-import-position

WORDS = {"model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "red": 1, "green": 2}},
         "pre_tokenizer": {"type": "Whitespace"}}
MASKED = {"masked": "masked: 0.2"}
BERT = {"model": {"bert": {"layers": 1, "heads": 2, "width": 8}}, "loss": {"cross_entropy": {"ignored_index": -100}}}


class OtherSettings(Folder):
    def test_windows_are_those_of_the_training_set(self):
        readers.text(self.folder / "data", ROWS)
        for name, settings, job, others in (
                ("characters", {}, GPT, ("context: 8", "context: 32", "tokenizer: bytes", "context: auto, tokenizer: auto")),
                ("bytes", {"tokenizer": "bytes"}, GPT, ("context: 32", "tokenizer: characters")),
                ("masked", {"masked": 0.2, "mask_token": 5}, BERT, ("context: 8", "mask_token: 4"))):
            self.train({"text": {"path": "data", "context": 16, **settings}}, job, name)
            expected = self.of_all(name, settings)
            for other in ("", *others):
                words = f"data.test.text={{{', '.join(filter(None, ('path: data', MASKED.get(name), other)))}}}"
                with self.subTest(name, other=other):
                    self.assertEqual(self.eval(name, "--set", "test", words), expected)
                    self.assertEqual(self.warnings(name, words), [
                        *self.UNUSED.get(other, []), "test: it reads what training reads, too: data"])

    UNUSED = {
        "context: 8": ["context: expected 16, as in the training set, found 8, which is not used"],
        "context: 32": ["context: expected 16, as in the training set, found 32, which is not used"],
        "tokenizer: bytes": ["tokenizer: expected characters, as in the training set, found bytes, which is not used"],
        "tokenizer: characters":
            ["tokenizer: expected bytes, as in the training set, found characters, which is not used"],
        "mask_token: 4": ["mask_token: expected 5, as in the training set, found 4, which is not used"]}

    def warnings(self, run, words):
        done = subprocess.run([PROGRAM, "eval", run, "--set", "test", words], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE, check=True)
        return [line.removeprefix("warning: ") for line in done.stderr.splitlines()]

    def of_all(self, run, settings):
        """The training set's windows of the whole file, as its own settings have them."""
        words = ", ".join(f"{key}: {value}" for key, value in {"path": "data", "context": 16, **settings}.items())
        found = self.eval(run, "--set", "test", f"data.test.text={{{words}}}")
        self.assertEqual(found[0], (len((self.folder / "data").read_text()) - 1) // 16)
        return found

    def test_texts(self):
        lines = ["text,label"] + [f"{'red' if row[4] == 'yes' else 'green'} {row[0]},{row[4]}" for row in ROWS]
        (self.folder / "data.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "own.json").write_text(json.dumps(WORDS))
        (self.folder / "other.json").write_text(json.dumps({**WORDS, "model": {**WORDS["model"], "vocab": {
            "[UNK]": 0, "green": 1, "red": 2}}}))
        model = {"layers": [{"embedding": {"vocabulary": 3, "width": 4}, "inputs": "tokens"},
                            {"mean": {"axis": 1, "inputs": ["previous", "length"]}}, {"linear": 2}]}
        self.train({"texts": {"path": "data.csv", "context": 16, "tokenizer": "own.json"}},
                   {"model": model, "metrics": ["accuracy"]}, "run")
        expected = self.eval("run", "--set", "test", "data.test.texts=data.csv")
        words = "data.test.texts={path: data.csv, context: 8, tokenizer: bytes}"
        self.assertEqual(self.eval("run", "--set", "test", words), expected)
        self.assertEqual(self.warnings("run", words), [
            *self.UNUSED["context: 8"],
            "tokenizer: expected the tokens of a file, as in the training set, found bytes, which is not used",
            "test: 120 of 120 samples are in the training set, too: data.csv:2, data.csv:3, data.csv:4 and 117 more"])
        words = "data.test.texts={path: data.csv, tokenizer: other.json}"
        self.assertIn("data.csv: its tokenizer is not that of the training set, data.csv, so its tokens would mean something "
                      "else\n", self.lockstep("eval", "run", "--set", "test", words, code=65))

    def test_bare_numbers(self):
        readers.tokens(self.folder / "data", ROWS)
        job = {"model": {"gpt": {**GPT["model"]["gpt"], "vocabulary": 256}}}
        self.train({"tokens": {"path": "data", "context": 16}}, job, "run")
        expected = self.eval("run", "--set", "test", "data.test.tokens={path: data, context: 16}")
        for context in (8, 64):
            self.assertEqual(self.eval("run", "--set", "test", f"data.test.tokens={{path: data, context: {context}}}"),
                             expected)
        self.assertIn("data: expected a training set of text, too, whose tokens are known, found one of tokens of 16 "
                      "bits\n", self.lockstep("eval", "run", "--set", "test", "data.test.text={path: data}", code=65))
        table(self.folder / "rows", ROWS)
        self.assertIn("data: expected a training set of windows of tokens, too, found one of table", self.refused(
            {"table": {"path": "rows", "target": "label"}}, CLASSES, {"tokens": {"path": "data", "context": 16}}, 65))

    def refused(self, source, job, validation, code, **data):
        whole = {"name": "x", "run_directory": "x", "batch_size": 8, "steps": 10, **job,
                 "data": {"train": source, "validation": validation, **data}}
        (self.folder / "x.yaml").write_text(json.dumps({"job": whole}))
        said = self.lockstep("check", "x.yaml", code=code)
        self.assertEqual(self.lockstep("train", "x.yaml", code=code), said)
        return said

    def test_images_of_another_size(self):
        for name in ("data", "wide"):
            readers.images(self.folder / name, ROWS)
        for path in (self.folder / "wide").glob("*/*.png"):
            path.write_bytes(readers.png(8, width=6))
        said = ("lockstep: wide: expected 'image' as f32 [4, 4, 1], as the model reads it, found f32 [4, 6, 1]; resize "
                "or crop all images to one size, under `prepare`\n")
        self.assertEqual(self.refused({"images": "data"}, CLASSES, {"images": "wide"}, 65), said)
        self.train({"images": "data"}, CLASSES, "run")
        self.assertEqual(self.lockstep("eval", "run", "--set", "test", "data.test.images=wide", code=65), said)
        # Of the training set itself, where only augmentation makes images of another size.
        self.assertIn("data: expected 'image' as f32 [2, 2, 1], as the model reads it, found f32 [4, 4, 1]; resize",
                      self.refused({"images": "data"}, CLASSES, {"fraction": 0.25}, 65,
                                   augment=[{"resized_crop": {"size": 2}}]))

    def test_masks(self):
        readers.image_table(self.folder / "levels.csv", ROWS)
        for name, level in (("ones", 1), ("black", 255)):
            lines = ["image,mask"]
            for i, row in enumerate(ROWS[:40]):
                (self.folder / f"{name}{i}.png").write_bytes(readers.png(level if row[4] == "yes" else 0))
                lines.append(f"level{readers.level_of(row)}.png,{name}{i}.png")
            (self.folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        job = {"model": {"layers": [{"conv": {"filters": 2, "kernel": 1}}]}, "metrics": ["mean_iou"],
               "loss": {"cross_entropy": {}, "target": "mask"}}
        source = {"path": "ones.csv", "mask": "mask", "classes": ["ground", "thing"]}
        self.train({"csv": source}, job, "run")

        def test_set(path, classes="ground, thing", more=""):
            return "--set", "test", f"data.test.csv={{path: {path}.csv, mask: mask, classes: [{classes}]{more}}}"
        expected = self.eval("run", *test_set("ones"))
        self.assertEqual(self.eval("run", *test_set("black", more=", values: [0, 255]")), expected)
        self.assertIn("black.csv: the masks hold 0 and 255 only, and 255 does not count, so 'ground' is all there is; "
                      "if 255 is 'thing', add `values: [0, 255]`\n",
                      self.lockstep("eval", "run", *test_set("black"), code=65))
        self.assertIn("ones.csv: classes: expected those of the training set's masks, in their order, ground, thing, "
                      "found thing, ground; name them alike\n",
                      self.lockstep("eval", "run", *test_set("ones", "thing, ground"), code=65))

    def test_targets_of_another_name(self):
        table(self.folder / "data", ROWS)
        job = {"model": {"mlp": {"hidden": [8]}}, "loss": "mean_squared_error"}
        self.train({"table": {"path": "data", "target": "a", "features": ["b", "c"]}}, job, "run")
        done = subprocess.run(
            [PROGRAM, "eval", "run", "--set", "test", "data.test.table={path: data, target: b}"], cwd=self.folder,
            env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.assertEqual(done.stderr, "warning: the target is b, that of the training set a\n"
                         "warning: test: it reads what training reads, too: data\n")


class SeveralTargets(Folder):
    def trained(self, source, job, run, test):
        """What `run` says of its own training set, whose targets the test set may name in another order."""
        self.train(source, job, run)
        (kind, settings), = source.items()
        asked = [json.dumps({**settings, "target": order}) for order in (settings["target"], settings["target"][::-1])]
        found = [self.eval(run, "--set", "test", f"data.test.{kind}={words}") for words in asked]
        self.assertEqual(*found)
        self.assertEqual(found[0], self.eval(run, "--set", "test", f"data.test.{kind}={test}"))

    def test_of_a_table(self):
        table(self.folder / "data", ROWS)
        together = {"model": {"mlp": {"hidden": [8]}}, "loss": "mean_squared_error", "metrics": ["mae"]}
        self.trained({"table": {"path": "data", "target": ["a", "c"], "features": ["b", "k"]}}, together, "run",
                     "{path: data, features: [b, k]}")
        layers = [{"linear": 4, "name": "body"}, {"linear": 1, "name": "one", "inputs": "body"},
                  {"linear": 1, "name": "two", "inputs": "body"}]
        apart = {"model": {"layers": layers}, "loss": [
            {"mean_squared_error": {}, "target": "a", "output": "one"}, {"mean_squared_error": {}, "target": "c", "output": "two"}]}
        self.trained({"table": {"path": "data", "target": ["a", "c"], "features": ["b", "k"]}}, apart, "apart",
                     "{path: data, features: [b, k]}")

    def test_of_images(self):
        lines = ["image,x,y"]
        for i, row in enumerate(ROWS[:40]):
            (self.folder / f"{i}.png").write_bytes(readers.png(readers.level_of(row)))
            lines.append(f"{i}.png,{row[0]},{row[1]}")
        (self.folder / "data.csv").write_text("\n".join(lines) + "\n")
        job = {"model": {"mlp": {"hidden": [8]}}, "loss": "mean_squared_error", "metrics": ["mae"]}
        self.trained({"csv": {"path": "data.csv", "target": ["x", "y"]}}, job, "run", "data.csv")


class Labels(Folder):
    def test_labels_that_were_mixed(self):
        """Training samples have a share of each class then; those of a set that is evaluated have one."""
        readers.images(self.folder / "data", ROWS)
        whole = {"job": {"name": "mixed", "run_directory": "run", "batch_size": 8, "steps": 10, "seed": 3, **CLASSES,
                         "data": {"train": {"images": "data"}, "validation": {"fraction": 0.25}, "mix": {"mixup": 0.4}}}}
        (self.folder / "run.yaml").write_text(json.dumps(whole))
        self.lockstep("train", "run.yaml")
        last = [json.loads(line) for line in (self.folder / "run/events.jsonl").read_text().splitlines()
                if '"eval"' in line][-1]
        samples, loss, metrics = self.eval("run")
        self.assertEqual((samples, loss, metrics), (30, last["loss"], last["metrics"]))
        self.assertEqual(self.eval("run", "--set", "train")[0], 90)
        self.assertEqual(self.eval("run", "--set", "test", "data.test.images=data")[0], 120)
        del whole["job"]["data"]["mix"]
        (self.folder / "plain.yaml").write_text(json.dumps(whole))
        self.lockstep("train", "plain.yaml", "run_directory=plain")
        for members in (("run", "run"), ("run", "plain"), ("plain", "run")):
            found = json.loads(self.lockstep("ensemble", "eval", *members, "--log", "json"))["members"]
            self.assertEqual([one["metrics"] for one in found], [self.eval(one)[2] for one in members])

    def test_students_of_each_reader(self):
        """They learn probabilities, and are asked like those that learn labels."""
        for reader in READERS:
            if reader.name not in ("table", "images", "texts"):
                continue
            with self.subTest(reader.name):
                reader.write(self.folder / reader.path, ROWS)
                for run in ("one", "two"):
                    self.train(reader.source, reader.job, run)
                self.lockstep("ensemble", "distill", "one", "two", "--to", "student")
                self.lockstep("train", "student/job.yaml")
                self.assertEqual(self.eval("student")[0], 30)
                (kind, settings), = reader.source.items()
                self.assertEqual(self.eval("student", "--set", "test", f"data.test.{kind}={json.dumps(settings)}")[0], 120)
                found = self.lockstep("predict", "student", reader.path, "--log", "json").splitlines()
                self.assertEqual([set(json.loads(line)) >= {"classes"} for line in found], [True] * len(found))
                for run in ("one", "two", "student"):
                    shutil.rmtree(self.folder / run)
                (self.folder / reader.path).rename(self.folder / f"{reader.name}-before")

    def test_one_number_that_tells_two_classes_apart(self):
        """It is the probability of the second."""
        readers.images(self.folder / "data", [[str(4 * (row[4] == "yes")), *row[1:]] for row in ROWS])
        self.train({"images": "data"}, {"model": {"mlp": {"hidden": [8]}}, "loss": "binary_cross_entropy",
                                        "metrics": ["binary_accuracy"], "optimizer": "adam"}, "run", steps=60)
        self.assertEqual(self.eval("run")[2], {"binary_accuracy": 1.0})
        for name in ("no", "yes"):
            for line in self.lockstep("predict", "run", f"data/{name}", "--log", "json").splitlines():
                probability, = json.loads(line)["probabilities"]
                self.assertEqual(probability > 0.5, name == "yes")
            for line in self.lockstep("predict", "run", f"data/{name}").splitlines():
                path, of, probability = line.split()
                self.assertEqual((path.split("/")[1], of, float(probability) > 0.5), (name, "yes", name == "yes"))


class NoNumbers(Folder):
    """A prediction that is NaN is of no class; what counts classes would take it for one."""

    def setUp(self):
        super().setUp()
        table(self.folder / "data", ROWS)
        table(self.folder / "huge", [*ROWS[:5], ["3e38", "3e38", "-3e38", *ROWS[5][3:]], *ROWS[6:9]])
        job = {"name": "huge", "model": {"mlp": {"hidden": [8, 8]}}, "metrics": ["accuracy", "macro_f1"],
               "optimizer": "adam", "learning_rate": 1.0, "batch_size": 8, "steps": 10}
        self.job = {**job, "data": {"train": READERS[0].source, "normalize": "never", "validation": {"fraction": 0.25}}}
        for run, seed in (("one", 3), ("two", 4)):
            self.train_job({**self.job, "run_directory": run, "seed": seed})

    def train_job(self, job, *words):
        (self.folder / "job.yaml").write_text(json.dumps({"job": job}))
        self.lockstep("train", "job.yaml", *words)

    def test_every_command_refuses(self):
        path = r"one/checkpoints/step-00000010"
        test = ("--set", "test", "data.test.table={path: huge, target: label}")
        where = (r", found (nan|an infinite one) for huge:7 \(1 of 9 samples\); look there for values far beyond those "
                 r"of the training set\n$")
        predictions = f"{path}: expected finite predictions{where}"
        for words in (("predict", "one", "huge"), ("predict", "one", "huge", "--log", "csv", "--scores", "logits"),
                      ("predict", "one", "huge", "--log", "json", "--ranks", "2"),
                      ("ensemble", "predict", "one", "two", "huge"), ("ensemble", "eval", "one", "two", *test)):
            with self.subTest(words=words):
                self.assertRegex(self.lockstep(*words, code=76), predictions)
        for more in ((), ("--details",), ("--log", "json", "--ranks", "2")):
            said = self.lockstep("eval", "one", *test, *more, code=76)
            self.assertRegex(said, f"{path}: expected finite losses{where}")

    def test_training_counts_none(self):
        data = {**self.job["data"], "validation": {"table": {"path": "huge", "target": "label"}}}
        self.train_job({**self.job, "run_directory": "three", "evaluate": {"every": "5 steps"}, "data": data,
                        "checkpoint": {"best": "accuracy", "every": "5 steps"}}, "--ranks", "2")
        events = [json.loads(line) for line in (self.folder / "three/events.jsonl").read_text().splitlines()]
        evaluations = [event for event in events if event["event"] == "eval"]
        self.assertEqual([(event["loss"], set(event["metrics"].values())) for event in evaluations],
                         [("nan", {"nan"})] * 2)
        warnings = [event["message"] for event in events if event["event"] == "warning"]
        said = "the validation loss is nan, so no metric is a number; `lockstep eval` names the first such sample"
        self.assertEqual(warnings.count(said), 2)
        self.assertFalse((self.folder / "three/checkpoints/best").exists())
        self.assertEqual(warnings[-1], "no evaluation gave a finite accuracy, which checkpoint.best names, so there is no "
                         "best checkpoint; name another metric")
        for settings, who in (({"early_stop": {"metric": "accuracy", "patience": 9}}, "early_stop"),
                              ({"learning_rate": {"peak": 1.0, "schedule": {"plateau": "accuracy"}}},
                               "the learning rate's schedule")):
            self.train_job({**self.job, "run_directory": who, "evaluate": {"every": "5 steps"}, "data": data, **settings})
            events = [json.loads(line) for line in (self.folder / who / "events.jsonl").read_text().splitlines()]
            self.assertEqual([event["message"] for event in events if event["event"] == "warning"][-1],
                             f"no evaluation gave a finite accuracy, which {who} names, so every evaluation counted as no "
                             "improvement; name another metric")

    def test_text(self):
        readers.text(self.folder / "words", ROWS)
        self.train({"text": {"path": "words", "context": 16}}, GPT, "text")
        self.lockstep("checkpoint", "export", "text", "text.safetensors")
        weights = (self.folder / "text.safetensors").read_bytes()
        length = struct.unpack("<Q", weights[:8])[0]
        numbers = len(weights) // 4 - (8 + length) // 4
        (self.folder / "large.safetensors").write_bytes(weights[:8 + length] + struct.pack("<f", 1e30) * numbers)
        words = ("predict", "text", "--checkpoint", "large.safetensors", "--prompt", "red")
        self.assertRegex(self.lockstep(*words, code=76),
                         "large.safetensors: expected a finite score for each token, found others for token 1 behind the "
                         "prompt; take another checkpoint\n$")


if __name__ == "__main__":
    unittest.main()
