#!/usr/bin/env python3
"""What reads a training's output may stop, leave or never begin to read, and a terminal may close: the training goes
on, and a signal leads to a checkpoint."""
import contextlib
import os
import pathlib
import pty
import signal
import subprocess
import tempfile
import unittest

from launches import PATIENCE, PROGRAM, SMALL, processes_of, wait_until
from run_events import events_of

WAYS = (("train",), ("train", "--ranks", "2"), ("launch", "--ranks", "2"))


def processes_in(folder):
    """Of everything whose command line names the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(str(folder)) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class Output(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_directory = pathlib.Path(folder.name, "run")

    def begin(self, way, *words, steps=10000000, **options):
        command = [PROGRAM, *way, *SMALL, f"steps={steps}", "checkpoint={every: 1000000 steps}",
                   f"run_directory={self.run_directory}", *words]
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        process = subprocess.Popen(command, start_new_session=True, **options)
        self.addCleanup(self.abandon, process)
        return process

    def abandon(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        for left, _ in processes_of(self.run_directory):
            os.kill(left, signal.SIGKILL)

    def last_step(self):
        steps = events_of(self.run_directory, "step")
        return steps[-1]["step"] if steps else 0

    def wait_for_steps(self, more):
        aim = self.last_step() + more
        wait_until(lambda: self.last_step() >= aim, f"step {aim}")

    def checkpoints(self):
        return list(self.run_directory.glob("checkpoints/step-*/manifest.json"))

    def assert_checkpoint(self, process, code=75):
        self.assertEqual(process.wait(PATIENCE), code)
        wait_until(lambda: not processes_in(self.run_directory), "all processes to be gone", 30)
        self.assertEqual(len(self.checkpoints()), 1)

    def test_ctrl_c_ends_the_reader_too(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way, "--log", "json", stdout=subprocess.PIPE)
                self.wait_for_steps(5)
                process.stdout.close()  # as tee is gone after a Ctrl-C
                self.wait_for_steps(50)
                process.send_signal(signal.SIGINT)
                self.assert_checkpoint(process)

    def test_a_stopped_terminal(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.setUp()
                terminal, stream = pty.openpty()
                self.addCleanup(os.close, terminal)
                process = self.begin(way, stdin=stream, stdout=stream, stderr=stream,
                                     env={**os.environ, "TERM": "xterm"})
                os.close(stream)
                self.wait_for_steps(5)
                os.write(terminal, b"\x13")  # Ctrl-S
                self.wait_for_steps(200)
                process.send_signal(signal.SIGTERM)
                self.assert_checkpoint(process)

    def test_a_pipe_that_nobody_reads(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way, "--log", "json", steps=1000, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(process.wait(PATIENCE), 1)
                self.assertIn("nobody reads it", process.stderr.read().decode())
                self.assertEqual(events_of(self.run_directory, "end")[0]["steps"], 1000)
                self.assertEqual(len(self.checkpoints()), 1)

    def test_a_full_disk_under_the_log(self):
        with open("/dev/full", "wb") as full:
            process = self.begin(("train",), "--log", "json", steps=20, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(process.wait(PATIENCE), 1)
        self.assertEqual(process.stderr.read().decode(),
                         "lockstep: cannot write the event log: No space left on device\n")
        self.assertEqual(events_of(self.run_directory, "end")[0]["steps"], 20)

    def test_a_closed_terminal(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way)
                self.wait_for_steps(5)
                process.send_signal(signal.SIGHUP)
                self.assert_checkpoint(process)

    def test_nohup(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
                self.wait_for_steps(5)
                process.send_signal(signal.SIGHUP)
                self.wait_for_steps(50)
                process.send_signal(signal.SIGTERM)
                self.assert_checkpoint(process)

    def test_sigterm_to_all_processes(self):
        """As systemd stops a service. mpirun would kill ranks that take a second longer."""
        for way in WAYS[1:]:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way)
                self.wait_for_steps(5)
                everything = processes_in(self.run_directory)
                self.assertGreaterEqual(len(everything), 4)
                ranks = [found for found in everything if b"OMPI_COMM_WORLD_RANK" in
                         pathlib.Path(f"/proc/{found}/environ").read_bytes()]
                os.kill(ranks[-1], signal.SIGSTOP)
                for found in everything:
                    os.kill(found, signal.SIGTERM)
                self.assertRaises(subprocess.TimeoutExpired, process.wait, 3)
                os.kill(ranks[-1], signal.SIGCONT)
                self.assert_checkpoint(process)

    def test_the_ranks_of_a_killed_parent_write_a_checkpoint(self):
        for way in WAYS[1:]:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way, "--log", "json", stdout=subprocess.PIPE)
                self.wait_for_steps(5)
                process.stdout.close()
                process.kill()
                self.assert_checkpoint(process, -signal.SIGKILL)

    def test_everything_is_stopped_for_longer_than_any_deadline(self):
        """As by Slurm's suspend, or docker pause."""
        for way in WAYS[1:]:
            with self.subTest(way=way):
                self.setUp()
                process = self.begin(way, "timeout=8", *(("--hang-limit", "8") if way[0] == "launch" else ()))
                self.wait_for_steps(5)
                everything = processes_in(self.run_directory)
                for number, pause in ((signal.SIGSTOP, 11), (signal.SIGCONT, 0)):
                    for found in everything:
                        with contextlib.suppress(ProcessLookupError):  # a short one, such as a question to a host
                            os.kill(found, number)
                    self.assertRaises(subprocess.TimeoutExpired, process.wait, pause)
                self.wait_for_steps(50)
                self.assertEqual(events_of(self.run_directory, "restart"), [])
                process.send_signal(signal.SIGTERM)
                self.assert_checkpoint(process)


if __name__ == "__main__":
    unittest.main()
