#!/usr/bin/env python3
"""Goodput of a real run that loses a rank, is stopped, and goes on: its parts add up to the time that it ran."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[1] / "launch")]
from free_ports import free_port  # noqa: E402  pylint: disable=wrong-import-position
from launches import Launch  # noqa: E402  pylint: disable=wrong-import-position
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PARTS = ("useful", "repeated", "checkpoint", "data_wait", "peer_wait", "restart")
PAUSE = 3


def parts_of(event):
    return {part: event[f"{part}_seconds"] for part in PARTS}


class Goodput(unittest.TestCase):
    def setUp(self):
        self.run = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "run"

    def launch(self, port):
        launch = Launch(str(self.run), "--ranks", "2", f"telemetry.prometheus.port={port}", "checkpoint={every: 20 steps}",
                        steps=100000)
        self.addCleanup(launch.abandon)
        return launch

    def test_over_a_death_and_a_pause(self):
        began, port = time.time(), free_port()
        first = self.launch(port)
        first.wait_for_step(30)
        os.kill(first.process_of_rank(1), signal.SIGKILL)
        first.wait_for_step(60, attempt=2)
        first.signal(signal.SIGTERM)
        first.end(75)
        events = events_of(self.run)
        ended, parts = events[-1]["time"], parts_of([e for e in events if e["event"] == "goodput"][-1])
        self.assertGreater(min(parts["useful"], parts["repeated"], parts["restart"]), 0)
        self.assertLessEqual(sum(parts.values()), ended - began)
        self.assertGreaterEqual(sum(parts.values()), 0.5 * (ended - events[0]["time"]))

        time.sleep(PAUSE)
        again = time.time()
        second = self.launch(port)
        second.wait_for_step(100)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            self.assertRegex(answer.read().decode(), 'lockstep_run_seconds_total{rank="0",part="repeated"} [0-9.e-]+')
        second.signal(signal.SIGTERM)
        second.end(75)
        after = parts_of([e for e in events_of(self.run) if e["event"] == "goodput"][-1])
        for part in PARTS:
            self.assertGreaterEqual(after[part], parts[part] - 1e-6)
        self.assertLessEqual(sum(after.values()) - sum(parts.values()), time.time() - again)
        self.assertEqual(after["repeated"], parts["repeated"], "nothing was lost by the stop")

        subprocess.run([os.environ["LOCKSTEP"], "report", self.run], check=True, capture_output=True)
        page = (self.run / "report.html").read_text(encoding="utf-8")
        self.assertIn("<h2>Goodput</h2>", page)
        self.assertIn(f"<td>useful</td><td class=\"n\">{100 * after['useful'] / sum(after.values()):.2f} %</td>", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
