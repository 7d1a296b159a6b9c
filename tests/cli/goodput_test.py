#!/usr/bin/env python3
"""`lockstep bench goodput`: its output for people and for programs, and each error message that a user can cause."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
TIMES = ["steps", "reduction", "stragglers", "missing_hosts", "checkpoints", "lost_work", "restarts", "awaiting_hosts"]


def bench(*words, code=0):
    done = subprocess.run([PROGRAM, "bench", "goodput", *words], capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def rows(*words):
    return [json.loads(line) for line in bench("--log", "json", *words).stdout.splitlines()]


class Texts(unittest.TestCase):
    def test_without_failures(self):
        text = bench("--devices", "64", "--steps", "1000", "--step-seconds", "2", "--mtbf-hours", "0", "--seeds", "1",
                     "--checkpoint-seconds", "4", "--safe-seconds", "0", "--interval-seconds", "100").stdout
        self.assertEqual(text, """Simulated: 64 devices on 8 hosts, 1,000 steps of 2 s; none fails; 1 seed from 1

checkpoint   every 1:40, 50 steps
goodput      96.15 %, std 0.00, from 96.15 to 96.15
time         34:40, std 0 s
failures     0.0, from 0 to 0

  steps: useful         96.15 %       33:20
  checkpoints            3.85 %        1:20

checkpoint       steps    goodput        std           from, to
      1:40          50    96.15 %       0.00     96.15    96.15
     33:20       1,000    99.80 %       0.00     99.80    99.80  best
