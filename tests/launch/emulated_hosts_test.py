#!/usr/bin/env python3
"""`lockstep launch` on several emulated hosts: the all-reduce between nodes and its bytes, the loss of a node, a silent
link, hosts that come and go; `lockstep bench all-reduce` between them."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from emulated_hosts import EmulatedHosts
from launches import OPEN_MPI, PATIENCE, PROGRAM, Launch, quiet_hash, wait_until

STEPS = 150
# Prints everything that passes the host's network card, when its stdin ends.
SNIFFER = """
import select, socket, sys
card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
card.bind(("eth0", 0))
sys.stdout.buffer.write(b"ready\\n")
sys.stdout.buffer.flush()
seen = []
while sys.stdin not in select.select([card, sys.stdin], [], [])[0]:
    seen.append(card.recv(65535))
sys.stdout.buffer.write(b"".join(seen))
"""


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.quiet = quiet_hash(cls.folder.name, STEPS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def launch(self, hosts, *words, steps=STEPS, **options):
        launch = Launch(f"{self.folder.name}/{self.id().rsplit('.', 1)[-1]}", "--agent", hosts.agent, *words,
                        steps=steps, prefix=hosts.prefix(0), **options)
        self.addCleanup(launch.abandon)
        return launch

    def faults(self, launch):
        return [event for event in launch.events("restart") if "reason" in event]

    def test_two_nodes_reduce_what_the_formula_says(self):
        with EmulatedHosts(2) as hosts:
            before = [hosts.bytes_sent(i) for i in range(2)]
            end = self.launch(hosts, "--hosts", hosts.slots(2), "balance=equal").end()
            sent = [hosts.bytes_sent(i) - before[i] for i in range(2)]
        self.assertEqual(end["parameters_sha256"], self.quiet)
        self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])
        # A node's two ranks sum before they send the other node's owners their half, and the node's owners send the
        # sums of their half once: with equal shares one gradient, and some bytes for scalars, headers and unequal
        # slices.
        gradients = 4 * 20490 * STEPS
        for node, count in enumerate(sent):
            print(f"node {node}: {count / 1e6:.1f} MB sent, gradients are {gradients / 1e6:.1f} MB", file=sys.stderr)
            self.assertGreater(count, 0.9 * gradients)
            self.assertLess(count, 1.3 * gradients)

    def test_no_secret_crosses_the_network(self):
        """Keys of an object store and the control socket's token; the agent hands on no environment, like ssh."""
        key = "a-made-up-key-0123456789"
        agent = pathlib.Path(self.folder.name) / "agent"
        with EmulatedHosts(2) as hosts:
            agent.write_text(f"#!/bin/sh\nunset AWS_SECRET_ACCESS_KEY LOCKSTEP_SUPERVISOR_SECRET\nexec {hosts.agent} "
                             '"$@"\n', encoding="utf-8")
            agent.chmod(0o755)
            with subprocess.Popen([*hosts.prefix(1), sys.executable, "-c", SNIFFER], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) as sniffer:
                self.assertEqual(sniffer.stdout.read(6), b"ready\n")
                launch = Launch(f"{self.folder.name}/secrets", "--hosts", hosts.slots(1), "--agent", str(agent),
                                steps=1_000_000, prefix=hosts.prefix(0), environment={"AWS_SECRET_ACCESS_KEY": key})
                self.addCleanup(launch.abandon)
                launch.wait_for_step(2)
                memory = pathlib.Path(f"/proc/{launch.process_of_rank(1)}/root/dev/shm")
                kept, = memory.glob("lockstep-*.secrets")
                self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
                secrets = dict(entry.split("=", 1) for entry in kept.read_text().split("\0") if "=" in entry)
                launch.signal(signal.SIGTERM)
                launch.end(75)
                seen = sniffer.communicate()[0]
            left = subprocess.run([*hosts.prefix(1), "ls", "/dev/shm"], capture_output=True, text=True, check=True)
        self.assertEqual(left.stdout, "")
        self.assertEqual(secrets["AWS_SECRET_ACCESS_KEY"], key)
        self.assertIn(b"hello ", seen, "the sniffer sees what ranks say")
        for secret in (key, secrets["LOCKSTEP_SUPERVISOR_SECRET"]):
            self.assertNotIn(secret.encode(), seen)
        self.assertEqual(launch.events("warning")[1:], [])  # the first one: stopping

    def test_the_control_socket_is_open_to_the_hosts_network_only(self):
        with EmulatedHosts(2) as hosts:
            launch = self.launch(hosts, "--hosts", hosts.slots(1))
            launch.wait_for_step(2)
            self.assertEqual([address for address, _ in launch.listens_at()], ["10.77.0.1"])
            self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(launch.events("warning"), [])

    def test_hosts_without_ipv4(self):
        with EmulatedHosts(2, ipv6=True) as hosts:
            launch = self.launch(hosts, "--hosts", hosts.slots(1), "telemetry.prometheus.address='::'")
            launch.wait_for_step(2)
            self.assertEqual([address for address, _ in launch.listens_at()], [hosts.address(0)])
            path = launch.directory / "metrics/targets.json"
            wait_until(path.exists, "the targets")
            targets = json.loads(path.read_text(encoding="utf-8"))
            host, port = targets[1]["targets"][0].rsplit(":", 1)
            self.assertEqual(host, hosts.names[1])
            read = f"import urllib.request; print(urllib.request.urlopen('http://{host}:{port}/metrics').read().decode())"
            metrics = subprocess.run([*hosts.prefix(0), sys.executable, "-c", read], capture_output=True, text=True, check=True).stdout
            self.assertIn('lockstep_steps_total{rank="1"} ', metrics)
            self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(launch.events("warning"), [])

    def test_the_loss_of_a_node(self):
        with EmulatedHosts(3) as hosts:
            launch = self.launch(hosts, "--hosts", hosts.slots(1), "--hang-limit", "5")
            launch.wait_for_step(15)
            hosts.lose(2)
            self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual([event["ranks"] for event in launch.events("launch")], [3, 2])
        fault, = self.faults(launch)
        self.assertEqual((fault["reason"], fault["rank"], fault["host"]), ("hang", 2, hosts.names[2]))

    def test_a_silent_link(self):
        with EmulatedHosts(2) as hosts:
            launch = self.launch(hosts, "--hosts", hosts.slots(2), "--hang-limit", "5")
            launch.wait_for_step(15)
            hosts.cut(1)
            self.assertEqual(launch.end(gone_within=60)["parameters_sha256"], self.quiet)
            # The ranks behind the link cannot be told: they find out by themselves.
            self.assertEqual([event["ranks"] for event in launch.events("launch")], [4, 2])
        fault, = self.faults(launch)
        self.assertEqual(fault["reason"], "hang")
        self.assertIn(fault["rank"], (2, 3))
        self.assertIn("no heartbeat for", fault["message"])

    def test_all_hosts_gone_for_a_while(self):
        """A switch fails for ten seconds: the launch waits, and this does not count as an attempt."""
        with EmulatedHosts(3) as hosts:
            launch = self.launch(hosts, "--hosts", ",".join(f"{name}:1" for name in hosts.names[1:]), "--hang-limit", "5",
                                 "--ask-again", "2", "--max-restarts", "1")
            launch.wait_for_step(15)
            hosts.cut(1)
            hosts.cut(2)
            launch.wait_for_warning("no host answers")
            time.sleep(10)
            hosts.mend(1)
            hosts.mend(2)
            self.assertEqual(launch.end(gone_within=60)["parameters_sha256"], self.quiet)
        self.assertEqual([event["ranks"] for event in launch.events("launch")][0], 2)
        self.assertEqual(len(self.faults(launch)), 1, "waiting is no failed attempt")

    def test_no_host_comes_back(self):
        with EmulatedHosts(2) as hosts:
            launch = self.launch(hosts, "--hosts", f"{hosts.names[1]}:1", "--hang-limit", "5", "--ask-again", "2",
                                 "--await-hosts", "5", steps=100000)
            launch.wait_for_step(15)
            hosts.cut(1)
            self.assertIsNone(launch.end(code=1, gone_within=90))
        self.assertIn(f"lockstep: none of the hosts listed ({hosts.names[1]}:1) could be used for 5 s; see the warnings, that they are "
                      f"up and that '{hosts.agent} HOST' reaches them, then run the same command again: it resumes from "
                      "the newest checkpoint (--await-hosts sets how long to wait)", launch.output())

    def test_hosts_come_and_go(self):
        with EmulatedHosts(3) as hosts:
            script = pathlib.Path(self.folder.name) / "discover"

            def say(count):
                lines = "".join(f"echo {name}:1\n" for name in hosts.names[:count])
                new = script.with_suffix(".new")
                new.write_text(f"#!/bin/sh\n{lines}", encoding="utf-8")
                new.chmod(0o755)
                new.rename(script)

            say(1)
            launch = self.launch(hosts, "--discover", str(script), "--hosts-every", "0.2", steps=400)
            launch.wait_for_step(10)
            say(3)
            launch.wait_for_step(10, attempt=2)
            say(2)
            wait_until(lambda: launch.attempts() == 3 or launch.process.poll() is not None, "the third attempt")
            self.assertIsNotNone(launch.end())
        self.assertEqual([event["ranks"] for event in launch.events("launch")], [1, 3, 2])
        steps = [event["step"] for event in launch.events("step")]
        self.assertEqual(steps, list(range(1, 401)), "a step was lost or repeated")


