#!/usr/bin/env python3
"""`lockstep tune` on the digits: what it measures is there, and what it recommends trains."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  name: small
  model: {layers: [flatten, {linear: {features: 16}}, relu, {linear: {features: 10}}]}
  data: {train: {digits: {count: 256}}}
  batch_size: 16
  micro_batches: 4
  epochs: 1
  learning_rate: 0.01
  threads: 1
"""


class TuneTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "job.yaml").write_text(JOB, encoding="utf-8")

    def run_program(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, f"{words}:\n{done.stdout}{done.stderr}")
        return done

    def tune(self, what, *words):
        return json.loads(self.run_program("tune", what, "job.yaml", *words, "--json").stdout)

    def test_learning_rate_is_one_that_trains(self):
        found = self.tune("lr", "--from", "1e-4", "--to", "100", "--steps", "120")
        self.assertTrue(1e-3 < found["steepest"] < found["lowest"] < 100, found)
        rates = [point["learning_rate"] for point in found["points"]]
        self.assertAlmostEqual(rates[0], 1e-4)
        for rate, following in zip(rates, rates[1:]):
            self.assertAlmostEqual(following / rate, 1e6 ** (1 / 119))
        lines = self.run_program("train", "job.yaml", f"learning_rate={found['steepest']}", "epochs=4", "--log",
                                 "json").stdout.splitlines()
        losses = [event["loss"] for event in map(json.loads, lines) if event["event"] == "step"]
        self.assertLess(losses[-1], losses[0])

    def test_people_get_a_table_a_picture_and_a_line_for_the_job(self):
        output = self.run_program("tune", "lr", "job.yaml", "--from", "1e-4", "--to", "10", "--directory", "out").stdout
        self.assertIn("learning rate", output)
        self.assertRegex(output, r"recommended:\n  learning_rate=\d\.\de[-+]\d\d\n$")
        self.assertIn("<svg", (self.folder / "out/lr.svg").read_text(encoding="utf-8"))
        self.assertNotIn("run_directory", output)

    def test_batches_up_to_the_training_set(self):
        found = self.tune("batch", "--largest", "4096", "--noise-steps", "8", "--warm-steps", "4", "--ranks", "2")
        self.assertEqual([row["batch_size"] for row in found["sizes"]], [2, 4, 8, 16, 32, 64, 128, 256])
        self.assertEqual([row["micro_batches"] for row in found["sizes"]], [2, 2, 2, 4, 8, 16, 32, 64])
        self.assertEqual(found["end"], "the training set has 256 samples")
        for row in found["sizes"] + found["micro_batches"]:
            self.assertEqual(row["failure"], "")
            self.assertGreater(row["samples_per_second"], 0)
            self.assertGreater(row["peak_memory_bytes"], 1 << 20)
        self.assertEqual(found["noise_failure"], "")
        self.assertGreater(found["noise_samples"], 0)
        self.assertEqual(min(row["time"] for row in found["sizes"]), 1)

    def test_threads_and_loader(self):
        found = self.tune("threads", "--steps", "6")
        self.assertEqual(found["candidates"][0]["overrides"], ["threads=1"])
        self.assertIn(found["recommended"], [row["overrides"] for row in found["candidates"]])
        found = self.tune("loader", "--steps", "6")
        self.assertEqual(found["candidates"][0]["overrides"], ["data.threads=auto", "data.depth=auto"])
        self.assertTrue(all(row["failure"] == "" for row in found["candidates"]), found)

    def test_a_job_that_does_not_train(self):
        done = self.run_program("tune", "threads", "job.yaml", "exact=never", "balance={weights: {nowhere: 1}}", code=64)
        self.assertTrue(done.stderr.splitlines()[-1].startswith(
            "lockstep: tune: expected a job that trains, found one that does not: "), done.stderr)
        self.run_program("train", "job.yaml", "run_directory=run")
        done = self.run_program("tune", "lr", "run", code=64)
        self.assertEqual(done.stderr, "lockstep: tune: expected a job file, found a run; give the job that it was "
                                      "trained with\n")


if __name__ == "__main__":
    unittest.main()
