#!/usr/bin/env python3
"""The service of systemd never retries what cannot succeed, and takes 75 for an orderly end (docs/exit-codes.md)."""
import pathlib
import shutil
import subprocess
import unittest

UNIT = pathlib.Path(__file__).resolve().parents[2] / "share/systemd/lockstep@.service"


class Unit(unittest.TestCase):
    def test_exit_codes(self):
        settings = dict(line.split("=", 1) for line in UNIT.read_text(encoding="utf-8").splitlines()
                        if "=" in line and not line.startswith("#"))
        permanent = [code for code in range(64, 79) if code != 75]
        self.assertEqual([int(code) for code in settings["RestartPreventExitStatus"].split()], permanent)
        self.assertEqual(settings["SuccessExitStatus"], "75")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_systemd_takes_it(self):
        done = subprocess.run(["systemd-analyze", "verify", UNIT], capture_output=True, text=True, check=False)
        self.assertNotIn("Unknown", done.stderr)


if __name__ == "__main__":
    unittest.main()
