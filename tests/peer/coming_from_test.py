#!/usr/bin/env python3
"""The usual PyTorch script beside examples/houses.yaml, on one process and on two, and the job itself: what they reach is
what docs/coming-from.md says."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/coming-from.md"
SCRIPT = ROOT / "examples/coming-from/houses_pytorch.py"


def told(command):
    """MAE and RMSE in the table's row of the command."""
    row, = re.findall(rf"^\| `{re.escape(command)}.*\| ([\d.]+), ([\d.]+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return [float(value) for value in row]


class ComingFrom(unittest.TestCase):
    def reached(self, *command):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False, timeout=300,
                                  stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found = re.findall(r"mae ([\d.]+) .*?rmse ([\d.]+)", done.stdout + done.stderr)
        return [float(value) for value in found[-1]]

    def assert_as_told(self, command, *run):
        for found, expected in zip(self.reached(*run), told(command), strict=True):
            self.assertLess(abs(found - expected), 0.05 * expected)

    def test_the_script_of_pytorch(self):
        self.assert_as_told("python houses_pytorch.py", sys.executable, SCRIPT)

    def test_the_same_on_two_processes(self):
        self.assert_as_told("python houses_pytorch.py", sys.executable, "-m", "torch.distributed.run", "--standalone",
                            "--nproc-per-node", "2", SCRIPT)

    def test_the_job(self):
        self.assert_as_told("lockstep train examples/houses.yaml", os.environ["LOCKSTEP"], "train",
                            ROOT / "examples/houses.yaml", "--ranks", "2")


if __name__ == "__main__":
    unittest.main()
