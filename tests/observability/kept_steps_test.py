#!/usr/bin/env python3
"""`telemetry.every`: events.jsonl has these steps, those beside a start and an end, and all other events. Whoever reads
along gets every step, and no bit of the result changes."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python")]
from lockstep_reader import open_run  # noqa: E402  pylint: disable=wrong-import-position
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = ["data.train.digits.count=256", "data.validation.digits.count=64", "batch_size=32", "micro_batches=4",
       "threads=1", "steps=20", "evaluate.every=4 steps", "checkpoint.every=10 steps", "balance=equal"]
WAYS = (("train",), ("train", "--ranks", "2"), ("launch", "--ranks", "2"))


def steps_of(events):
    return [event["step"] for event in events if event["event"] == "step"]


def others_of(events):
    return [event | {"time": None} for event in events if event["event"] != "step"]


class KeptSteps(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def lockstep(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def train(self, *words, code=0):
        """What is printed."""
        return [json.loads(line) for line in self.lockstep(*words, *JOB, "--log", "json", code=code).splitlines()]

    def test_all_ways_to_train(self):
        plain = self.train("train", f"run_directory={self.folder}/plain")
        self.assertEqual(steps_of(events_of(self.folder / "plain")), list(range(1, 21)))
        for number, way in enumerate(WAYS):
            with self.subTest(way=way):
                run = self.folder / str(number)
                printed = self.train(*way, "telemetry={every: 7 steps, tensorboard: true}", f"run_directory={run}")
                kept = events_of(run)
                self.assertEqual(steps_of(printed), list(range(1, 21)))
                self.assertEqual(steps_of(kept), [1, 7, 14, 20])
                written = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
                self.assertEqual(others_of(written), others_of(printed))
                self.assertEqual(kept[-1]["parameters_sha256"], plain[-1]["parameters_sha256"])
                self.assertEqual(open_run(run).training()["step"], [1, 7, 14, 20])
                self.assertEqual(open_run(run).validation()["step"], [4, 8, 12, 16, 20])
                self.lockstep("report", run)
                self.assertIn("20 / 20", (run / "report.html").read_text(encoding="utf-8"))

    def test_a_resume_keeps_the_same_steps(self):
        run = self.folder / "run"
        words = ("telemetry.every=1 epoch", f"run_directory={run}")  # 8 steps
        self.train("train", "--stop-at", "10", *words, code=75)
        self.assertEqual(steps_of(events_of(run)), [1, 8, 10])
        self.train("train", *words)
        self.assertEqual(steps_of(events_of(run)), [1, 8, 10, 11, 16, 20])


if __name__ == "__main__":
    unittest.main()
