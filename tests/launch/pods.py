"""Pods of a job without Kubernetes: `lockstep pod` on emulated hosts, each with a real sshd on port 2222.

with EmulatedHosts(3) as hosts:
    pods = Pods(hosts, folder)
    leader = pods.lead(directory)     # a Launch
    worker = pods.work(1)             # a Worker
"""
import os
import pathlib
import shutil
import signal
import subprocess

from emulated_hosts import EmulatedHosts
from launches import PATIENCE, PROGRAM, Launch, wait_until
from ssh_hosts import SshHosts


def missing():
    """Why this machine cannot do it; empty if it can."""
    return EmulatedHosts.missing() or SshHosts.missing()


def make_key(path):
    """A key like the chart's: a bare EC key in PEM."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f", path], check=True)


class Worker:
    """The running pod of one host."""

    def __init__(self, words, log):
        self.log = open(log, "a+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            words, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, start_new_session=True)

    def init(self):
        """The process id of the pod's first process: the one that entered the host's namespaces waits for it."""
        return int(wait_until(lambda: pathlib.Path(
            f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split(), "the pod's process")[0])

    def signal(self, number):
        os.kill(self.init(), number)

    def output(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")

    def end(self, code):
        try:
            found = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the worker does not end:\n{self.output()}") from error
        assert found == code, f"the worker ended with {found}, expected {code}:\n{self.output()}"

    def abandon(self):
        """For a test that failed: cleans up."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.log.close()


class Pods:
    """`folder` belongs to this test, and is emptied."""

    def __init__(self, hosts, folder, count=None):
        self.hosts = hosts
        self.folder = pathlib.Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        make_key(self.folder / "key")
        lines = "".join(f"{name} slots=1\n" for name in hosts.names[:count])
        (self.folder / "hosts").write_text(lines, encoding="utf-8")

    def words(self, host):
        return ["pod", "--hostfile", self.folder / "hosts", "--key", self.folder / "key", "--state",
                self.folder / f"state-{host}", "--termination-log", self.termination_log(host)]

    def termination_log(self, host):
        return self.folder / f"termination-{host}"

    def lead(self, directory, *words, pod=(), **options):
        """`pod`: words for the pod; `words`: for the launch that it starts."""
        head = [*self.words(0), "--log", "json", *pod, "--"]
        return Launch(directory, "--ask-again", "0.5", *words, prefix=self.hosts.prefix(0), head=head, **options)

    def work(self, host, *words):
        return Worker([*self.hosts.prefix(host), PROGRAM, *self.words(host), *words], self.folder / f"log-{host}")
