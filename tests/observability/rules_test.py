#!/usr/bin/env python3
"""The rules by themselves: promtool accepts them, and every alert has a case in which it fires and one in which it does
not."""
import pathlib
import re
import subprocess
import unittest

from servers import ROOT, RULES, skip_without_prometheus

CASES = pathlib.Path(__file__).with_name("rules_test.yaml")


class Rules(unittest.TestCase):
    def test_promtool_takes_them(self):
        subprocess.run(["promtool", "check", "rules", RULES], check=True, stdout=subprocess.DEVNULL)

    def test_promtool_takes_the_configuration(self):
        subprocess.run(["promtool", "check", "config", "--syntax-only", ROOT / "share/prometheus/prometheus.yml"],
                       check=True, stdout=subprocess.DEVNULL)

    def test_cases(self):
        done = subprocess.run(["promtool", "test", "rules", CASES], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_cases(self):
        alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
        self.assertEqual(len(alerts), 11)
        text = CASES.read_text()
        quiet = set(re.findall(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", text))
        fires = set(re.findall(r"alertname: (\w+)\n", text))
        self.assertEqual(fires, alerts)
        self.assertEqual(quiet, alerts)


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
