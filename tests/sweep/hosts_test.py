#!/usr/bin/env python3
"""`lockstep sweep --hosts` on emulated hosts: a host is lost in the middle of its trial, and the trials and their bits are
those of the sweep on one machine."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from emulated_hosts import EmulatedHosts  # noqa: E402  pylint: disable=wrong-import-position
from launches import OPEN_MPI  # noqa: E402  pylint: disable=wrong-import-position
from sweep_test import PATIENCE, RANDOM, Sweep  # noqa: E402  pylint: disable=wrong-import-position


class OnHosts(unittest.TestCase):
    def test_a_lost_host(self):
        with tempfile.TemporaryDirectory() as folder:
            quiet, lost = (Sweep(f"{folder}/{name}", RANDOM, steps=1000) for name in ("quiet", "lost"))
            quiet.run("--ranks", "1")
            with EmulatedHosts(2, connect_timeout=5) as hosts:
                process = lost.start("--hosts", hosts.slots(1), "--agent", hosts.agent,
                                     prefix=[*hosts.prefix(0), "env", "-C", lost.folder])
                lost.wait_for_step(1, 50)
                hosts.lose(1)
                output, _ = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, output)
            self.assertFalse(lost.records("failure"))
            self.assertEqual(lost.hashes(), quiet.hashes())
            self.assertTrue(lost.events(1, "restart"))  # goes on from a checkpoint


if __name__ == "__main__":
    if EmulatedHosts.missing():
        print(f"skipped: {EmulatedHosts.missing()}")
        sys.exit(77)
    if OPEN_MPI >= 5:
        print("skipped: on emulated hosts Open MPI 5's daemons now and then lose each other at the start")
        sys.exit(77)
    unittest.main()
