#!/usr/bin/env python3
"""Every reader, what may become of its data, and every command that then reads them: the answer that there was before,
or one refusal that names what is wrong. A new reader is a row of READERS, a new command one of Trial's functions.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]
from readers import READERS, ROWS  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
AT_ONCE = min(4, os.cpu_count())
SAME, GOES_ON = "the same answer", "an answer of its own"
CHANGED = "have changed since the model was trained"
OTHER_RUN = "the data set is not the one that this run began with; restore it, or choose a new run_directory"
REFUSED = {"evaluate": CHANGED, "reload": CHANGED, "ensemble": CHANGED, "resume": OTHER_RUN, "predict": SAME,
           "initialize": GOES_ON, "distill": GOES_ON}
UNCHANGED = {"evaluate": SAME, "reload": SAME, "ensemble": SAME, "resume": GOES_ON, "predict": SAME,
             "initialize": GOES_ON, "distill": SAME}
CLASS = "among the 2 classes of the training set"
OTHER_CLASSES = "expected the classes that the members predict, no, yes, found "
NO_CLASS = {**REFUSED, **dict.fromkeys(("evaluate", "reload", "ensemble"), CLASS), "distill": OTHER_CLASSES}
LABEL = "column 'label': expected one of no, yes, as in the training set, found"
NO_LABEL = {**REFUSED, **dict.fromkeys(("evaluate", "reload", "ensemble"), LABEL), "distill": OTHER_CLASSES}
SHAPE = "expected [0-9]+ tensors of the model, found [0-9]+ that fit"


def lacks(column):
    """A column of that name is expected by who knows the training set's."""
    return dict.fromkeys(("evaluate", "reload", "ensemble", "predict"), f"expected a column '{column}', found")


TABLE = {
    "reordered": {**UNCHANGED, "resume": OTHER_RUN,
                  **dict.fromkeys(("initialize", "distill"), "the columns a, b, c, k, found k, c, b, a")},
    "renamed": {**REFUSED, **lacks("a"),
                **dict.fromkeys(("initialize", "distill"), "the columns a, b, c, k, found renamed, b, c, k")},
    "added": {**UNCHANGED, "resume": OTHER_RUN, "initialize": SHAPE,
              "distill": "the columns a, b, c, k, found a, b, c, k, extra"},
    "class added": {**NO_LABEL, "initialize": SHAPE}, "class renamed": NO_LABEL}
OF_IMAGES = {"class added": {**NO_CLASS, "initialize": SHAPE}, "class renamed": NO_CLASS}
OTHER_ORDER = {"evaluate": CHANGED, "reload": CHANGED, "resume": OTHER_RUN}
NO_IMAGE = "120 of 120 samples are bad: .*: No such file or directory"
EXPECTED = {
    "table": TABLE,
    "parquet": TABLE,
    "series": {"renamed": {**lacks("a"), "resume": "expected a column 'a', found",
                           "initialize": "expected a column 'a', found"}},
    "images": OF_IMAGES,
    "tar": OF_IMAGES, "tgz": OF_IMAGES, "zip": OF_IMAGES,
    "csv": {"renamed": {**REFUSED, "predict": "expected a column 'image', found renamed, label",
                        "distill": "nothing feeds the model's input 'image'"},
            "added": {**dict.fromkeys(REFUSED, NO_IMAGE), "predict": SAME},
            "class added": {**NO_CLASS, "initialize": SHAPE}, "class renamed": NO_CLASS},
    "masks": {"reordered": OTHER_ORDER, "renamed": OTHER_ORDER, "added": dict.fromkeys(REFUSED, NO_IMAGE)},
    "idx": {"class added": {**REFUSED, "initialize": SHAPE,
                            "distill": "expected the classes that the members predict, 0, 1, found 0, 1, 2",
                            **dict.fromkeys(("evaluate", "reload", "ensemble"), "sample 119 has label 2; expected 0")}},
    "cifar": {"class added": REFUSED},
    "packed": OF_IMAGES,
    "digits": dict.fromkeys(("appended", "removed"), {**REFUSED, "resume": "this checkpoint is of another job"}),
    "texts": {"renamed": {**dict.fromkeys(REFUSED, "expected a column 'text', found")},
              "class added": {**NO_CLASS,
                              **dict.fromkeys(("resume", "initialize"), "a prediction of 3 classes or more")},
              "class renamed": NO_CLASS},
}
NO_TEACHER = "expected members that predict classes"
NO_ENSEMBLE = "expected members that predict classes or numbers of a sample"


ORDERS = {"appended": lambda rows: rows + rows[:1], "removed": lambda rows: rows[:-1],
          "shuffled": lambda rows: rows[60:] + rows[:60]}


def changes(reader):
    """By name, a function that writes the changed set to a path, of rows."""
    def write(*columns, of=lambda rows: rows):
        return lambda path, rows: reader.write(path, of(rows), *columns)
    found = {name: write(of=of) for name, of in ORDERS.items() if name != "shuffled" or not reader.words(ROWS)}
    if reader.columns:
        named = ("renamed", *reader.columns[1:])
        found |= {"reordered": write(reader.columns[::-1], reader.columns), "renamed": write(named, named),
                  "added": write((*reader.columns, "extra"), reader.columns)}
    if reader.classes:
        found["class added"] = write(of=lambda rows: [*rows[:-1], [*rows[-1][:4], "maybe"]])
    if reader.classes and reader.names_classes:
        found["class renamed"] = write(of=lambda rows: [[*row[:4], row[4].replace("yes", "zes")] for row in rows])
    return found


OF_FILES = ("predict", "checkpoint")  # which take no words about the job's data


