#!/usr/bin/env python3
"""Device-hours and energy of a run that was started twice, as `lockstep report` adds them up; the GPUs are a
stand-in's, whose counter grows on every query.

    energy_test.py NVML_STAND_IN
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from launches import PROGRAM, Launch, wait_until  # noqa: E402  pylint: disable=wrong-import-position

STAND_IN = sys.argv.pop(1)
RANKS, GPUS = 3, 2  # the third rank has none
HOUR = 3600


def starts_of(directory):
    """(seconds, ranks, joules by rank) of each start, from its events."""
    starts = []
    for line in (directory / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "start":
            starts.append({"began": event["time"], "ranks": event["ranks"], "joules": {}})
        if starts:
            starts[-1]["last"] = event["time"]
            starts[-1]["joules"] = event.get("energy_joules", starts[-1]["joules"])
    return [(start["last"] - start["began"], start["ranks"], start["joules"]) for start in starts]


class Energy(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def launch(self, **environment):
        launch = Launch(str(self.folder / "run"), "--ranks", str(RANKS), steps=10**6, environment=environment)
        self.addCleanup(launch.abandon)
        return launch

    def report(self):
        subprocess.run([PROGRAM, "report", self.folder / "run"], check=True, stdout=subprocess.DEVNULL)
        return (self.folder / "run/report.html").read_text()

    def drawn(self, launch, attempt):
        """Joules used by rank 1's GPU since this attempt began."""
        launches = 0
        joules = 0
        for event in launch.events():
            launches += event["event"] == "launch"
            if launches == attempt and event["event"] == "step":
                joules = event.get("energy_joules", {}).get("1", 0)
        return joules

    def test_over_a_relaunch(self):
        launch = self.launch(LOCKSTEP_NVML=STAND_IN, NVML_STAND_IN="drawing")
        wait_until(lambda: self.drawn(launch, 1) >= 2000, "two looks at the counter")
        os.kill(launch.process_of_rank(1), signal.SIGKILL)
        wait_until(lambda: self.drawn(launch, 2) >= 1000, "a look in the second attempt")
        launch.signal(signal.SIGTERM)
        launch.end(75)
        starts = starts_of(self.folder / "run")
        self.assertEqual(len(starts), 2)
        for _, ranks, joules in starts:
            self.assertEqual((ranks, set(joules)), (RANKS, {str(rank) for rank in range(GPUS)}))
            self.assertTrue(all(value >= 1000 and value % 1000 == 0 for value in joules.values()), joules)
        page = self.report()
        joules = sum(sum(start[2].values()) for start in starts)
        hours = sum(seconds * ranks for seconds, ranks, _ in starts) / HOUR
        self.assertIn(f"<th>energy</th><td>{joules / HOUR:.3g} Wh, of the GPUs of ranks 0, 1</td>", page)
        self.assertIn(f"<b>{joules / HOUR:.3g}</b><span>Wh, used by GPUs</span>", page)
        self.assertIn(f"<b>{hours:.3g}</b><span>device-hours (a rank is a device)</span>", page)

    def test_where_nothing_counts(self):
        launch = self.launch(LOCKSTEP_NVML=STAND_IN, NVML_STAND_IN="unsupported")
        launch.wait_for_step(3)
        launch.signal(signal.SIGTERM)
        launch.end(75)
        page = self.report()
        self.assertIn("<th>energy</th><td>not measured</td>", page)
        self.assertNotIn("Wh, drawn", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
