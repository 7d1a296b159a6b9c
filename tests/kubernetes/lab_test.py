#!/usr/bin/env python3
"""A test's cluster leaves nothing behind: not when the containerd of a node has crashed, nor when the test is killed."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from cluster import SCRIPT, Cluster, wait_until

SLEEP = "86399.25"  # seconds, which no other process sleeps


def be_killed():
    """Makes a cluster, with a pod on a node that then crashes, and waits."""
    with Cluster() as cluster:
        cluster.start_mpi_operator()
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "left"}, "spec": {"nodeName": "node-0", "containers": [
            {"name": "left", "image": "localhost/lockstep:test", "command": ["sleep", SLEEP]}]}})
        cluster.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/left")
        for name in ("kubelet-0", "containerd-0"):
            os.kill(int((cluster.state / f"pid/{name}").read_text()), signal.SIGKILL)
        print("ready", flush=True)
        signal.pause()


def commands():
    """The command lines of all processes."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended
    return found


class Lab(unittest.TestCase):
    def test_a_killed_test_of_a_crashed_node(self):
        cluster = Cluster()
        words = (f"{cluster.state}/", f"sleep {SLEEP}")
        with subprocess.Popen([sys.executable, __file__, "be-killed"], stdout=subprocess.PIPE, text=True) as test:
            self.addCleanup(subprocess.run, [SCRIPT, "down"], check=True, env=cluster.environment)
            try:
                self.assertEqual(test.stdout.readline(), "ready\n")
                before = [command for command in commands() if any(word in command for word in words)]
                for program in ("containerd-shim", "mpi-operator", "kubelet", "sleep"):
                    self.assertTrue(any(program in command for command in before), f"{program}: {before}")
            finally:
                test.terminate()
        began = time.monotonic()
        wait_until(lambda: not cluster.state.exists(), "the cluster to be gone")
        print(f"gone after {time.monotonic() - began:.0f} s")
        self.assertEqual([command for command in commands() if any(word in command for word in words)], [])


if __name__ == "__main__":
    if sys.argv[1:] == ["be-killed"]:
        be_killed()
    unittest.main(verbosity=2)
