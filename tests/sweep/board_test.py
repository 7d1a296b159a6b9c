#!/usr/bin/env python3
"""TensorBoard's page of hyper-parameters for a sweep, as TensorBoard's own server answers: a row for each trial, with its
settings and what it came to."""
import json
import pathlib
import tempfile
import time
import unittest
import urllib.request

from tensorboard import program

from sweep_test import DIVERGING, PATIENCE, RANDOM, Sweep

ALL = {"experimentName": "", "startIndex": 0, "sliceSize": 1000, "allowedStatuses":
       ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_UNKNOWN"]}


def ask(url, page, **body):
    request = urllib.request.Request(f"{url}/data/plugin/hparams/{page}", data=json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


class Board(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def shown(self, sweep):
        """The columns, and the rows: settings, metrics and status by trial."""
        server = program.TensorBoard()
        server.configure(argv=[None, "--logdir", str(sweep.directory / "tensorboard"), "--port", "0", "--host", "127.0.0.1",
                               "--load_fast=false", "--reload_interval", "1"])
        url = server.launch().rstrip("/")
        wanted, end = len(sweep.rows()), time.monotonic() + PATIENCE
        while time.monotonic() < end:  # it loads in the background
            experiment = ask(url, "experiment", experimentName="")
            metrics = [{"metric": info["name"]} for info in experiment.get("metricInfos", [])]
            groups = ask(url, "session_groups", colParams=metrics, **ALL).get("sessionGroups", [])
            if len(groups) == wanted and all(len(group["sessions"]) == 1 for group in groups):
                break
            time.sleep(0.2)
        rows = {}
        for group in groups:
            session = group["sessions"][0]
            values = {value["name"]["tag"]: value["value"] for value in session.get("metricValues", [])}
            rows[int(session["name"])] = (group["hparams"], values, session["status"])
        return experiment, rows

    def test_settings_and_metrics_of_every_trial(self):
        sweep = Sweep(self.folder / "random", RANDOM)
        sweep.run()
        experiment, rows = self.shown(sweep)
        self.assertEqual([info["name"] for info in experiment["hparamInfos"]],
                         ["learning_rate", "optimizer", "optimizer.sgd.momentum"])
        self.assertEqual([info["name"]["tag"] for info in experiment["metricInfos"]],
                         ["validation/accuracy", "validation/loss"])
        for trial in sweep.rows():
            settings, metrics, status = rows[int(trial["trial"])]
            momentum = trial["optimizer.sgd.momentum"]
            self.assertEqual(settings, {"learning_rate": float(trial["learning_rate"]), "optimizer": trial["optimizer"],
                                        **({"optimizer.sgd.momentum": float(momentum)} if momentum else {})})
            for metric in ("accuracy", "loss"):
                self.assertAlmostEqual(metrics[f"validation/{metric}"], float(trial[f"validation_{metric}"]), places=5)
            self.assertEqual(status, "STATUS_SUCCESS")

    def test_trials_that_fail_are_shown_as_such(self):
        sweep = Sweep(self.folder / "diverging", DIVERGING, steps=20)
        sweep.run()
        _, rows = self.shown(sweep)
        self.assertEqual([rows[trial][2] for trial in range(4)], ["STATUS_SUCCESS"] * 2 + ["STATUS_FAILURE"] * 2)
        self.assertEqual(rows[3][0], {"learning_rate": 1e30, "seed": 2})


if __name__ == "__main__":
    unittest.main()
