"""The kernels on a real GPU under NVIDIA's compute-sanitizer: every case of every op, and a short job, with each of its
tools. A report that names a kernel of ours fails; memcheck fails on any report, whichever kernel it names.

    sanitizer_test.py OPS_TEST TOOLKIT_BIN

Skipped without a GPU or compute-sanitizer; the judging of reports is tested in any case.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from real_gpu import LOCKSTEP, why_none

OPS_TEST, TOOLS = sys.argv[1:3]
SANITIZER = shutil.which("compute-sanitizer", path=f"{TOOLS}:{os.environ['PATH']}")
JOB = pathlib.Path(__file__).resolve().parents[2] / "examples" / "same-bits.yaml"
# Findings inside libraries are not ours: driver calls that fail because a library probes for features, and scratch
# memory that is read before it is written.
OPTIONS = ("--report-api-errors", "no", "--show-backtrace", "no", "--print-limit", "0", "--launch-timeout", "120")
KINDS = ("memcheck", "racecheck", "initcheck", "synccheck")
PREFIX = "========= "
SUMMARY = ("ERROR SUMMARY:", "RACECHECK SUMMARY:", "LEAK SUMMARY:")


def reports(text):
    """The sanitizer's reports, each with its lines joined into one string."""
    found, lines = [], []
    for line in text.splitlines():
        words = line[len(PREFIX):] if line.startswith(PREFIX) else None
        if words is not None and words.startswith(" "):
            lines.append(words.strip())
            continue
        if len(lines) > 1:
            found.append("; ".join(lines))
        lines = [words] if words and not words.startswith(SUMMARY) else []
    return found + (["; ".join(lines)] if len(lines) > 1 else [])


def judged(kind, text):
    """The reports that make the test fail."""
    return [report for report in reports(text) if kind == "memcheck" or "lockstep" in report]


class Judging(unittest.TestCase):
    OURS = ("========= Uninitialized __global__ memory read of size 4 bytes\n"
            "=========     at void lockstep::device::run_elements<lockstep::ops::ConvFunctor>(long, T1)+0x160\n"
            "=========     by thread (1,0,0) in block (0,0,0)\n=========\n")
    LIBRARY = OURS.replace("lockstep::device::run_elements<lockstep::ops::ConvFunctor>", "implicit_convolve_sgemm")

    def whole(self, *parts):
        return "========= COMPUTE-SANITIZER\n[ RUN ] a case\n" + "".join(parts) + "========= ERROR SUMMARY: 3 errors\n"

    def test_a_report_about_our_kernel(self):
        ours = ["Uninitialized __global__ memory read of size 4 bytes; at void lockstep::device::run_elements<"
                "lockstep::ops::ConvFunctor>(long, T1)+0x160; by thread (1,0,0) in block (0,0,0)"]
        for kind in KINDS:
            self.assertEqual(judged(kind, self.whole(self.OURS)), ours)

    def test_a_report_about_a_library_counts_in_memcheck_alone(self):
        text = self.whole(self.LIBRARY, self.OURS)
        self.assertEqual([len(judged(kind, text)) for kind in KINDS], [2, 1, 1, 1])

    def test_none(self):
        self.assertEqual(judged("memcheck", self.whole()), [])


class OnGpu(unittest.TestCase):
    def expect_no_reports(self, *words, folder=None):
        for kind in KINDS:
            with self.subTest(tool=kind):
                done = subprocess.run([SANITIZER, "--tool", kind, *OPTIONS, *words], capture_output=True, text=True,
                                      check=False, cwd=folder, stdin=subprocess.DEVNULL, timeout=3600)
                self.assertIn("ERROR SUMMARY:" if kind != "racecheck" else "RACECHECK SUMMARY:", done.stdout, done.stderr)
                self.assertEqual(judged(kind, done.stdout), [])
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_case_of_every_op(self):
        self.expect_no_reports(OPS_TEST, "--gtest_filter=OpsOnGpu.ComputeWhatTheyDoOnTheCpu*")

    def test_a_short_job(self):
        for words in ((), ("precision=bf16",), ("cuda_graphs=false",)):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                self.expect_no_reports(LOCKSTEP, "train", str(JOB), "device=cuda", "steps=3", "evaluate.every=2 steps",
                                       "checkpoint=never", *words, folder=folder)


if __name__ == "__main__":
    WHY_NOT = why_none() or (f"no compute-sanitizer in {TOOLS} and PATH; scripts/cuda-toolkit.sh fetches it"
                             if SANITIZER is None else "")
    done_all = unittest.main(argv=[sys.argv[0], *(["Judging"] if WHY_NOT else [])], exit=False).result
    if not done_all.wasSuccessful():
        sys.exit(1)
    if WHY_NOT:
        print("skipped:", WHY_NOT)
        sys.exit(77)