""")

    def test_each_part_of_the_time(self):
        text = bench("--devices", "64", "--steps", "20000", "--mtbf-hours", "500", "--lost-hosts", "left-out", "--gradient",
                     "100GiB", "--slow-share", "0.01").stdout
        for words in ("steps: useful", "exposed all-reduce", "slow devices", "fewer hosts", "checkpoints", "lost work",
                      "restarts"):
            self.assertRegex(text, rf"(?m)^  {words} +\d+\.\d\d % +\S+")
        self.assertNotIn("waiting for hosts", text)
        self.assertRegex(text, r"(?m)^Young/Daly: every \d+:\d\d$")
        awaited = bench("--devices", "64", "--steps", "20000", "--mtbf-hours", "500", "--lost-hosts", "awaited").stdout
        self.assertRegex(awaited, r"(?m)^  waiting for hosts +\d+\.\d\d % ")
        self.assertNotIn("fewer hosts", awaited)

    def test_runs_that_do_not_end(self):
        text = bench("--devices", "1024", "--steps", "100", "--mtbf-hours", "5", "--seeds", "2", "--intervals", "100").stdout
        self.assertIn("  2 runs given up", text)

    def test_a_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "plan.json")
            done = subprocess.run([PROGRAM, "plan", "--devices", "8xH100", "--json"], capture_output=True, text=True,
                                  timeout=120, check=True)
            path.write_text(done.stdout, encoding="utf-8")
            seconds = json.loads(done.stdout)["placement"]["step_seconds"]
            common = ("--steps", "1000", "--mtbf-hours", "0")
            planned = bench("--plan", str(path), *common).stdout
            self.assertTrue(planned.startswith("Simulated: 8 devices on 1 host, 1,000 steps of "), planned)
            self.assertEqual(planned, bench("--devices", "8", "--step-seconds", repr(seconds), *common).stdout)
            self.assertIn("Simulated: 16 devices on 2 hosts", bench("--plan", str(path), "--devices", "16", *common).stdout)
            path.write_text("{}", encoding="utf-8")
            self.assertEqual(bench("--plan", str(path), code=65).stderr, "lockstep: --plan: expected a file of `lockstep plan "
                             f"--json`, found something else at {path}\n")
            self.assertEqual(bench("--plan", "nowhere.json", code=64).stderr, "lockstep: --plan: expected a file of `lockstep "
                             "plan --json`, found none at nowhere.json\n")

    def test_equal_words_give_equal_texts(self):
        self.assertEqual(bench("--seed", "5").stdout, bench("--seed", "5").stdout)
        self.assertNotEqual(bench("--seed", "5").stdout, bench("--seed", "6").stdout)


class Json(unittest.TestCase):
    def test_a_line_an_interval(self):
        lines = rows("--devices", "16384", "--steps", "400000", "--intervals", "60,300,300,1800", "--interval-seconds",
                     "600", "--seeds", "3")
        self.assertEqual([line["checkpoint_every_seconds"] for line in lines], [60, 300, 600, 1800])
        self.assertEqual([line["checkpoint_every_steps"] for line in lines], [6, 30, 60, 180])
        self.assertEqual(sum(line["best"] for line in lines), 1)
        for line in lines:
            self.assertEqual((line["event"], line["devices"], line["seeds"], line["unfinished"]), ("goodput", 16384, 3, 0))
            self.assertEqual(list(line["seconds"]), TIMES)
            self.assertAlmostEqual(sum(line["seconds"].values()) / line["wall_seconds"]["mean"], 1, places=9)
            self.assertLessEqual(line["goodput"]["min"], line["goodput"]["mean"])
            self.assertLess(line["simulated_events"], 3 * 400000, "fewer than steps")

    def test_the_interval_is_that_of_young_and_daly(self):
        lines = rows("--devices", "16384", "--mtbf-hours", "16384", "--checkpoint-seconds", "8", "--step-seconds", "1")
        self.assertEqual({line["young_daly_seconds"] for line in lines}, {240.0})
        self.assertEqual([line["checkpoint_every_steps"] for line in lines],
                         [30, 60, 120, 168, 240, 336, 480, 960, 1920])

    def test_nothing_fails(self):
        line, = rows("--mtbf-hours", "0")
        self.assertIsNone(line["young_daly_seconds"])
        self.assertEqual(line["checkpoint_every_steps"], line["steps"])

    def test_tiers(self):
        # 8 devices of 100 GB/s per host, 4 hosts of 80 GB/s, as in the test of the tiers: a reduction of 28 s, 10 s of
        # which are hidden; everything in one bucket, or in many.
        words = ["--devices", "32", "--mtbf-hours", "0", "--gradient", str(800 * 10**9), "--device-bandwidth", "100",
                 "--host-bandwidth", "80", "--device-latency", "500000", "--host-latency", "2000000", "--step-seconds", "20",
                 "--hidden-share", "0.5"]
        many, = rows(*words, "--bucket", "1")
        self.assertAlmostEqual(many["exposed_seconds"], 34 - 10, places=6)
        one, = rows(*words, "--bucket", "800GiB")
        self.assertAlmostEqual(one["exposed_seconds"], 34, places=6)
        ring, = rows(*words, "--bucket", "1", "--all-reduce", "ring")
        self.assertAlmostEqual(ring["exposed_seconds"], 21 + 27 - 10, places=6)

    def test_a_host_with_few_devices(self):
        line = rows("--devices", "3")[0]
        self.assertEqual(line["devices"], 3)


class Mistakes(unittest.TestCase):
    def expect(self, words, message):
        """If one option is wrong, the message names its command and gives a hint."""
        lines = bench(*words.split(), code=64).stderr.splitlines()
        if message.startswith("bench goodput: "):
            self.assertEqual(lines, ["lockstep: " + message])
        else:
            self.assertEqual(lines, ["lockstep bench goodput: " + message, "Try: lockstep bench goodput --help"])

    def test_hosts_that_are_not_alike(self):
        self.expect("--devices 12", "bench goodput: expected --devices to be a multiple of --devices-a-host, found 12 and 8; "
                    "hosts are all alike")

    def test_spare_hosts_that_nobody_needs(self):
        message = ("bench goodput: expected --lost-hosts awaited or left-out with --spare-hosts or --repair-hours, found "
                   "replaced, with which there is always a spare host")
        self.expect("--spare-hosts 2", message)
        self.expect("--repair-hours 2", message)

    def test_numbers(self):
        for words, message in (
                ("--devices 0", "--devices: expected a number of at least 1, found '0'"),
                ("--steps none", "--steps: expected a number of at least 1, found 'none'"),
                ("--step-seconds 0", "--step-seconds: expected a number above 0, found '0'"),
                ("--step-seconds inf", "--step-seconds: expected a number above 0, found 'inf'"),
                ("--mtbf-hours -1", "--mtbf-hours: expected a number of at least 0, found '-1'"),
                ("--checkpoint-seconds nan", "--checkpoint-seconds: expected a number of at least 0, found 'nan'"),
                ("--interval-seconds 0", "--interval-seconds: expected a number above 0, found '0'"),
                ("--intervals 60,0", "--intervals: expected a number above 0, found '0'"),
                ("--slow-share 1", "--slow-share: expected a number of at least 0 and at most 0.99, found '1'"),
                ("--slow-factor 0.5", "--slow-factor: expected a number of at least 1, found '0.5'"),
                ("--hidden-share 2", "--hidden-share: expected a number of at least 0 and at most 1, found '2'"),
                ("--gradient much", "--gradient: expected bytes, such as 65536 or 64KiB, found 'much'"),
                ("--pod-bandwidth 0", "--pod-bandwidth: expected a number above 0, found '0'")):
            with self.subTest(words):
                self.expect(words, message)

    def test_words(self):
        for words, message in (
                ("--lost-hosts gone", "--lost-hosts: expected replaced or awaited or left-out, found 'gone'"),
                ("--balanced yes", "--balanced: expected true or false, found 'yes'"),
                ("--all-reduce tree", "--all-reduce: expected direct or ring, found 'tree'"),
                ("--log xml", "--log: expected people or json, found 'xml'")):
            with self.subTest(words):
                self.expect(words, message)

    def test_help(self):
        text = bench("--help").stdout
        self.assertEqual(len(set(re.findall(r"(?m)^  +(--[a-z-]+)", text)) - {"--help"}), 35)
        self.assertIn("Examples:\n  lockstep bench goodput --devices 16384 --steps 400000\n", text)


if __name__ == "__main__":
    unittest.main()