class Trial:
    """A reader's model, and what each command says of it. A pair of an exit code and an answer, or a message."""

    def __init__(self, reader, folder):
        self.reader, self.folder = reader, folder
        self.data, self.new = folder / reader.path, folder / f"new-{reader.path}"
        self.faults, self.words = [], ()
        reader.write(self.data, ROWS)
        reader.write(self.new, ROWS[:20])
        for run, seed in (("run", 3), ("two", 4)):
            self.train(run, seed)
        self.must("checkpoint", "export", "run", "run.safetensors")
        shutil.copytree(folder / "run", folder / "trained")

    def run(self, *words):
        done = subprocess.run(
            [PROGRAM, *words, *(self.words if words[0] not in OF_FILES else ())], cwd=self.folder, capture_output=True,
            text=True, timeout=PATIENCE, check=False,
            env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache"), "LOCKSTEP_PLUGINS": "always"})
        return done.returncode, done.stdout if done.returncode == 0 else done.stderr

    def must(self, *words):
        code, said = self.run(*words)
        if code != 0:
            raise AssertionError(f"{self.reader.name}: {words}: {said}")

    def train(self, run, seed):
        job = {"name": "schema", "run_directory": run, "batch_size": 8, "steps": 10, **self.reader.job, "seed": seed,
               "data": {"train": self.reader.source, "validation": {"fraction": 0.25}, "split_seed": 1}}
        (self.folder / f"{run}.yaml").write_text(json.dumps({"job": job}))
        self.must("train", f"{run}.yaml")

    def of_json(self, words, answer):
        code, said = self.run(*words, "--log", "json")
        return code, answer(json.loads(said)) if code == 0 else said

    def evaluate(self, *more):
        return self.of_json(["eval", "run", *more], lambda one: (one["samples"], one["loss"], one["metrics"]))

    def reload(self):
        return self.evaluate("--checkpoint", "run.safetensors")

    def ensemble(self):
        return self.of_json(["ensemble", "eval", "run", "two"], lambda one: (one["samples"], one["members"][0]["loss"]))

    def predict(self):
        return self.run("predict", "run", self.new.name, "--log", "csv")

    def resume(self):
        found = self.run("train", "run.yaml", "steps=12")
        shutil.rmtree(self.folder / "run")
        shutil.copytree(self.folder / "trained", self.folder / "run")
        return found

    def distill(self):
        found = self.run("ensemble", "distill", "run", "two", "--to", "small")
        written = sorted((self.folder / "small").glob("*.safetensors"))
        answer = [hashlib.sha256(path.read_bytes()).hexdigest() for path in written]
        shutil.rmtree(self.folder / "small", ignore_errors=True)
        return found[0], answer if found[0] == 0 else found[1]

    def initialize(self):
        found = self.run("train", "run.yaml", "initialize=trained", "run_directory=tuned")
        shutil.rmtree(self.folder / "tuned", ignore_errors=True)
        return found

    def expect(self, what, found, before, expected):
        code, said = found
        if expected in (SAME, GOES_ON):
            right = found == before if expected == SAME else code == 0
        else:
            lines = [line for line in str(said).splitlines() if line.startswith("lockstep: ")]
            codes = (66,) if expected == OTHER_RUN else (65, 78)
            right = code in codes and len(lines) == 1 and matches(expected, lines[0])
        if not right:
            self.faults.append(f"{self.reader.name}, {what}: expected {expected}, found {found}\nbefore: {before}")

    def check(self):
        commands = {name: getattr(self, name) for name in REFUSED}
        if not self.reader.predicts:
            del commands["predict"]
        if self.reader.name in ("text", "tokens", "masks"):
            for name in ("ensemble", "distill"):
                code, said = commands.pop(name)()
                assert code == 64 and NO_ENSEMBLE in said, said
        elif not self.reader.classes and self.reader.name != "digits":
            code, said = commands.pop("distill")()
            assert code == 64 and NO_TEACHER in said, said
        before = {name: command() for name, command in commands.items()}
        self.faults += [f"{self.reader.name}: {name}: {said}" for name, (code, said) in before.items() if code != 0]
        of_columns = ("reordered", "renamed", "added")
        for change, write in changes(self.reader).items():
            write(self.data, ROWS)
            self.words = self.reader.words(ORDERS[change](ROWS)) if change in ORDERS else ()
            if change in of_columns:
                write(self.new, ROWS[:20])
            usual = UNCHANGED if change in of_columns else REFUSED
            expected = {**usual, **EXPECTED.get(self.reader.name, {}).get(change, {})}
            for name, command in commands.items():
                self.expect(f"{change}: {name}", command(), before[name], expected[name])
            self.reader.write(self.new, ROWS[:20])
        self.words = ()
        self.reader.write(self.data, ROWS)
        for cache in ("of all these data", "cold", "warm"):
            if cache == "cold" and self.reader.indexed:
                shutil.rmtree(self.folder / "cache")
            self.expect(f"cache {cache}: evaluate", self.evaluate(), before["evaluate"], SAME)
            self.expect(f"cache {cache}: resume", self.resume(), None, GOES_ON)
        return self.faults


def matches(expected, line):
    return re.search(expected, line) is not None


def check(reader):
    with tempfile.TemporaryDirectory() as folder:
        return Trial(reader, pathlib.Path(folder)).check()


class ChangedData(unittest.TestCase):
    def test_the_same_answer_or_one_refusal(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            faults = [fault for found in pool.map(check, READERS) for fault in found]
        self.assertFalse(faults, "\n\n".join(faults))


if __name__ == "__main__":
    unittest.main()
