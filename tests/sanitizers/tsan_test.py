#!/usr/bin/env python3
"""All unit tests, and the scripts that compare the bits of several ranks, in a build with ThreadSanitizer.

Builds build/tsan, without the CUDA module. A report of the sanitizer fails the test it comes from.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ["--label-exclude", "^(script|outside|long|charts|kubernetes)$"]
SCRIPTS = ["--tests-regex", "^(comm.mpi|train.same_bits)$"]
# MPI is not built with the sanitizer: what it does by itself is not seen whole.
OPTIONS = f"suppressions={ROOT}/tests/sanitizers/tsan.supp:ignore_noninstrumented_modules=1:second_deadlock_stack=1"


def run(*command):
    print("$", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "TSAN_OPTIONS": OPTIONS}, check=False,
                          stdin=subprocess.DEVNULL).returncode == 0


def main():
    jobs = str(os.cpu_count())
    ctest = ["ctest", "--test-dir", "build/tsan", "--output-on-failure", "--no-tests=error"]
    if not run("cmake", "--preset", "tsan", "-D", "LOCKSTEP_CUDA=OFF"):
        return 1
    if not run("cmake", "--build", "build/tsan", "-j", jobs):
        return 1
    units = run(*ctest, "-j", jobs, *UNITS)
    return 0 if run(*ctest, *SCRIPTS) and units else 1


if __name__ == "__main__":
    sys.exit(main())
