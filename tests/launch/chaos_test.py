#!/usr/bin/env python3
"""The parts that judge in scripts/chaos.sh: its plan, its verdict, and that nothing is left behind when it is
killed."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "chaos"), str(ROOT / "tests" / "launch"), str(ROOT / "tests" / "store")]
# pylint: disable=wrong-import-position
from emulated_hosts import EmulatedHosts  # noqa: E402
from faults import KINDS  # noqa: E402
from launches import OPEN_MPI, wait_until  # noqa: E402
from plan import LEAST_BUSY, Hit, make_plan  # noqa: E402
from training import Attempt  # noqa: E402
from verdict import longest_pause, reasons_against  # noqa: E402

NAMES = [kind.name for kind in KINDS]
LEAST = LEAST_BUSY * len(KINDS)


def hits_of(count, moment="steps", effect="seen"):
    return [Hit(name, moment, 5, 1.0, "", effect, 0.1) for name in NAMES for _ in range(count)]


class Plan(unittest.TestCase):
    def test_a_seed_names_one_series(self):
        def words(seed):
            return [(planned.kind, planned.moment, planned.steps, planned.random.random())
                    for planned in make_plan(seed, 60)]
        self.assertEqual(words(5), words(5))
        self.assertNotEqual(words(5), words(6))

    def test_three_of_each_kind_are_to_hit_a_busy_moment(self):
        for seed in range(50):
            plan = make_plan(seed, LEAST + 1)
            self.assertEqual(len(plan), LEAST + 1)
            for kind in KINDS:
                busy = [planned for planned in plan if planned.kind is kind and planned.moment != "start"]
                self.assertGreaterEqual(len(busy), LEAST_BUSY)


class Busy(unittest.TestCase):
    def setUp(self):
        self.attempt = Attempt({}, [(step, 10 + 0.1 * step) for step in range(1, 6)], end=10.9)

    def test_only_while_steps_are_going_on(self):
        self.assertFalse(self.attempt.stepped_at(10.25))  # two steps
        self.assertTrue(self.attempt.stepped_at(10.35))
        self.assertTrue(self.attempt.stepped_at(10.7))
        self.assertFalse(self.attempt.stepped_at(11.1))  # it has ended, and the last step was long ago

    def test_not_when_the_last_step_is_long_ago(self):
        self.attempt.end = float("inf")
        self.assertFalse(self.attempt.stepped_at(11.1))


class Verdict(unittest.TestCase):
    def against(self, hits, count=LEAST, hashes=("a", "a"), unexplained=()):
        return reasons_against(NAMES, hits, count, hashes, unexplained)

    def test_a_run_that_counts(self):
        self.assertEqual(self.against(hits_of(3)), [])

    def test_other_parameters(self):
        self.assertEqual(self.against(hits_of(3), hashes=("a", "b")),
                         ["the parameters differ: a after the faults, b of the quiet run"])

    def test_too_few_busy_moments(self):
        hits = hits_of(3)
        hits[0].moment = "start"
        self.assertEqual(self.against(hits), ["'kill a rank' hit a busy moment 2 times, expected at least 3"])

    def test_an_effect_that_was_not_seen_does_not_count(self):
        hits = hits_of(3)
        hits[-1].effect = ""
        self.assertEqual(self.against(hits), [
            "the effect of 44 faults was seen, expected 45",
            "'make a host unfit' hit a busy moment 2 times, expected at least 3"])

    def test_a_death_that_no_fault_explains(self):
        event = {"reason": "death", "step": 7, "message": "rank 1 (host a) died"}
        self.assertEqual(self.against(hits_of(3), unexplained=[event]), [
            "a restart that no fault explains: death after step 7: rank 1 (host a) died"])

    def test_the_longest_pause(self):
        hit = Hit("", "steps", 5, 1.0, "", "seen", 0.5)
        self.assertAlmostEqual(longest_pause(hit, [0.8, 0.9, 1.2, 2.0, 9.0]), 0.8)


class Ends(unittest.TestCase):
    def setUp(self):
        if EmulatedHosts.missing():
            self.skipTest(EmulatedHosts.missing())
        if OPEN_MPI >= 5:
            self.skipTest("chaos expects Open MPI 4")

    def run_and_end_with(self, number):
        with tempfile.TemporaryDirectory() as folder:
            mark = f"CHAOS_MARK={folder}"
            with subprocess.Popen([ROOT / "scripts/chaos.sh"], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "TMPDIR": folder, "CHAOS_MARK": folder}) as chaos:
                for line in chaos.stdout:
                    if "1  " in line and "steps" in line or "checkpoint" in line:
                        break  # the first fault is over, so everything is running
                self.assertGreater(len(marked(mark)), 5)
                chaos.send_signal(number)
                wait_until(lambda: not marked(mark), "all processes to be gone", 30)
                code = chaos.wait()
            self.assertNotIn(folder, pathlib.Path("/proc/mounts").read_text(encoding="utf-8"))
            return code, os.listdir(folder)

    def test_a_signal_leaves_nothing(self):
        self.assertEqual(self.run_and_end_with(signal.SIGTERM), (128 + signal.SIGTERM, []))

    def test_a_kill_leaves_an_empty_folder(self):
        code, left = self.run_and_end_with(signal.SIGKILL)
        self.assertEqual((code, len(left)), (-signal.SIGKILL, 1))

    def test_without_namespaces_it_is_skipped_with_a_word(self):
        words = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", ROOT / "scripts/chaos.sh"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77)
        self.assertIn("chaos needs several hosts, which cannot be emulated here: the kernel forbids", done.stdout)

    def test_too_few_faults_are_refused(self):
        done = subprocess.run([ROOT / "scripts/chaos.sh", "1", "44"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("n: expected at least 45 faults, 3 of each of 15 kinds, found 44", done.stderr)


def marked(mark):
    """Processes with this in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(mark) in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


if __name__ == "__main__":
    unittest.main()
