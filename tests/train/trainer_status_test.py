#!/usr/bin/env python3
"""A run in a TrainJob tells Kubeflow's Trainer how far it is; one that cannot goes on."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from https_stub import HttpsStub  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = ["data.train.digits.count=64", "data.validation.digits.count=32", "batch_size=32", "micro_batches=2", "steps=4", "evaluate={every: 2 steps}",
       "checkpoint=never", "threads=1"]


class TrainerStatus(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.stub = self.enterContext(HttpsStub(self.folder / "account"))

    def train(self, kind, path="/status"):
        values = {"URL": f"https://127.0.0.1:{self.stub.port}{path}", "CA_CERT": self.folder / "account/ca.crt",
                  "TOKEN": self.folder / "account/token"}
        variables = {f"KUBEFLOW_TRAINER_{kind}_{name}": str(value) for name, value in values.items()}
        return subprocess.run([PROGRAM, "train", *JOB], env={**os.environ, **variables}, cwd=self.folder, capture_output=True, text=True,
                              check=True)

    def test_progress_and_metrics(self):
        for kind in ("STATUS", "SERVER"):
            with self.subTest(kind):
                self.stub.taken.clear()
                self.assertNotIn("warning", self.train(kind).stderr)
                path, body = self.stub.taken[-1]
                status = body["trainerStatus"]
                self.assertEqual(path, "/status")
                self.assertEqual(list(body), ["trainerStatus"])
                self.assertEqual(list(status), ["progressPercentage", "estimatedRemainingSeconds", "metrics", "lastUpdatedTime"])
                self.assertEqual((status["progressPercentage"], status["estimatedRemainingSeconds"]), (100, 0))
                self.assertRegex(status["lastUpdatedTime"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
                metrics = {metric["name"]: metric["value"] for metric in status["metrics"]}
                self.assertEqual((metrics["step"], metrics["epoch"]), ("4", "2"))
                for name in ("loss", "validation_loss", "validation_accuracy"):
                    self.assertTrue(re.fullmatch(r"\d+(\.\d+)?", metrics[name]), metrics)

    def test_a_refusal_stops_nothing(self):
        (self.folder / "account/token").write_text("old", encoding="utf-8")
        said = self.train("SERVER").stderr
        warning = f"warning: Kubeflow's Trainer is not told how far the run is: https://127.0.0.1:{self.stub.port}/status: status 403: \n"
        self.assertEqual(said.count(warning), 1, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
