#!/usr/bin/env python3
"""All unit tests, and the essential script tests, in a build with sanitizers.

    sanitized_test.py asan|tsan

asan is AddressSanitizer and UndefinedBehaviorSanitizer, tsan ThreadSanitizer. Builds build/asan or build/tsan, without
the CUDA module. A sanitizer's report ends the program that caused it, and so fails its test.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ["--label-exclude", "^(script|outside|long|charts|kubernetes)$"]
SCRIPTS = {
    "asan": "comm.mpi comm.killed_ranks train.same_bits train.checkpoint_faults train.checkpoint_readers "
            "train.start_messages data.commands data.bad_samples cli.bad balance.report trace.merge",
    "tsan": "comm.mpi train.same_bits",
}
OPTIONS = {
    # Leaks: MPI keeps memory until the end. Link order: a library that a test preloads is intended.
    "asan": {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:detect_stack_use_after_return=1",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    # MPI is not built with the sanitizer, which therefore does not see all of its synchronization.
    "tsan": {"TSAN_OPTIONS": f"suppressions={ROOT}/tests/sanitizers/tsan.supp:ignore_noninstrumented_modules=1:"
                             "second_deadlock_stack=1"},
}


def run(preset, *command):
    print("$", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **OPTIONS[preset]}, check=False,
                          stdin=subprocess.DEVNULL).returncode == 0


def main(preset):
    jobs = str(os.cpu_count())
    build = f"build/{preset}"
    ctest = ["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", "--timeout", "7200"]
    if not run(preset, "cmake", "--preset", preset, "-D", "LOCKSTEP_CUDA=OFF"):
        return 1
    if not run(preset, "cmake", "--build", build, "-j", jobs):
        return 1
    units = run(preset, *ctest, "-j", jobs, *UNITS)
    scripts = run(preset, *ctest, "--tests-regex", f"^({SCRIPTS[preset].replace(' ', '|')})$")
    return 0 if units and scripts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
