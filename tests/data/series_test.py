#!/usr/bin/env python3
"""Time series from beginning to end: windows of a table's rows, split by time. What was drawn by chance stays unknown,
`predict` and `eval` need no settings again, and the bits are the same on any number of ranks.
"""
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
DRAW = random.Random(5)
HOURS = [(f"2024-{1 + i // 672:02}-{1 + i // 24 % 28:02} {i % 24:02}:00",
          20 * math.sin(i * math.pi / 12) + DRAW.gauss(0, 2), DRAW.gauss(0, 1)) for i in range(600)]


def power(rows, header="time,load,wind"):
    return header + "\n" + "".join(f"{time},{load:.4f},{wind:.4f}\n" for time, load, wind in rows)


def job(table, **more):
    return {"name": "power", "model": {"layers": ["flatten", {"linear": 3}]}, "loss": "mean_squared_error",
            "metrics": ["rmse"], "batch_size": 16, "micro_batches": 4, "epochs": 10, "optimizer": "adam",
            "learning_rate": 0.01,
            "data": {"train": {"table": {"path": "power.csv", "target": "load", "window": 24, "horizon": 3, **table}},
                     "validation": {"fraction": 0.2}}, **more}


class Series(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "power.csv").write_text(power(HOURS))

    def run_it(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              check=False, env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def train(self, written, *words, code=0):
        (self.folder / "job.yaml").write_text(json.dumps({"job": written}))
        return self.run_it("train", "job.yaml", *words, code=code)

    def evaluated(self, *words):
        return json.loads(self.run_it("eval", *words, "--log", "json").stdout)

    def test_it_forecasts(self):
        said = self.train(job({"time": "time"})).stderr
        self.assertIn("26 windows reach over a border between training and validation: left out", said)
        found = self.evaluated("runs/power")
        self.assertEqual(found["samples"], 120 - 26)
        self.assertLess(found["metrics"]["rmse"], 4)  # 2 are noise; the load has a standard deviation of 14
        self.assertEqual(self.evaluated("runs/power", "--set", "train")["samples"], 480 - 26)

        # On its own: neither the training data nor the job's settings.
        (self.folder / "power.csv").unlink()
        (self.folder / "new.csv").write_text(power(HOURS[-30:]))
        lines = self.run_it("predict", "runs/power", "new.csv").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], [f"new.csv:{row}" for row in range(25, 32)])
        self.assertRegex(lines[-1], r"^new\.csv:31  load\+1 [-.e\d]+  load\+2 [-.e\d]+  load\+3 [-.e\d]+$")
        rows = self.run_it("predict", "runs/power", "new.csv", "--log", "csv").stdout.splitlines()
        self.assertEqual(rows[0], "row,load+1,load+2,load+3")
        for row in range(25, 28):  # whose next rows are there
            values = [float(value) for value in rows[row - 24].split(",")[1:]]
            for ahead, value in enumerate(values, 1):
                self.assertLess(abs(value - HOURS[600 - 30 + row - 2 + ahead][1]), 10)
        (self.folder / "new.csv").write_text(power(HOURS[-20:]))
        self.assertEqual(self.run_it("predict", "runs/power", "new.csv", code=65).stderr,
                         "lockstep: new.csv: expected 24 rows in a row for a window, found fewer; add rows, or make "
                         "`window` shorter\n")
        (self.folder / "new.csv").write_text(power(HOURS[-30:], "when,load,wind"))
        self.assertEqual(self.run_it("predict", "runs/power", "new.csv", code=65).stderr,
                         "lockstep: new.csv:1: expected a column 'time', found when, load, wind\n")

    def test_the_targets_are_those_of_a_sliding_window(self):
        written = job({})
        written["data"]["validation"] = {"fold": "2 of 3"}
        for seed in (1, 2):
            self.train({**written, "epochs": 1, "seed": seed, "run_directory": f"runs/{seed}"})
        self.run_it("ensemble", "eval", "runs/1", "runs/2", "--predictions", "p.csv")
        rows = [line.split(",") for line in (self.folder / "p.csv").read_text().splitlines()]
        self.assertEqual(rows[0][:4], ["sample", "target load+1", "target load+2", "target load+3"])
        expected = {f"power.csv:{first + 24 + 1}": [load for _, load, _ in HOURS[first + 24:first + 27]]
                    for first in range(200, 400 - 26)}
        self.assertEqual([row[0] for row in rows[1:]], list(expected))
        for row in rows[1:]:
            for value, load in zip(row[1:4], expected[row[0]]):
                self.assertAlmostEqual(float(value), load, places=3)

    def test_bits_do_not_depend_on_ranks(self):
        layers = [{"lstm": {"features": 6}}, {"attention": {"heads": 2, "causal": True}}, "flatten", {"linear": 3}]
        found = set()
        for ranks in (1, 2, 3):
            self.train(job({}, model={"layers": layers}, epochs=1), "--ranks", str(ranks), f"name=r{ranks}")
            end = events_of(self.folder / f"runs/r{ranks}", "end")[-1]
            found.add((end["parameters_sha256"], events_of(self.folder / f"runs/r{ranks}", "eval")[-1]["loss"]))
        self.assertEqual(len(found), 1, found)

    def test_chance_stays_chance(self):
        """A class drawn for each 25 rows, whose name is a feature: who has seen one row of them knows the others."""
        classes = [DRAW.choice(["a", "b"]) for _ in range(40)]
        (self.folder / "power.csv").write_text("block,load\n" + "".join(
            f"b{i // 25},{classes[i // 25]}\n" for i in range(1000)))
        written = job({"except": ["load"], "window": 4, "horizon": 1}, model={"mlp": {"hidden": [32]}},
                      loss="cross_entropy", metrics=["accuracy"], epochs=20, evaluate={"every": "20 epochs"})

        def accuracy(run, table, validation):
            self.train({**written, "data": {"train": {"table": table}, "validation": validation}, "run_directory": run})
            return [self.evaluated(run, "--set", one)["metrics"]["accuracy"] for one in ("train", "validation")]
        windows = written["data"]["train"]["table"]
        rows = {"path": "power.csv", "target": "load"}
        self.assertGreater(accuracy("rows", rows, {"fraction": 0.2})[1], 0.95, "rows in both parts would be found")
        for run, validation in (("last", {"fraction": 0.2}), ("fold", {"fold": "3 of 5"})):
            learnt, known = accuracy(run, windows, validation)
            self.assertGreater(learnt, 0.95)
            self.assertLess(known, 0.7)

    def test_dates_that_go_back(self):
        """Two series, one behind the other, and nothing said of time or series."""
        lines = power(HOURS[:60]).splitlines(keepends=True)
        (self.folder / "power.csv").write_text("".join(lines + lines[1:]))
        out = self.run_it("data", "info", "table=power.csv", "target=load", "window=4").stdout
        self.assertIn("  warning      column 'time': its dates go back at power.csv:62, and windows reach over that; if it is "
                      "the time, name it under `time`, and what tells several series apart under `series`\n", out)
        (self.folder / "times.csv").write_text("t,load\n" + "".join(f"{'nan' if i == 5 else i},{i % 7}\n" for i in range(30)))
        self.assertIn("times.csv:7: column 't': expected a number, found 'nan'",
                      self.run_it("data", "info", "table=times.csv", "target=load", "window=4", "time=t", code=65).stderr)
        (self.folder / "power.csv").write_text("".join(lines))
        self.assertNotIn("warning", self.run_it("data", "info", "table=power.csv", "target=load", "window=4").stdout)

    def test_what_cannot_be(self):
        def refused(table, **more):
            return self.train(job(table, **more), code=78).stderr
        self.assertIn("data.train.table.count: expected all rows of a time series, found some; leave out `count`",
                      refused({"count": 100}))
        self.assertIn("data.train.table.weight: expected windows that count alike, found a weight for each row; leave "
                      "out `weight`", refused({"weight": "wind"}))
        self.assertIn("data.train.table.horizon: expected rows ahead in ascending order", refused({"horizon": [3, 1]}))
        for key, value in (("horizon", 3), ("series", "wind"), ("time", "time")):
            table = {"path": "power.csv", "target": "load", key: value}
            written = job({}, data={"train": {"table": table}})
            self.assertIn(f"data.train.table.{key}: expected it beside the number of rows of a sample, found none; add "
                          "`window`", self.train(written, code=78).stderr)
        (self.folder / "list.txt").write_text("power.csv:30\n")
        written = job({})
        written["data"]["validation"] = {"list": "list.txt"}
        self.assertIn("windows of a time series are split by time, for the rows of one are in others, too; give a "
                      "fraction or a fold, without stratify", self.train(written, code=78).stderr)


if __name__ == "__main__":
    unittest.main()
