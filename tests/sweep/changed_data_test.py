#!/usr/bin/env python3
"""A sweep whose data change between two trials ends with one sentence, and goes on when they are restored: the results of
trials on other data are never ranked, averaged or combined."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from run_events import records_of  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  model: {layers: [{linear: {features: 8}}, relu, {linear: {features: 2}}]}
  data: {train: {table: {path: rows.csv, target: label}}, validation: {fraction: 0.25}, split_seed: 1}
  batch_size: 8
  micro_batches: 2
  steps: 30
  evaluate: {every: 10 steps}
  checkpoint: {every: 10 steps}
  metrics: accuracy
  device: cpu
"""
RATES = "  parameters: {learning_rate: {choice: [0.01, 0.02, 0.03, 0.04]}}\n"
SWEEPS = {
    "grid": "sweep:\n  method: grid\n  metric: loss\n" + RATES,
    "folds": "sweep:\n  method: grid\n  metric: loss\n"
             "  parameters: {data.validation.fold: {choice: [1 of 3, 2 of 3, 3 of 3]}}\n",
    "halving": "sweep:\n  method: {halving: {min_steps: 10, reduction: 2}}\n  metric: loss\n  budget: 4\n" + RATES,
    "population": "sweep:\n  method: {population: {members: 3, every: 10, fraction: 0.5}}\n  metric: loss\n" + RATES,
    "ensemble": ""}
REFUSED = ("lockstep: out: expected the data that {}; restore them and run the same command again, or choose another "
           "--directory")


