#!/usr/bin/env python3
"""`lockstep sweep` where the data are missing: on one of two hosts, which gets no trials then; everywhere for some
seconds, after which the trials go on."""
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from emulated_hosts import EmulatedHosts, run  # noqa: E402  pylint: disable=wrong-import-position
from launches import OPEN_MPI  # noqa: E402  pylint: disable=wrong-import-position
from sweep_test import PATIENCE, Sweep, wait_until  # noqa: E402  pylint: disable=wrong-import-position

SWEEP = """
sweep:
  metric: loss
  budget: BUDGET
  parameters: {learning_rate: {log_uniform: {low: 0.0001, high: 0.001}}}
job:
  model: {layers: [{linear: {features: 1}}]}
  data:
    train: {table: {path: FOLDER/data/train.csv, target: t}}
    validation: {table: {path: FOLDER/data/validation.csv, target: t}}
  loss: mean_squared_error
  batch_size: 40
  micro_batches: 4
  threads: 1
  steps: STEPS
  evaluate: {every: 100 steps}
  checkpoint: {every: 100 steps}
"""


class Quarantine(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "data").mkdir()
        for name, count in (("train", 400), ("validation", 40)):
            rows = "".join(f"{i % 7 / 7},{i % 5 / 5},{i % 2}\n" for i in range(count))
            (self.folder / f"data/{name}.csv").write_text("a,b,t\n" + rows, encoding="utf-8")

    def sweep(self, budget, steps):
        text = SWEEP.replace("FOLDER", str(self.folder)).replace("BUDGET", str(budget)).replace("STEPS", str(steps))
        sweep = Sweep(self.folder / "sweep", "")
        (sweep.folder / "sweep.yaml").write_text(text, encoding="utf-8")
        return sweep

    @unittest.skipIf(EmulatedHosts.missing() or OPEN_MPI >= 5, "hosts cannot be emulated here")
    def test_a_host_without_the_data_gets_no_trials(self):
        sweep = self.sweep(6, 2000)
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            run(*hosts.prefix(1), "mount", "-t", "tmpfs", "tmpfs", self.folder / "data")
            process = sweep.start("--hosts", hosts.slots(1), "--agent", hosts.agent,
                                  prefix=[*hosts.prefix(0), "env", "-C", sweep.folder])
            output, _ = process.communicate(timeout=PATIENCE)
            place = f"host {hosts.names[1]}"
        self.assertEqual(process.returncode, 0, output)
        self.assertEqual(len(sweep.records("result")), 6, output)
        failures = sweep.records("failure")
        self.assertTrue(failures)
        for failure in failures:
            self.assertEqual((failure["code"], failure["place"], failure["counts"], failure["final"]),
                             (65, place, False, False))
        self.assertRegex(output, rf"{place} is left out, and gets a trial again after 30 s: trial \d failed there "
                                 r"after \d+\.\d s, and is tried elsewhere: code 65: .*expected data, found nothing "
                                 r"at .*train.csv")

    def test_data_that_are_away_for_a_while_fail_no_trial(self):
        sweep = self.sweep(8, 1000)
        process = sweep.start("--ranks", "1")
        wait_until(lambda: len(sweep.records("result")) >= 2, "two trials")
        (self.folder / "data").rename(self.folder / "away")
        wait_until(lambda: sweep.records("failure"), "a failure")
        time.sleep(4)
        (self.folder / "away").rename(self.folder / "data")
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, output)
        self.assertEqual(len(sweep.records("result")), 8, output)
        failures = sweep.records("failure")
        self.assertLessEqual(len({failure["trial"] for failure in failures}), 2, "nothing new is begun meanwhile")
        for failure in failures:
            self.assertEqual((failure["code"], failure["place"], failure["counts"], failure["final"]),
                             (65, "this machine", False, False))
        self.assertRegex(output, r"trial \d failed after \d+\.\d s, where others have trained: it is tried again "
                                 r"for some minutes: code 65: .*expected data, found nothing at .*train.csv")


if __name__ == "__main__":
    unittest.main()
