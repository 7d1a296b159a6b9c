#!/usr/bin/env python3
"""`train --change-settings`: a run goes on with another learning rate, weight decay, label smoothing, dropout and
augmentation, to the same bits on any number of ranks and when it is interrupted; what cannot change is refused."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  model: {layers: [flatten, {linear: {features: 16}}, relu, {dropout: 0.1}, {linear: {features: 10}}]}
  data: {train: {digits: {count: 256}}, validation: {digits: {count: 64, first: 100000}}}
  batch_size: 16
  micro_batches: 2
  steps: 40
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: {peak: 0.05, schedule: {cosine: {final: 0}}}
  checkpoint: {every: 8 steps}
"""
CHANGED = ["learning_rate.peak=0.02", "optimizer.sgd.momentum=0.8", "optimizer.sgd.weight_decay=0.001",
           "loss.cross_entropy.label_smoothing=0.1", "model.layers[3].dropout=0.3", "data.augment=[{cutout: {size: 2}}]",
           "clip_norm=1"]


class ChangeSettings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "job.yaml").write_text(JOB, encoding="utf-8")

    def train(self, run, *words, code=0):
        done = subprocess.run([PROGRAM, "train", "job.yaml", f"run_directory={run}", *words], cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def sha(self, run):
        return events_of(self.folder / run, "end")[-1]["parameters_sha256"]

    def manifest(self, run, step):
        return json.loads((self.folder / run / f"checkpoints/step-{step:08}/manifest.json").read_text(encoding="utf-8"))

    def test_the_bits_are_those_of_the_settings_and_steps(self):
        self.train("unchanged")
        hashes = {self.sha("unchanged")}
        for run, ranks in (("one", 1), ("two", 2)):
            self.train(run, "--ranks", str(ranks), "--stop-at", "20", code=75)
            self.train(run, *CHANGED, "--ranks", str(3 - ranks), "--change-settings", "--stop-at", "30", code=75)
            self.train(run, *CHANGED, "--change-settings")  # nothing is left to change
        self.assertEqual(self.sha("one"), self.sha("two"))
        self.train("from", *CHANGED, "--change-settings", "--resume", "one/checkpoints/step-00000030")
        self.assertEqual(self.sha("from"), self.sha("one"))  # of another run, whose settings are these already
        self.train("later", "--stop-at", "24", code=75)
        self.train("later", *CHANGED, "--change-settings")
        hashes |= {self.sha("one"), self.sha("later")}
        self.assertEqual(len(hashes), 3)
        restart, again = events_of(self.folder / "one", "restart")
        for path in ("learning_rate.peak: 0.05, now 0.02", "momentum: 0.9, now 0.8", "data.augment: ", "dropout.rate: 0.1, "):
            self.assertIn(path, restart["message"])
        self.assertNotIn("message", again)
        (earlier,) = self.manifest("one", 40)["earlier_settings"]
        self.assertEqual(earlier["until"], 20)
        self.assertEqual(json.loads(earlier["job"])["job"]["learning_rate"]["peak"], 0.05)
        self.assertNotIn("earlier_settings", self.manifest("unchanged", 40))

    def test_others_are_refused(self):
        self.train("run", "--stop-at", "8", code=75)
        self.assertEqual(
            self.train("run", "--change-settings", "learning_rate.peak=0.1", "batch_size=32", "seed=2", code=78),
            "lockstep: run/checkpoints/step-00000008: --change-settings: expected another length and other values of "
            "learning_rate, the optimizer's own settings, clip_norm, loss, data.augment and dropout rates only, found "
            "others:\n  job.seed: 1, now 2; job.batch_size: 16, now 32\nrestore these\n")
        self.assertIn("this checkpoint is of another job:\n  job.learning_rate.peak: 0.05, now 0.1\nrestore",
                      self.train("run", "learning_rate.peak=0.1", code=78))

    def test_a_new_leg_is_in_the_history(self):
        leg = ["steps=60", "learning_rate={peak: 0.01, schedule: constant}"]
        for run, ranks in (("one", 1), ("two", 2)):
            self.train(run, "--ranks", str(ranks))
            self.train(run, *leg, "--ranks", str(3 - ranks), "--change-settings")
        self.assertEqual(self.sha("one"), self.sha("two"))
        (earlier,) = self.manifest("one", 60)["earlier_settings"]
        self.assertEqual((earlier["until"], json.loads(earlier["job"])["job"]["steps"]), (40, 40))
        said = "job.learning_rate.schedule: cosine, now constant"
        self.assertIn(said, events_of(self.folder / "one", "restart")[-1]["message"])
        subprocess.run([PROGRAM, "report", "one"], cwd=self.folder, stdout=subprocess.DEVNULL, check=True)
        self.assertRegex((self.folder / "one/report.html").read_text(encoding="utf-8"),
                         rf"step 40 +resumed +from one/checkpoints/step-00000040, with .*job\.steps: 40, now 60.*{said}")
        self.assertIn("the run has done 60 steps, more than the 50 that the job now has",
                      self.train("one", *leg, "steps=50", "--change-settings", code=78))

    def test_an_optimizer_without_momentum_has_none_to_go_on_with(self):
        self.train("run", "optimizer.sgd.momentum=0", "--stop-at", "8", code=75)
        self.assertRegex(self.train("run", "--change-settings", code=65),
                         r"^lockstep: run/checkpoints/step-00000008: it has no tensor 'linear.*:momentum'\n$")


if __name__ == "__main__":
    unittest.main()
