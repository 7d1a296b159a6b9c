#!/usr/bin/env python3
"""Any pod may lead (`lockstep pod --leader-lock`): the leader's host is lost, leaves, is cut off, or loses its lock."""
import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from emulated_hosts import EmulatedHosts
from launches import OPEN_MPI, SMALL, quiet_hash, wait_until
from pods import Pods, missing
from run_events import events_of

STEPS, LONG = 300, 1500


class Run:
    """One pod on each emulated host but the first, which cannot be lost; `pods[0]` is the first of the list."""

    def __init__(self, test, count, steps, start=None):
        folder = test.enterContext(tempfile.TemporaryDirectory())
        self.hosts = test.enterContext(EmulatedHosts(count + 1))
        self.files = Pods(self.hosts, f"{folder}/pods")
        self.names = self.hosts.names[1:]
        (self.files.folder / "hosts").write_text("".join(f"{name} slots=1\n" for name in self.names), encoding="utf-8")
        self.test, self.steps = test, steps
        self.directory = pathlib.Path(folder) / "run"
        self.lock = self.directory / "leader" / "job"
        self.pods = [self.start(pod) for pod in range(start or count)]

    def start(self, pod, takeover=1):
        words = ["--leader-lock", self.lock, "--takeover", str(takeover), "--", *SMALL, f"steps={self.steps}",
                 "checkpoint={every: 20 steps}", f"run_directory={self.directory}", "--hang-limit", "2", "--ask-again", "0.5"]
        started = self.files.work(pod + 1, *words)
        self.test.addCleanup(started.abandon)
        return started

    def events(self, name):
        return events_of(self.directory, name)

    def ranks(self):
        return [event["ranks"] for event in self.events("launch")]

    def leader(self):
        return self.lock.read_text(encoding="utf-8")

    def is_locked(self):
        try:
            with open(self.lock, encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def wait(self, happened, what):
        try:
            wait_until(happened, what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.ranks()}\n{self.output()}") from error

    def wait_for_step(self, step, attempt=1):
        self.wait(lambda: len(self.ranks()) >= attempt and any(e["step"] >= step for e in self.events("step")), f"step {step}")

    def processes(self, pod):
        """Those below a pod's first process, as this machine numbers them."""
        namespace, found = os.readlink(f"/proc/{self.hosts.pids[pod + 1]}/ns/pid"), []
        kept = (self.hosts.pids[pod + 1], self.pods[pod].init())
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is not ours
                if os.readlink(process / "ns/pid") == namespace and int(process.name) not in kept:
                    found.append(process.name)
        return found

    @staticmethod
    def kill(name, processes):
        subprocess.run(["kill", f"-{name}", *processes], check=False)

    def output(self):
        return "\n".join(f"{name}:\n{pod.output()}" for name, pod in zip(self.names, self.pods))

    def check_end(self, pods):
        """These pods end with 0, and the run with the bits of an undisturbed one."""
        for pod in pods:
            self.pods[pod].end(0)
        with tempfile.TemporaryDirectory() as folder:
            self.test.assertEqual(self.events("end")[-1]["parameters_sha256"], quiet_hash(folder, self.steps))


class SuccessionTest(unittest.TestCase):
    def test_a_leader_whose_host_loses_its_power(self):
        run = Run(self, 3, STEPS)
        run.wait_for_step(30)
        self.assertEqual(run.leader(), run.names[0])
        run.hosts.lose(1)
        run.check_end([1, 2])
        self.assertEqual(run.ranks(), [3, 2])
        self.assertIn(run.leader(), run.names[1:])
        self.assertIn(f"lockstep pod: {run.leader()} takes the lead of {run.names[0]}\n", run.output())

    def test_a_leader_that_leaves_comes_back_as_a_worker(self):
        run = Run(self, 2, LONG)
        run.wait_for_step(30)
        run.pods[0].signal(signal.SIGTERM)
        run.pods[0].end(75)
        run.wait_for_step(0, attempt=2)
        self.assertEqual(run.leader(), run.names[1])
        run.pods[0] = run.start(0)
        run.check_end([0, 1])
        self.assertEqual(run.ranks(), [2, 1, 2], run.output())
        self.assertEqual(run.leader(), run.names[1])
        self.assertEqual([event["step"] for event in run.events("step")], list(range(1, LONG + 1)), "a step was lost or repeated")

    def test_a_leader_that_is_cut_off_but_has_its_lock_goes_on_leading(self):
        run = Run(self, 2, LONG)
        run.wait_for_step(30)
        run.hosts.cut(1)
        run.wait(lambda: run.ranks() == [2, 1], "the leader to go on alone")
        run.hosts.mend(1)
        run.check_end([0, 1])
        self.assertEqual(run.ranks(), [2, 1, 2])
        self.assertEqual(run.leader(), run.names[0])

    def test_a_leader_that_has_lost_its_lock_writes_no_checkpoint(self):
        """What a file server does to a host that it takes for lost: others get its locks. Here it is cut off, trains on
        alone, is frozen, and wakes up when the other one has led for a while."""
        run = Run(self, 2, LONG, start=1)
        run.wait(run.is_locked, "the first pod's lock")  # a file that is not locked yet would be locked by its name
        os.unlink(run.lock)
        run.lock.touch()  # another file, which nobody holds
        run.pods.append(run.start(1, takeover=15))  # seconds for what follows
        run.wait_for_step(30)
        run.lock.write_text(run.names[0], encoding="utf-8")
        run.hosts.cut(1)
        run.wait(lambda: run.ranks() == [2, 1] and any("path" in event for event in run.events("restart")), "the leader to go on alone")
        frozen = run.processes(0)
        run.kill("STOP", frozen)
        for name in ("launch.lock", "lock"):
            os.unlink(run.directory / name)
        run.wait(lambda: len(run.ranks()) == 3, "the other pod's attempt")
        self.assertEqual(run.leader(), run.names[1])
        self.assertIsNone(run.pods[0].process.poll())
        run.kill("CONT", frozen)
        run.pods[0].end(1)
        self.assertIn("another launch has taken this directory", run.pods[0].output())
        run.check_end([1])

    def test_a_mistake_ends_all_pods_with_its_code(self):
        run = Run(self, 2, 0)
        run.pods[0].end(78)
        run.pods[1].end(78)
        self.assertIn(f"lockstep pod: the job has ended with 78: see the log of its leader, {run.names[0]}\n", run.pods[1].output())
        self.assertTrue(run.files.termination_log(1).exists())

    def test_a_lock_that_cannot_be_used(self):
        hosts = self.enterContext(EmulatedHosts(1))
        folder = self.enterContext(tempfile.TemporaryDirectory())
        pod = Pods(hosts, f"{folder}/pods").work(0, "--leader-lock", "/proc/none/job")
        self.addCleanup(pod.abandon)
        pod.end(73)
        self.assertIn("lockstep: --leader-lock: /proc/none: cannot create the folder: No such file or directory; it must be on a volume "
                      "that all pods may write to, and whose locks hold among nodes\n", pod.output())


if __name__ == "__main__":
    if missing():
        print(f"skipped: pods cannot be emulated here: {missing()}")
        sys.exit(77)
    if OPEN_MPI >= 5:
        print("skipped: on emulated hosts Open MPI 5's daemons now and then lose each other at the start")
        sys.exit(77)
    unittest.main(verbosity=2)
