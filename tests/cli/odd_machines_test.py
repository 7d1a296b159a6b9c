#!/usr/bin/env python3
"""Machines on which Open MPI crashes, threads are refused, ranks are killed: the program works, or says why not."""
import errno
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


def remove(cgroup):
    """Its processes have ended, but the kernel may still be taking the last one apart."""
    for _ in range(1000):
        try:
            return cgroup.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.05)
    raise TimeoutError(f"{cgroup} is still in use")


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
        refused = ("lockstep: this machine refuses another thread; raise ulimit -u, or the limit of processes (pids) "
                   "of the container, or make threads smaller\n")
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
            "lockstep: mpirun was killed by signal 6; Open MPI 4 crashes on a host whose name has more than 56 "
            "letters, and this one's has 60: give it a shorter one\n"))

    def test_open_mpi_says_why_a_rank_has_died(self):
        error = self.ranks(code=1, environment={"OMPI_MCA_btl": "tcp"})
        self.assertRegex(error, r"(?m)^lockstep: mpirun ended with 1; Open MPI says:\n  \S")

    @unittest.skipUnless(can_unshare("--mount"), "a /dev/shm of its own cannot be made here")
    def test_a_small_shared_memory(self):
        inside = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4m none /dev/shm && exec "$@"', "sh")
        error = self.ranks(code=1, prefix=inside)
        self.assertRegex(error, r"\Alockstep: shared memory for messages between 2 ranks: 8\.1 MiB are needed, /dev/shm has 4\.0 MiB, "
                                r"4\.0 MiB of them free; give it more: docker run --shm-size=2g, or in Kubernetes an emptyDir with "
                                r"medium: Memory on /dev/shm\n\Z")

    @unittest.skipUnless(os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK), "no memory cgroup can be made here")
    def test_the_kernel_says_that_memory_is_used_up(self):
        cgroup = pathlib.Path(f"/sys/fs/cgroup/memory/lockstep-test-{os.getpid()}")
        cgroup.mkdir()
        self.addCleanup(remove, cgroup)
        (cgroup / "memory.limit_in_bytes").write_text("300000000", encoding="utf-8")
        inside = ("sh", "-c", f'echo $$ > {cgroup}/tasks && exec "$@"', "sh")
        words = ["batch_size=1200", "micro_batches=2", "threads=1", "data.train.digits.count=2400",
                 "model={layers: [{conv: {filters: 64, kernel: 3}}, flatten, {linear: {features: 10}}]}"]
        why = (" was killed by signal 9 (Killed) by the kernel: the memory of its cgroup is used up; raise that "
               "limit, or make batch_size or data.cache.memory.budget smaller\n")
        self.assertTrue(self.ranks(*words, code=1, prefix=inside).endswith(why))

    def test_folders_with_names_that_are_not_utf_8(self):
        folder = os.fsencode(self.folder) + b"/caf\xe9"
        os.mkdir(folder)
        pathlib.Path(os.fsdecode(folder), "t.txt").write_text("to be or not to be " * 9, encoding="utf-8")
        pathlib.Path(os.fsdecode(folder), "job.yaml").write_text(
            "job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, data: {train: {text: {path: t.txt, context: 8}}}, "
            "batch_size: 4, micro_batches: 4, steps: 2, optimizer: adamw, learning_rate: 0.01}\n", encoding="utf-8")
        inside = ("sh", "-c", 'cd "$0" && exec "$@"', folder)
        self.run_program("train", "job.yaml", "run_directory=run", prefix=inside)
        done = subprocess.run([PROGRAM, "train", folder + b"/job.yaml", f"run_directory={self.folder}/x"], check=False,
                              capture_output=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn(b": job.data.train.text.path: expected the job in a folder whose name is in UTF-8, found another "
                      b"encoding; rename the folder, or run the command in it\n", done.stderr)

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