class Sweep:
    """A sweep or an ensemble over rows of a table, in a folder of its own."""

    def __init__(self, folder, text):
        self.folder, self.out = folder, folder / "out"
        self.part = "trial" if text else "member"
        folder.mkdir()
        job = JOB.replace("validation: {fraction: 0.25}", "validation: {fold: 1 of 3}") if "fold" in text else JOB
        (folder / "job.yaml").write_text(text + job, encoding="utf-8")
        draw = random.Random(1)
        rows = [f"{draw.random()},{draw.random()},{'no yes'.split()[i % 2]}\n" for i in range(60)]
        self.rows = "a,b,label\n" + "".join(rows)
        self.command = ["sweep", "job.yaml"] if text else ["ensemble", "train", "job.yaml", "--members", "3"]
        self.write(self.rows)

    def write(self, rows):
        (self.folder / "rows.csv").write_text(rows, encoding="utf-8")

    def run(self, code=0):
        done = subprocess.run([PROGRAM, *self.command, "--ranks", "1", "--directory", "out"], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        assert done.returncode == code, f"expected {code}, found {done.returncode}:\n{done.stdout}"
        return done.stdout

    def results(self):
        return [(record["trial"], record["value"]) for record in records_of(self.out, "result")]

    def cut_after(self, results):
        """As if the sweep had been killed after so many results, when the next trial had just begun."""
        journal = self.out / "journal.jsonl"
        kept, seen = [], 0
        for line in journal.read_text(encoding="utf-8").splitlines(keepends=True):
            seen += json.loads(line)["record"] == "result"
            if seen > results:
                break
            kept.append(line)
        journal.write_text("".join(kept), encoding="utf-8")
        records = [json.loads(line) for line in kept]
        for trial in (self.out / "trials").iterdir():
            if int(trial.name) not in {record["trial"] for record in records if record["record"] == "result"}:
                shutil.rmtree(trial)


class ChangedData(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_a_sweep_goes_on_with_the_same_data_only(self):
        for name, text in SWEEPS.items():
            with self.subTest(name):
                sweep = Sweep(self.folder / name, text)
                sweep.run()
                quiet = sweep.results()
                sweep.cut_after(2)
                sweep.write(sweep.rows + "0.5,0.5,yes\n")
                found = "trial 0 began with, found others" if name == "halving" else \
                    f"{sweep.part} 0 was trained on, found others for {sweep.part} 2"
                self.assertEqual(sweep.run(code=65).splitlines()[-1], REFUSED.format(found))
                self.assertEqual(sweep.results(), quiet[:2])
                sweep.write(sweep.rows)
                sweep.run()
                self.assertEqual(sweep.results(), quiet)

    def test_a_trial_that_was_interrupted_keeps_its_checkpoint(self):
        sweep = Sweep(self.folder / "one", SWEEPS["grid"])
        sweep.run()
        quiet = sweep.results()
        trial, kept = sweep.out / "trials/0001", sweep.folder / "kept"
        trial.rename(kept)
        sweep.cut_after(1)
        kept.rename(trial)
        shutil.rmtree(trial / "checkpoints/step-00000030")
        sweep.write(sweep.rows + "0.5,0.5,yes\n")
        self.assertEqual(sweep.run(code=65).splitlines()[-1], REFUSED.format("trial 1 began with, found others"))
        self.assertTrue((trial / "checkpoints/step-00000020").is_dir())
        sweep.write(sweep.rows)
        sweep.run()
        self.assertEqual(sweep.results(), quiet)

    def test_a_report_on_runs_before_and_after(self):
        sweep = Sweep(self.folder / "runs", "")
        def train(name):
            subprocess.run([PROGRAM, "train", "job.yaml", f"run_directory={name}"], cwd=sweep.folder, check=True,
                           stderr=subprocess.DEVNULL, timeout=PATIENCE)
        def report(*runs):
            subprocess.run([PROGRAM, "report", *runs], cwd=sweep.folder, check=True,
                           stdout=subprocess.DEVNULL, timeout=PATIENCE)
            return (sweep.folder / "report.html").read_text(encoding="utf-8")
        train("before")
        train("again")
        sweep.write(sweep.rows + "0.5,0.5,yes\n")
        train("after")
        self.assertIn("The data have changed between before and after: their losses and metrics are of different samples, and "
                      "none is the best.", report("before", "again", "after"))
        self.assertNotIn(" best\"", report("before", "again", "after"))
        self.assertIn(" best\"", report("before", "again"))

    def test_trials_that_choose_their_data_are_compared(self):
        text = SWEEPS["grid"].replace("parameters: {", "parameters: {data.train.table.features: {choice: [[a], [b]]}, ")
        sweep = Sweep(self.folder / "features", text)
        sweep.run()
        self.assertEqual(len(sweep.results()), 8)

    def test_trials_that_choose_their_data_read_the_same_files(self):
        for path, choice in (("data.train.table.features", "[[a], [b], [a, b]]"),
                             ("data.train.table.path", "[rows.csv, [rows.csv, more.csv], more.csv]"),
                             ("data.validation", "[{fraction: 0.25}, {list: held-out}, {table: more.csv}]")):
            with self.subTest(path):
                text = SWEEPS["grid"].replace("learning_rate: {choice: [0.01, 0.02, 0.03, 0.04]}",
                                              f"{path}: {{choice: {choice}}}")
                sweep = Sweep(self.folder / path, text)
                (sweep.folder / "more.csv").write_text(sweep.rows, encoding="utf-8")
                (sweep.folder / "held-out").write_text("".join(f"rows.csv:{i}\n" for i in range(2, 18)), encoding="utf-8")
                sweep.run()
                quiet = sweep.results()
                self.assertEqual(len(quiet), 3)
                sweep.cut_after(1)
                sweep.write(sweep.rows.replace("yes", "no", 1))
                found = REFUSED.format("trial 0 was trained on, found others for trial 1")
                self.assertEqual(sweep.run(code=65).splitlines()[-1], found)
                self.assertEqual(sweep.results(), quiet[:1])
                sweep.write(sweep.rows)
                sweep.run()
                self.assertEqual(sweep.results(), quiet)

    def test_what_gives_trials_other_validation_samples_is_named(self):
        said = ("warning: job.yaml:4:{}: sweep.parameters.{}: changes what trials are validated on, so that the best one may "
                "be the one with the easiest samples; {}")
        drawn = ("seed", "data.split_seed", "data.validation.fraction", "data.train.table.path", "data.train.table.features")
        values = {"seed": "[1, 2]", "data.split_seed": "[1, 2]", "data.validation.fraction": "[0.2, 0.3]",
                  "data.train.table.path": "[rows.csv, other.csv]", "data.train.table.features": "[[a], [b]]"}
        remedies = {"data.validation.fraction": "give all trials the same data.validation",
                    "data.train.table.path": "give data.validation a set of its own"}
        for path in drawn:
            for seed in ("", ", split_seed: 1"):
                with self.subTest(path=path, seed=seed):
                    text = f"sweep:\n  method: grid\n  metric: accuracy\n  parameters: {{{path}: {{choice: {values[path]}}}}}\n"
                    sweep = Sweep(self.folder / (path + seed.strip(", :1")), text)
                    job = (sweep.folder / "job.yaml").read_text(encoding="utf-8").replace(", split_seed: 1", seed)
                    (sweep.folder / "job.yaml").write_text(job, encoding="utf-8")
                    shutil.copy(sweep.folder / "rows.csv", sweep.folder / "other.csv")
                    remedy = remedies.get(path, "set one data.split_seed")
                    named = path != "data.train.table.features" and not (path == "seed" and seed)
                    warnings = [line for line in sweep.run().splitlines() if "warning" in line]
                    self.assertEqual(warnings, [said.format(18 + len(path), path, remedy)] if named else [])


if __name__ == "__main__":
    unittest.main()
