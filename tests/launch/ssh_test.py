#!/usr/bin/env python3
"""`lockstep launch` over real ssh: a killed rank, a signal, a host whose key is not the known one, and nothing left
behind."""
import os
import pathlib
import signal
import sys
import tempfile
import unittest

from launches import Launch, quiet_hash
from ssh_hosts import IMPOSTOR, SshHosts

STEPS = 150


class Ssh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.quiet = quiet_hash(cls.folder.name, STEPS)
        cls.hosts = SshHosts()
        cls.hosts.__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)
        cls.slots = cls.hosts.slots(4)
        print(f"hosts: {cls.slots}", file=sys.stderr)

    def launch(self, *words, steps=STEPS, environment=None):
        launch = Launch(f"{self.folder.name}/{self.id().rsplit('.', 1)[-1]}", *words, steps=steps,
                        environment={**self.hosts.environment, **(environment or {})})
        self.addCleanup(launch.abandon)
        return launch

    def test_a_killed_rank(self):
        launch = self.launch("--hosts", self.slots, "--agent", self.hosts.agent, "--listen", "127.0.0.1")
        launch.wait_for_step(15)
        self.assertEqual([address for address, _ in launch.listens_at()], ["127.0.0.1"])
        os.kill(launch.process_of_rank(2), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual([event["on"] for event in launch.events("launch")], [self.slots, self.slots])
        fault, = [event for event in launch.events("restart") if "reason" in event]
        self.assertEqual((fault["reason"], fault["rank"], fault["host"]), ("death", 2, self.hosts.host_names[-1]))
        self.assertEqual(launch.events("warning"), [])

    def test_the_default_agent_and_a_host_that_is_not_who_it_was(self):
        path = f"{os.path.dirname(self.hosts.agent)}:{os.environ['PATH']}"
        launch = self.launch("--hosts", f"{self.slots},{IMPOSTOR}:1", environment={"PATH": path})
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual([event["on"] for event in launch.events("launch")], [self.slots])
        warnings = [event["message"] for event in launch.events("warning")]
        self.assertRegex(warnings[0], f"^host {IMPOSTOR} answered with 255: it is skipped, and tried again every .* s; "
                                      f"try: ssh {IMPOSTOR} /.*lockstep version$")

    def test_what_the_network_is_told_reaches_the_ranks_of_all_hosts(self):
        launch = self.launch("--hosts", self.slots, "--agent", self.hosts.agent,
                             environment={"NCCL_DEBUG": "WARN", "NO_NCCL_DEBUG": "1"})
        launch.wait_for_step(1)
        for rank in range(4):
            variables = pathlib.Path(f"/proc/{launch.process_of_rank(rank)}/environ").read_bytes().split(b"\0")
            self.assertIn(b"NCCL_DEBUG=WARN", variables)
            self.assertTrue(rank < 2 or b"NO_NCCL_DEBUG=1" not in variables, "ssh takes nothing else along")
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)

    def test_names_that_only_ssh_knows_say_nothing_of_the_way_back(self):
        launch = self.launch("--hosts", self.slots, "--agent", self.hosts.agent)
        launch.wait_for_step(1)
        self.assertIn([address for address, _ in launch.listens_at()], (["0.0.0.0"], ["::"]))  # as this machine has IPv6
        warnings = [event["message"] for event in launch.events("warning")]
        self.assertRegex(" ".join(warnings), "^the control socket listens on all interfaces of this host, since "
                         "the address by which the other hosts reach it is not known: .*; set it by --listen ADDRESS$")
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)

    def test_a_signal_checkpoints_and_ends_with_75(self):
        launch = self.launch("--hosts", self.slots, "--agent", self.hosts.agent, steps=100000)
        launch.wait_for_step(5)
        launch.signal(signal.SIGTERM)
        self.assertTrue(launch.end(75)["interrupted"])
        self.assertEqual(launch.attempts(), 1)

    def test_a_second_signal_ends_at_once(self):
        launch = self.launch("--hosts", self.slots, "--agent", self.hosts.agent, "--hang-limit", "1000", steps=100000)
        launch.wait_for_step(5)
        os.kill(launch.process_of_rank(3), signal.SIGSTOP)  # so that the first signal alone cannot end it
        launch.signal(signal.SIGINT)
        launch.wait_for_warning("stopping: ")  # the first signal has been handled
        launch.signal(signal.SIGINT)
        launch.end(128 + signal.SIGINT)


if __name__ == "__main__":
    if SshHosts.missing():
        print(f"no ssh to a host of our own: {SshHosts.missing()}")
        sys.exit(77)
    unittest.main()
