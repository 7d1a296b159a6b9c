#!/usr/bin/env python3
"""`lockstep sweep`: whatever is killed on the way, the trials and their bits are those of the quiet sweep."""
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  model: {layers: [flatten, {linear: {features: 16}}, relu, {linear: {features: 10}}]}
  data: {train: {digits: {count: 256}}, validation: {digits: {count: 64, first: 100000}}}
  batch_size: 16
  shards: 2
  steps: STEPS
  evaluate: {every: 20 steps}
  checkpoint: {every: 20 steps}
  metrics: accuracy
"""
RANDOM = """
sweep:
  metric: accuracy
  budget: 4
  parameters:
    learning_rate: {log_uniform: {low: 0.001, high: 0.1}}
    optimizer: {choice: [sgd, adam]}
    optimizer.sgd.momentum: {uniform: {low: 0, high: 0.9}, when: {optimizer: sgd}}
"""
HALVING = RANDOM.replace("metric: accuracy", "metric: accuracy\n  method: {halving: {min_steps: 25, reduction: 2}}")
DIVERGING = """
sweep: {method: grid, metric: loss, parameters: {learning_rate: {choice: [0.1, 1.0e+30]}, seed: {choice: [1, 2]}}}
"""


class Sweep:
    """A sweep file in a folder of its own, and the command that runs it."""

    def __init__(self, folder, text, steps=100):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.directory = self.folder / "out"
        (self.folder / "sweep.yaml").write_text(text + JOB.replace("STEPS", str(steps)), encoding="utf-8")

    def start(self, *words, prefix=()):
        return subprocess.Popen([*prefix, PROGRAM, "sweep", "sweep.yaml", "--directory", "out", *words], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *words, code=0):
        process = self.start(*words)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, f"expected {code}, found {process.returncode}:\n{output}"
        return output

    def rows(self):
        with open(self.directory / "trials.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def hashes(self):
        return [row["parameters_sha256"] for row in self.rows()]

    def records(self, kind):
        lines = (self.directory / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["record"] == kind]

    def events(self, trial, name):
        return events_of(self.directory / f"trials/{trial:04}", name)

    def wait_for_step(self, trial, step):
        wait_until(lambda: any(event["step"] >= step for event in self.events(trial, "step")), f"step {step}")


def process_of(sweep, trial):
    """The process id of a trial's `lockstep train`."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            inside = os.path.realpath(folder / "cwd") == str(sweep.folder.resolve())
        except OSError:
            continue
        if inside and b"train" in words and f"out/trials/{trial:04}/job.yaml".encode() in words:
            return int(folder.name)
    return None


