#!/usr/bin/env python3
"""`lockstep sweep`: whatever is killed on the way, the trials and their bits are those of the quiet sweep."""
import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "data")]
from free_ports import free_ports  # noqa: E402  pylint: disable=wrong-import-position
from make_data import png  # noqa: E402  pylint: disable=wrong-import-position
from run_events import events_of, records_of  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  model: {layers: [flatten, {linear: {features: 16}}, relu, {linear: {features: 10}}]}
  data: {train: {digits: {count: 256}}, validation: {digits: {count: 64, first: 100000}}}
  batch_size: 16
  micro_batches: 2
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
POPULATION = """
sweep:
  metric: loss
  method: {population: {members: 4, every: 25, fraction: 0.5}}
  parameters:
    learning_rate: {log_uniform: {low: 0.001, high: 0.1}}
    optimizer.sgd.momentum: {uniform: {low: 0.1, high: 0.9}}
    data.augment: {choice: [[], [{cutout: {size: 3}}]]}
"""
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

    def start(self, *words, prefix=(), environment=None):
        return subprocess.Popen([*prefix, PROGRAM, "sweep", "sweep.yaml", "--directory", "out", *words], cwd=self.folder,
                                env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, *words, code=0, environment=None):
        process = self.start(*words, environment=environment)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, f"expected {code}, found {process.returncode}:\n{output}"
        return output

    def rows(self):
        with open(self.directory / "trials.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def hashes(self):
        return [row["parameters_sha256"] for row in self.rows()]

    def records(self, kind):
        return records_of(self.directory, kind)

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

    def killed_in_the_middle(self):
        """A sweep that was killed when trial 2 had a checkpoint and not come to its end; trials are short."""
        for attempt in range(20):
            sweep = Sweep(f"{self.folder}/killed-{attempt}", RANDOM)
            process = sweep.start("--ranks", "2")
            while not sweep.events(2, "checkpoint") and process.poll() is None:
                time.sleep(0.002)
            process.kill()
            process.communicate()
            wait_until(lambda: process_of(sweep, 2) is None, "the end of trial 2's process")
            if all(end["interrupted"] for end in sweep.events(2, "end")):
                return sweep
        self.fail("trial 2 came to its end each time")

    def test_a_killed_sweep_goes_on(self):
        sweep = self.killed_in_the_middle()
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
        trial = wait_until(lambda: process_of(sweep, 1), "trial 1")  # as it begins: it does not last long
        sweep.wait_for_step(1, 25)
        os.kill(trial, signal.SIGKILL)
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
        wait_until(lambda: killed.records("promote"), "a promotion")
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

    def test_a_population_is_the_same_with_other_slots_and_when_it_is_killed(self):
        quiet, killed = self.sweep(POPULATION), Sweep(f"{self.folder}/killed_population", POPULATION)
        output = quiet.run("--ranks", "1")
        process = killed.start("--ranks", "2")
        wait_until(lambda: [record for record in killed.records("begin") if "from" in record], "a copy")
        copy = killed.records("begin")[4]["trial"]
        wait_until(lambda: killed.events(copy, "step"), "its first step")
        process.kill()
        process.communicate()
        before = killed.records("result")
        killed.run("--ranks", "2")
        self.assertEqual(killed.records("result")[:len(before)], before)
        columns = ["trial", "state", "value", "steps", "parameters_sha256", "from_trial", "from_step", "learning_rate",
                   "optimizer.sgd.momentum", "data.augment"]
        rows = quiet.rows()
        self.assertEqual(*([[row[column] for column in columns] for row in one.rows()] for one in (quiet, killed)))
        self.assertEqual([row["from_step"] for row in rows], [""] * 4 + ["25"] * 2 + ["50"] * 2 + ["75"] * 2)
        self.assertEqual([row["state"] for row in rows].count("done"), 4)
        self.assertRegex(output, r"trial 4 paused: loss \d\.\d{4} after 50 steps \(from trial \d at step 25, learning_rate ")
        self.check_lineage(quiet, rows)
        self.check_replay(quiet)

    def check_lineage(self, sweep, rows):
        """A copy begins with the parameters that it copies, and its checkpoint says where they are from."""
        for row in rows[4:]:
            trial, origin, step = int(row["trial"]), int(row["from_trial"]), int(row["from_step"])
            self.assertEqual(sweep.events(trial, "step")[0]["step"], step + 1)
            restart = sweep.events(trial, "restart")[0]
            self.assertEqual(restart["path"], f"out/trials/{trial:04}/checkpoints/step-{step:08}")
            self.assertRegex(restart["message"], r"^job\.")
            manifest = json.loads((sweep.directory / f"trials/{trial:04}/checkpoints/step-{int(row['steps']):08}" /
                                   "manifest.json").read_text(encoding="utf-8"))
            earlier = manifest["earlier_settings"][-1]
            self.assertEqual(earlier["until"], step)
            self.assertEqual(json.loads(earlier["job"])["job"]["run_directory"], f"out/trials/{origin:04}")
            self.assertEqual(json.loads(manifest["job"])["job"]["learning_rate"]["peak"], float(row["learning_rate"]))

    def check_replay(self, sweep):
        whole = json.loads((sweep.directory / "trials.json").read_text(encoding="utf-8"))
        history = json.loads((sweep.directory / "best-history.json").read_text(encoding="utf-8"))
        self.assertEqual(history["trial"], whole["best"])
        self.assertGreater(len(history["legs"]), 1)  # else there is nothing to test
        command = [PROGRAM, "replay", "out/best-history.json", "run_directory=again"]
        process = subprocess.Popen(command, cwd=sweep.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: len(events_of(sweep.folder / "again", "step")) > 5, "some steps")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 75)
        done = subprocess.run([*command, "--ranks", "2"], cwd=sweep.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=True)
        self.assertIn(f"again has the parameters of trial {whole['best']}\n", done.stdout)
        end = events_of(sweep.folder / "again", "end")[-1]
        self.assertEqual(end["parameters_sha256"], sweep.hashes()[whole["best"]])
        self.assertEqual([event["step"] for event in events_of(sweep.folder / "again", "step")], list(range(1, 101)))

    def test_members_of_a_population_that_diverge_are_replaced(self):
        sweep = self.sweep(POPULATION.replace("{log_uniform: {low: 0.001, high: 0.1}}", "{choice: [0.01, 1.0e+30]}"))
        sweep.run("--ranks", "2")
        states = [row["state"] for row in sweep.rows()]
        self.assertIn("failed", states[:4])
        self.assertIn("done", states)

    def test_a_sweep_without_a_trial_that_ends_well_is_not_worth_running_again(self):
        sweep = self.sweep(DIVERGING.replace("[0.1, 1.0e+30]", "[1.0e+30]"), steps=20)
        for _ in range(2):  # the same command finds the same
            self.assertRegex(sweep.run(code=76).splitlines()[-1],
                             r"^lockstep: out: no trial has come to its end, and those that have failed are not tried "
                             r"again: trial 1: code 76: .*the loss is .*; see trials.csv there, change what is searched, "
                             r"and choose another --directory$")

    def test_the_data_are_indexed_once(self):
        sweep = self.sweep(DIVERGING.replace("[0.1, 1.0e+30]", "[0.1, 0.2]"), steps=20)
        with tarfile.open(sweep.folder / "images.tar", "w") as archive:
            for i in range(3000):
                image = png(8, 8, i % 2 * 100 + i // 100, channels=1)
                entry = tarfile.TarInfo(f"{'ab'[i % 2]}/{i}.png")
                entry.size = len(image)
                archive.addfile(entry, io.BytesIO(image))
        os.utime(sweep.folder / "images.tar", (1_700_000_000, 1_700_000_000))  # a change within this second is not noticed
        text = (sweep.folder / "sweep.yaml").read_text(encoding="utf-8")
        data = text[text.index("  data:"):text.index("  batch_size")]
        text = text.replace(data, "  data: {train: {images: images.tar}, validation: {fraction: 0.1}, split_seed: 1}\n")
        (sweep.folder / "sweep.yaml").write_text(text.replace("features: 10", "features: 2"), encoding="utf-8")
        sweep.run("--ranks", "4", environment={"LOCKSTEP_CACHE": str(sweep.folder / "cache")})
        index = sorted(sweep.events(trial, "start")[0]["index"].split()[0] for trial in range(4))
        self.assertEqual(index, ["cached"] * 3 + ["made"])
        self.assertEqual(len(list((sweep.folder / "cache").iterdir())), 1)  # no lock is left

    def test_prometheus_finds_every_trial_that_runs(self):
        sweep, port = self.sweep(steps=100_000), free_ports(2)
        process = sweep.start("--ranks", "2", f"telemetry.prometheus.port={port}")
        file = sweep.directory / "prometheus-targets.json"
        groups = wait_until(lambda: file.exists() and len(found := json.loads(file.read_text())) == 2 and found, "2 targets")
        for trial, group in enumerate(groups):
            self.assertEqual(group["targets"], [f"127.0.0.1:{port + trial}"])  # a port of its own for each slot
            labels = group["labels"]
            self.assertEqual((labels["sweep"], labels["trial"]), ("sweep", str(trial)))
            with urllib.request.urlopen(f"http://{group['targets'][0]}/metrics", timeout=PATIENCE) as answer:
                self.assertIn(f'name="sweep-{trial:04}"', answer.read().decode())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(json.loads(file.read_text()), [])

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
