#!/usr/bin/env python3
"""A shared disk that fails for a moment, and files that are removed under a launch or a sweep. disk_test.py SHIM"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
SHIM = None
JOB = ["data.train.digits.count=64", "data.validation.digits.count=32", "batch_size=32", "micro_batches=2", "threads=1",
       "learning_rate=0.001", "evaluate=never"]
SWEEP = """
sweep:
  metric: accuracy
  budget: 2
  parameters:
    learning_rate: {log_uniform: {low: 0.001, high: 0.1}}
job:
  model: {layers: [flatten, {linear: {features: 10}}]}
  data: {train: {digits: {count: 64}}, validation: {digits: {count: 32, first: 100000}}}
  batch_size: 16
  micro_batches: 2
  threads: 1
  steps: 4
  metrics: accuracy
"""


class Disk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_directory = self.folder / "run"

    def fails_once(self, path):
        """The first opening for reading of such a path fails with EIO."""
        self.once = self.folder / "once"
        self.once.unlink(missing_ok=True)
        return {"LD_PRELOAD": SHIM, "FAULT_READ": "5", "FAULT_READ_PATH": path, "FAULT_READ_ONCE": str(self.once)}

    def lockstep(self, *words, faults=None):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE, check=False,
                              cwd=self.folder, stdin=subprocess.DEVNULL, env={**os.environ, **(faults or {})})

    def launch(self, *words):
        process = subprocess.Popen(
            [PROGRAM, "launch", *JOB, *words, f"run_directory={self.run_directory}", "--ranks", "2", "--log", "json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def events(self, name):
        return events_of(self.run_directory, name)

    def test_a_signature_that_cannot_be_read_for_a_moment(self):
        result = self.lockstep("launch", *JOB, "steps=20", "checkpoint={every: 5 steps}", "run_directory=run", "--ranks",
                               "1", faults=self.fails_once("launch.lock"))
        self.assertTrue(self.once.exists())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([event["step"] for event in self.events("checkpoint")], [5, 10, 15, 20])

    def test_what_is_removed_is_made_again(self):
        def step(number):
            wait_until(lambda: self.checkpoints() > number, f"a checkpoint after step {number}")
        process = self.launch("steps=100000000", "checkpoint={every: 50 steps}")
        step(0)
        (self.run_directory / "launch.lock").unlink()
        (self.run_directory / "lock").unlink()
        step(self.checkpoints() + 50)
        self.assertTrue((self.run_directory / "launch.lock").read_text())
        second = self.lockstep("train", *JOB, f"run_directory={self.run_directory}")
        self.assertEqual(second.returncode, 73, second.stderr)
        shutil.rmtree(self.run_directory, ignore_errors=True)
        step(0)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 75, error)
        warnings = [event["message"] for event in map(json.loads, out.splitlines()) if event["event"] == "warning"]
        self.assertEqual([text for text in warnings if "no checkpoint" in text and "No such file" not in text], [])
        self.assertEqual(self.lockstep("checkpoint", "verify", str(self.run_directory)).returncode, 0)
        self.assertTrue(self.events("checkpoint"))

    def checkpoints(self):
        """The newest step there; 0: none."""
        steps = [int(path.parent.name[5:]) for path in self.run_directory.glob("checkpoints/step-*/manifest.json")]
        return max(steps, default=0)

    def test_a_journal_that_cannot_be_read_for_a_moment(self):
        (self.folder / "sweep.yaml").write_text(SWEEP)
        sweep = ["sweep", "sweep.yaml", "--directory", "out", "--ranks", "1"]
        first = self.lockstep(*sweep)
        self.assertEqual(first.returncode, 0, first.stderr)
        journal = self.folder / "out/journal.jsonl"
        before = journal.read_bytes()
        failed = self.lockstep(*sweep, faults=self.fails_once("journal.jsonl"))
        self.assertEqual((failed.returncode, failed.stderr), (1, "lockstep: out/journal.jsonl: cannot open: Input/output "
                                                                 "error; try again when its disk answers\n"))
        self.assertEqual(journal.read_bytes(), before)
        journal.write_bytes(before + b'{"record":"res')
        again = self.lockstep(*sweep)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("out/journal.jsonl: its last line was not written to its end; these 14 bytes have been cut off",
                      again.stdout + again.stderr)
        self.assertEqual(journal.read_bytes(), before)


if __name__ == "__main__":
    SHIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