class Sweeps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.quiet = Sweep(f"{cls.folder}/quiet", RANDOM)
        cls.output = cls.quiet.run("--ranks", "1")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def sweep(self, text=RANDOM, steps=100):
        return Sweep(f"{self.folder}/{self.id().rsplit('.', 1)[-1]}", text, steps)

    def same_as_quiet(self, sweep):
        columns = ["trial", "state", "value", "steps", "learning_rate", "optimizer", "optimizer.sgd.momentum",
                   "validation_accuracy", "validation_loss", "parameters_sha256"]
        wanted, found = ([[row[column] for column in columns] for row in one.rows()] for one in (self.quiet, sweep))
        self.assertEqual(found, wanted)

    def test_results(self):
        rows = self.quiet.rows()
        self.assertEqual([row["state"] for row in rows], ["done"] * 4)
        self.assertEqual(len(set(self.quiet.hashes())), 4)
        best = max(rows, key=lambda row: float(row["value"]))
        self.assertIn(f"trial {best['trial']} done: accuracy", self.output)
        whole = json.loads((self.quiet.directory / "trials.json").read_text(encoding="utf-8"))
        self.assertEqual(rows[whole["best"]]["value"], best["value"])
        self.assertEqual([trial["parameters_sha256"] for trial in whole["trials"]], self.quiet.hashes())

    def test_the_best_job_is_ready_to_train_to_the_same_bits(self):
        whole = json.loads((self.quiet.directory / "trials.json").read_text(encoding="utf-8"))
        done = subprocess.run([PROGRAM, "train", "out/best.yaml", "--log", "json"], cwd=self.quiet.folder,
                              capture_output=True, text=True, check=True)
        end = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(end["parameters_sha256"], self.quiet.hashes()[whole["best"]])

    def test_slots_and_ranks_change_no_bit(self):
        sweep = self.sweep()
        sweep.run("--ranks", "4", "--ranks-per-trial", "2")
        self.same_as_quiet(sweep)
        self.assertEqual(sweep.events(0, "start")[0]["ranks"], 2)

    def test_a_killed_sweep_goes_on(self):
        sweep = self.sweep()
        process = sweep.start("--ranks", "2")
        sweep.wait_for_step(2, 25)
        process.kill()
        process.communicate()
        sweep.run("--ranks", "2")
        self.same_as_quiet(sweep)
        finished = [record["trial"] for record in sweep.records("result")]
        self.assertEqual(sorted(finished), [0, 1, 2, 3])
        self.assertEqual(len(sweep.events(finished[0], "start")), 1)  # finished work is not repeated
        self.assertTrue(any(sweep.events(trial, "restart") for trial in (2, 3)))  # goes on from a checkpoint
        self.assertFalse(sweep.records("failure"))
        lines = (sweep.directory / "journal.jsonl").read_bytes()
        sweep.run("--ranks", "2")  # there is nothing to do
        self.assertEqual((sweep.directory / "journal.jsonl").read_bytes(), lines)

    def test_a_signal_stops_it_and_the_same_command_goes_on(self):
        sweep = self.sweep()
        process = sweep.start("--ranks", "2")
        sweep.wait_for_step(0, 25)
        process.send_signal(signal.SIGTERM)
        self.assertIn("stopped; the same command goes on from here", process.communicate(timeout=PATIENCE)[0])
        self.assertEqual(process.returncode, 75)
        sweep.run()
        self.same_as_quiet(sweep)

    def test_a_killed_trial_is_tried_again(self):
        sweep = self.sweep()
        process = sweep.start("--ranks", "1")
        sweep.wait_for_step(1, 25)
        os.kill(wait_until(lambda: process_of(sweep, 1), "trial 1"), signal.SIGKILL)
        self.assertIn("trial 1 is tried again: killed by signal 9", process.communicate(timeout=PATIENCE)[0])
        self.assertEqual(process.returncode, 0)
        self.same_as_quiet(sweep)
        self.assertEqual([row["failures"] for row in sweep.rows()], ["0", "1", "0", "0"])

    def test_a_trial_that_cannot_succeed_is_marked_and_the_others_go_on(self):
        sweep = self.sweep(DIVERGING, steps=20)
        output = sweep.run("--retries", "5")
        self.assertRegex(output, r"trial 2 failed: code 76: .*the loss is (nan|infinite)")
        rows = sweep.rows()
        self.assertEqual([row["state"] for row in rows], ["done", "done", "failed", "failed"])
        self.assertEqual([row["failures"] for row in rows], ["0", "0", "1", "1"])  # 76 is permanent

    def test_halving_trains_the_best_further_from_their_checkpoints(self):
        quiet, killed = self.sweep(HALVING), Sweep(f"{self.folder}/killed_halving", HALVING)
        quiet.run("--ranks", "1")
        process = killed.start("--ranks", "1")
        wait_until(lambda: (killed.directory / "journal.jsonl").exists() and killed.records("promote"), "a promotion")
        process.kill()
        process.communicate()
        killed.run("--ranks", "1")
        steps = [int(row["steps"]) for row in quiet.rows()]
        self.assertIn(100, steps)
        self.assertLess(sum(steps), 400)
        columns = ["state", "value", "steps", "learning_rate"]
        self.assertEqual(*([[row[column] for column in columns] for row in one.rows()] for one in (quiet, killed)))
        for row, same in zip(quiet.rows(), self.quiet.rows()):  # the same settings, never paused
            if row["state"] == "done":
                self.assertEqual(row["parameters_sha256"], same["parameters_sha256"])

    def test_two_sweeps_do_not_share_a_directory(self):
        sweep = self.sweep()
        process = sweep.start("--ranks", "1")
        sweep.wait_for_step(0, 5)
        self.assertIn("out: another run uses this directory", sweep.run(code=73))
        process.kill()
        process.communicate()

    def test_another_sweep_in_the_directory_is_refused(self):
        sweep = self.sweep(DIVERGING, steps=20)
        sweep.run()
        self.assertEqual(sweep.run("batch_size=32", code=78),
                         "lockstep: out/journal.jsonl: expected the sweep that was begun in this directory, found another: "
                         "it differs in job; choose another directory with --directory\n")


if __name__ == "__main__":
    unittest.main()
