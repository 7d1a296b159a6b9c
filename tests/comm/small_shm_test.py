#!/usr/bin/env python3
"""Ranks where /dev/shm is small: what does not fit ends with a message and never with a bus error; memory that is mapped
again never needs room for old and new; a rank that is alone on its host needs no /dev/shm."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

CHECK = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "bin/small_shm_check"
VARIABLES = {f"{family}_ALLOW_RUN_AS_ROOT{suffix}": "1" for family in ("OMPI", "PRTE") for suffix in ("", "_CONFIRM")}
VARIABLES |= {"OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
SMALL = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o "size=$0" tmpfs /dev/shm && exec "$@"']


def run(size, hosts, what, mebibytes):
    """Ranks on the hosts that the letters name, which share a /dev/shm of that size."""
    ranks = []
    for host in hosts:
        ranks += [":", "-n", "1", "-x", f"LOCKSTEP_HOST_ID={host}", str(CHECK), what, str(mebibytes)]
    return subprocess.run([*SMALL, size, "mpirun", "--oversubscribe", "--bind-to", "none", *ranks[1:]],
                          env={**os.environ, **VARIABLES}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False)


class SmallSharedMemory(unittest.TestCase):
    def assert_done(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_refused(self, done, use, needed, together=""):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        expected = (rf"shared memory for {use}: {needed} MiB are needed, /dev/shm has [\d.]+ MiB free "
                    r"\(No space left on device\); give it more: docker run --shm-size=2g, or in Kubernetes an emptyDir "
                    rf"with medium: Memory on /dev/shm{together}\n")
        self.assertTrue(re.search(expected, done.stderr), done.stderr)

    def test_a_move_of_micro_batches_frees_the_old_memory_first(self):
        # A gradient of 4 MiB: 2 x 2 partial sums and the sum, then 2 x 3 and the sum.
        self.assert_done(run("30m", "aa", "reduce", 4))

    def test_a_reducer_without_room(self):
        self.assert_refused(run("26m", "aa", "reduce", 4), "the all-reduce of gradients", r"1[26]\.0",
                            r"; the 2 ranks of this host need 28\.0 MiB together")

    def test_own_parameters_without_room(self):
        # 20 of 30 slices of 1 MiB belong to host a.
        self.assert_refused(run("18m", "aab", "fetch", 30), "parameters", r"20\.0",
                            r"; the 2 ranks of this host need 20\.\d MiB together")

    def test_what_is_fetched_without_room(self):
        self.assert_refused(run("20600k", "aab", "fetch", 30), "parameters", r"1\.0")

    def test_own_parameters_and_what_is_fetched(self):
        self.assert_done(run("24m", "aab", "fetch", 30))

    def test_a_rank_that_is_alone_on_its_host_needs_none(self):
        self.assert_done(run("1m", "ab", "reduce", 4))
        self.assert_done(run("1m", "abc", "fetch", 30))


if __name__ == "__main__":
    if subprocess.run([*SMALL, "1m", "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: this needs to mount a /dev/shm of its own (root, unshare)")
        sys.exit(77)
    unittest.main()
