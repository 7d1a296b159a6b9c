"""Shared by tests on the interpreted GPU. Their arguments:

    FOLDER_OF_THE_INTERPRETED_GPU FOLDER_OF_THE_STAND_IN_DRIVER CUDA_OPS_TEST MODULE_WITH_GRIDS

Each process leaves a report (report.cpp); a problem in it fails the test. Reports are kept, to count what was executed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

GPU, DRIVER, OPS_TEST, GRIDS = sys.argv[1:5]
LOCKSTEP = os.environ["LOCKSTEP"]
REPORTS = pathlib.Path(GPU) / "reports" / pathlib.Path(sys.argv[0]).stem


def environment(libraries=False, **settings):
    """`libraries`: cuBLASLt and cuDNN compute."""
    path = f"{GPU}/libraries:{GPU}/lib:{DRIVER}" if libraries else f"{GPU}/lib:{DRIVER}"
    values = {**os.environ, "LD_LIBRARY_PATH": path, "INTERPRETED_GPU_PTX": f"{GPU}/ptx",
              "INTERPRETED_GPU_REPORT": str(REPORTS), "STAND_IN_GPUS": "1", "STAND_IN_SAME": "1",
              "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", **settings}
    values.pop("CUDA_VISIBLE_DEVICES", None)
    return values


def problems():
    lines = [line for path in REPORTS.glob("*.report") for line in path.read_text(encoding="utf-8").splitlines()]
    return [line.split("\t", 2)[2] for line in lines if line.startswith("problem\t")]


class Interpreted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_interpreted(self, *words, **settings):
        before = len(list(REPORTS.glob("*.report")))
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env=environment(**settings), timeout=500)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        self.assertEqual(problems(), [])
        self.assertEqual(len(list(REPORTS.glob("*.report"))), before + 1, "a process on the interpreted GPU leaves a report")
        return done.stdout

    def run_ops_test(self, tests, **settings):
        """None of the tests may be skipped: there is a GPU."""
        said = self.run_interpreted(OPS_TEST, f"--gtest_filter={tests}", **settings)
        self.assertNotIn("SKIPPED", said)
        self.assertRegex(said, re.compile(r"^\[  PASSED  \] [1-9]", re.MULTILINE))


def main():
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
