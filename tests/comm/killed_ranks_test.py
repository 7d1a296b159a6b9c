#!/usr/bin/env python3
"""Ranks and their mpirun are killed while the ranks map their shared memory. Nothing of it is left in /dev/shm, and
nothing of Open MPI's memory there after the next start. Live jobs lose nothing."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from shared import PATIENCE, wait_until  # noqa: E402  pylint: disable=wrong-import-position

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
CHECK, SHIM = BUILD / "bin/mpi_reduce_check", BUILD / "tests/libstop_at_mapping.so"
RANKS = 3
SHARED = pathlib.Path("/dev/shm")
AS_ROOT = {f"{family}_ALLOW_RUN_AS_ROOT{suffix}": "1" for family in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}


def segments():
    return {path for path in SHARED.glob("lockstep-*") if path.is_file()}


def ranks_of(mark):
    """Process ids of the ranks, and those of the stopped ones."""
    found, stopped = [], []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"TEST_MARK={mark}".encode() not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        found.append(int(folder.name))
        if state == "T":
            stopped.append(int(folder.name))
    return found, stopped


def mapped_files(rank):
    """Open MPI's files in /dev/shm that the rank has mapped."""
    words = pathlib.Path(f"/proc/{rank}/maps").read_text(encoding="utf-8").split()
    return {pathlib.Path(word) for word in words if word.startswith("/dev/shm/") and "segment" in word}


def is_left(file):
    """Whether the file, or the folder that a rank made for it, still exists."""
    return file.exists() or (file.parent != SHARED and file.parent.exists())


class KilledRanks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # for what a killed Open MPI leaves behind
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def mpirun(self, mark, **variables):
        preload = [word for name, value in {"TEST_MARK": mark, "LD_PRELOAD": SHIM, **variables}.items()
                   for word in ("-x", f"{name}={value}")]
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(RANKS), *preload, CHECK, "reduce"],
            env={**os.environ, **AS_ROOT, "TMPDIR": self.folder}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def stopped_job(self, mark, stop_at, wanted):
        """A job with stopped ranks: its mpirun, and the files that its ranks have mapped."""
        mpirun = self.mpirun(mark, LOCKSTEP_STOP_AT=stop_at)
        wait_until(lambda: len(ranks_of(mark)[1]) >= wanted, f"{wanted} stopped ranks")
        files = set().union(*map(mapped_files, ranks_of(mark)[1]))
        self.assertTrue(files)
        return mpirun, files

    def kill_all(self, mpirun, mark):
        for process in (mpirun.pid, *ranks_of(mark)[0]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        mpirun.wait(PATIENCE)
        wait_until(lambda: not ranks_of(mark)[0], "the ranks' end")

    def test_nothing_is_left_of_ranks_that_are_killed_while_they_map(self):
        before, openmpis = segments(), set()
        for attempt in range(12):
            mark = f"{os.getpid()}-{attempt}"
            # At its own memory, or at a peer's: then those that wait for a stopped rank cannot get as far.
            stop_at, wanted = ((1, RANKS), (2, 1))[attempt % 2]
            mpirun, files = self.stopped_job(mark, stop_at, wanted)
            openmpis |= files
            self.kill_all(mpirun, mark)
            self.assertEqual(segments() - before, set(), f"left by kill number {attempt + 1}")
        self.run_to_the_end(f"{os.getpid()}-next")
        self.assertEqual({file for file in openmpis if is_left(file)}, set())

    def test_a_live_job_keeps_its_memory_while_another_starts(self):
        mark = f"{os.getpid()}-live"
        mpirun, files = self.stopped_job(mark, 1, RANKS)
        self.run_to_the_end(f"{os.getpid()}-other")
        self.assertEqual({file for file in files if not file.exists()}, set())
        for rank in ranks_of(mark)[0]:
            os.kill(rank, signal.SIGCONT)
        output, _ = mpirun.communicate(timeout=PATIENCE)
        self.assertEqual(mpirun.returncode, 0, output)
        self.assertEqual({file for file in files if is_left(file)}, set())

    def run_to_the_end(self, mark, **variables):
        mpirun = self.mpirun(mark, **variables)
        output, _ = mpirun.communicate(timeout=PATIENCE)
        self.assertEqual(mpirun.returncode, 0, output)
        self.assertIn("sha256 ", output)

    def test_a_kernel_without_nameless_files(self):
        before = segments()
        self.run_to_the_end(f"{os.getpid()}", LOCKSTEP_NO_TMPFILE=1)
        self.assertEqual(segments() - before, set())


if __name__ == "__main__":
    unittest.main()
