#!/usr/bin/env python3
"""A checkpoint of 92 MB over a link of 1 MB/s, as one of 84 GB over 1 Gb/s: every time limit is a fraction of a transfer."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

for folder in ("tests/launch", "scripts/chaos"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / folder))

from emulated_hosts import EmulatedHosts  # noqa: E402  pylint: disable=wrong-import-position
from store import serve_on  # noqa: E402  pylint: disable=wrong-import-position

LIMIT = 4  # seconds without progress
JOB = """job:
  run_directory: FOLDER/big
  model: {layers: [flatten, {linear: {features: 2400}}, relu, {linear: {features: 2400}}, relu, {linear: {features: 10}}]}
  data: {train: {digits: 320}}
  batch_size: 40
  micro_batches: 4
  threads: 1
  steps: 7
  optimizer: adam
  learning_rate: 0.0001
  evaluate: never
  timeout: LIMIT
  checkpoint: {every: 5 steps, copy_to: s3://chaos/runs}
"""


class SlowLink(unittest.TestCase):
    def train(self, *words):
        command = [*self.hosts.prefix(0), os.environ["LOCKSTEP"], "launch", f"{self.folder}/job.yaml", "--ranks", "2", "--log", "json",
                   "--hang-limit", str(LIMIT), "--start-limit", str(2 * LIMIT), *words]
        result = subprocess.run(command, env={**os.environ, **self.server.environment},
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    @staticmethod
    def restarts(events):
        return [(event["step"], event.get("reason")) for event in events if event["event"] == "restart"]

    def test_a_checkpoint_is_copied_and_restored(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "job.yaml").write_text(JOB.replace("LIMIT", str(LIMIT)).replace("FOLDER", str(self.folder)), encoding="utf-8")
        self.hosts = self.enterContext(EmulatedHosts(2))
        self.server = serve_on(self.hosts.pids[1], "10.77.0.2")
        self.addCleanup(self.server.stop)
        quiet = self.train("checkpoint=never", f"run_directory={self.folder}/quiet")[-1]
        self.hosts.limit("8mbit")
        first = self.train("steps=5")
        self.assertEqual(self.restarts(first), [])
        copy = next(event for event in first if event["event"] == "copy")
        self.assertGreater(copy["bytes"], 90e6)
        self.assertGreater(copy["seconds"], 10 * LIMIT)
        shutil.rmtree(self.folder / "big")
        second = self.train()
        self.assertEqual(self.restarts(second), [(5, None)])
        self.assertEqual(second[-1]["parameters_sha256"], quiet["parameters_sha256"])


if __name__ == "__main__":
    unittest.main()
