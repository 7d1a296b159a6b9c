#!/usr/bin/env python3
"""Machines on which Open MPI crashes, threads are refused, ranks are killed: the program works, or says why not."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["LOCKSTEP"]
SMALL = ["data.train.digits.count=128", "data.validation.digits.count=32", "batch_size=32", "steps=4"]
STRANGER = 23_456  # a user whom this system does not know


def can_unshare(*words):
    return subprocess.run(["unshare", *words, "true"], capture_output=True, check=False).returncode == 0


class OddMachines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o777)

    def run_program(self, *words, code=0, prefix=(), environment=None):
        """Returns what it writes to stderr."""
        done = subprocess.run([*prefix, PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=300, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def ranks(self, *words, **options):
        return self.run_program("train", "--ranks", "2", *SMALL, f"run_directory={self.folder}/run", *words, **options)

    @unittest.skipUnless(os.geteuid() == 0, "another user needs root")
    def test_no_home(self):
        stranger = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups")
        self.ranks(prefix=(*stranger, "env", "-u", "HOME"))

    @unittest.skipUnless(os.geteuid() == 0, "another user needs root")
    def test_no_more_threads(self):
        """Wherever the limit is met: never a crash, never a hang."""
        refused = ("lockstep: this machine refuses another thread; raise ulimit -u, or the limit of processes (pids) of "
                   "the container, or make threads smaller\n")
        for threads in range(2, 8):
            with self.subTest(threads=threads):
                user = f"--reuid={STRANGER + threads}"
                limited = ("setpriv", user, "--clear-groups", "prlimit", f"--nproc={threads}")
                done = subprocess.run([*limited, PROGRAM, "train", *SMALL, "threads=4", "checkpoint=never"],
                                      cwd=self.folder, capture_output=True, text=True, check=False, timeout=120,
                                      stdin=subprocess.DEVNULL, env={**os.environ, "HOME": "/"})
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if done.returncode == 1:
                    self.assertTrue(done.stderr.endswith(refused), done.stderr)

    @unittest.skipUnless(can_unshare("--uts"), "a host name of its own cannot be made here")
    def test_a_long_host_name(self):
        name = "h" * 60
        inside = ("unshare", "--uts", "sh", "-c", f"hostname {name}; exec \"$@\"", "sh")
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
        if "(Open MPI) 4" not in version:
            self.ranks(prefix=inside)
            return
        self.assertTrue(self.ranks(prefix=inside, code=1).endswith(
            "lockstep: mpirun was killed by signal 6; Open MPI 4 crashes on a host whose name has more than 56 letters, "
            "and this one's has 60: give it a shorter one\n"))

    def test_open_mpi_says_why_a_rank_has_died(self):
        error = self.ranks(code=1, environment={"OMPI_MCA_btl": "tcp"})
        self.assertRegex(error, r"(?m)^lockstep: mpirun ended with 1; Open MPI says:\n  \S")

    @unittest.skipUnless(can_unshare("--mount"), "a /dev/shm of its own cannot be made here")
    def test_a_small_shared_memory(self):
        inside = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4m none /dev/shm && exec "$@"', "sh")
        error = self.ranks(code=1, prefix=inside)
        self.assertRegex(error, r"(?s)lockstep: mpirun ended with 1; Open MPI says:\n.*not enough space")

    def test_a_killed_rank_is_named_with_the_signal(self):
        process = subprocess.Popen([PROGRAM, "train", "--ranks", "2", *SMALL, "steps=1000000",
                                    f"run_directory={self.folder}/run"], stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL)
        events = self.folder / "run/events.jsonl"
        while not events.exists() or '"event":"step"' not in events.read_text():
            time.sleep(0.05)
            self.assertIsNone(process.poll())
        ranks = [int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*") if self.is_rank_1(entry)]
        os.kill(ranks[0], signal.SIGKILL)
        error = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 1)
        self.assertIn("lockstep: rank 1 was killed by signal 9 (Killed)\n", error)

    def is_rank_1(self, entry):
        try:
            return (os.fsencode(self.folder) in (entry / "cmdline").read_bytes()
                    and b"\0OMPI_COMM_WORLD_RANK=1\0" in (entry / "environ").read_bytes())
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