class BenchAllReduce(unittest.TestCase):
    @unittest.skipIf(shutil.which("tc") is None, "tc is not installed")
    def test_the_network_is_timed_apart_from_what_joins_the_ranks_of_a_host(self):
        megabits = 100  # per second, sent by each host's card
        with EmulatedHosts(2) as hosts:
            hosts.limit(f"{megabits}mbit")
            command = [*hosts.prefix(0), "mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent",
                       hosts.agent, "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "--host",
                       hosts.slots(2), PROGRAM, "bench", "all-reduce", "--log", "json", "--sizes", "2MiB", "--rounds", "3"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        exact = {line["part"]: line for line in lines if line["way"] == "exact"}
        self.assertEqual({part: (line["ranks"], line["network_bytes"]) for part, line in exact.items()},
                         {"within": (2, 0), "between": (2, 4 << 20), "all": (4, 4 << 20)})
        least = (2 << 20) / (megabits * 1e6 / 8)  # seconds that the card needs for what each host must send
        for part in ("between", "all"):
            self.assertGreater(exact[part]["seconds_median"], 0.5 * least)  # a burst passes at once
        self.assertLess(exact["within"]["seconds_median"], exact["between"]["seconds_median"])


if __name__ == "__main__":
    if EmulatedHosts.missing():
        print(f"several hosts cannot be emulated here: {EmulatedHosts.missing()}")
        sys.exit(77)
    if OPEN_MPI >= 5:
        print("these expect Open MPI 4: Open MPI 5's daemons now and then lose each other at the start, and its mpirun "
              "ends all ranks when it loses a host")
        sys.exit(77)
    unittest.main()
