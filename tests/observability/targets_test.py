#!/usr/bin/env python3
"""The targets given to Prometheus are those that answer: across a relaunch at another size, on other ports and on other
hosts, and after the end."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error

from servers import Prometheus, Training, fetch, wait_until

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "launch")]
from emulated_hosts import EmulatedHosts  # noqa: E402  pylint: disable=wrong-import-position
from free_ports import free_port, free_ports  # noqa: E402  pylint: disable=wrong-import-position
from launches import SMALL, Launch  # noqa: E402  pylint: disable=wrong-import-position

FOREVER = 10**6  # steps


def rank_at(target):
    """The rank whose metrics are served at `target`."""
    line = next(line for line in fetch(f"http://{target}/metrics").splitlines() if line.startswith("lockstep_micro_batches{"))
    return int(line.split('rank="')[1].split('"')[0])


def served(port):
    try:
        return fetch(f"http://127.0.0.1:{port}/metrics")
    except urllib.error.URLError:
        return ""  # not yet


class Targets(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(os.path.realpath(temporary.name))
        self.shared = self.folder / "targets"

    def telemetry(self, port, **more):
        keys = {"port": port, "targets": self.shared, **more}
        return [f"telemetry.prometheus.{key}={value}" for key, value in keys.items()]

    def launch(self, *words, **options):
        launch = Launch(str(self.folder / "run"), *words, steps=FOREVER, **options)
        self.addCleanup(launch.abandon)
        return launch

    def targets(self):
        """The targets of the run, with their hosts; the file for all runs has the same."""
        own = json.loads((self.folder / "run/metrics/targets.json").read_text())
        if own:
            self.assertEqual(json.loads((self.shared / "run.json").read_text()), own)
        return [(group["targets"][0], group["labels"]["host"]) for group in own]

    def ports(self):
        return [int(target.rsplit(":", 1)[1]) for target, _ in self.targets()]

    def assert_served(self):
        self.assertEqual([rank_at(target) for target, _ in self.targets()], list(range(len(self.targets()))))

    def assert_withdrawn(self):
        self.assertEqual(self.targets(), [])
        self.assertEqual(list(self.shared.glob("*")), [])

    def test_a_last_scrape_tells_whether_the_run_has_ended_or_failed(self):
        for state, words, code, linger in (("ended", ["steps=3"], 0, 30), ("failed", ["learning_rate=1e30"], 76, 30),
                                           ("ended", ["steps=500"], 0, "auto")):
            port = free_port()
            job = [*SMALL, "steps=100", *words, *self.telemetry(port, linger=linger),
                   f"run_directory={self.folder}/{state}-{linger}"]
            with subprocess.Popen([os.environ["LOCKSTEP"], "train", *job], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as run:
                wait_until(lambda: f'lockstep_state{{rank="0",state="{state}"}} 1' in served(port), state)
                self.assertEqual(run.wait(180), code)

    def test_over_a_killed_rank_a_crash_and_another_size(self):
        port = free_ports(3)
        with socket.create_server(("127.0.0.1", port + 1)):  # another program's port
            launch = self.launch("--ranks", "2", *self.telemetry(port))
            launch.wait_for_step(12)
            self.assertEqual(self.ports()[0], port)
            self.assertNotIn(self.ports()[1], range(port, port + 3))
            self.assert_served()
            told = [event["message"] for event in launch.events("warning")]
            self.assertIn(f"rank 1: port {port + 1} on {os.uname().nodename} is not available; its metrics are served at "
                          f"port {self.ports()[1]}, as {self.folder}/run/metrics/targets.json says", told)
        os.kill(launch.process_of_rank(1), signal.SIGKILL)
        launch.wait_for_step(1, attempt=2)
        self.assertEqual(self.ports(), [port, port + 1])
        self.assert_served()

        launch.signal(signal.SIGTERM)
        launch.end(75)
        self.assert_withdrawn()

        crashed = self.train(2, port)
        os.kill(crashed.process_of_rank(0), signal.SIGKILL)
        crashed.process.wait()
        self.assertEqual(self.ports(), [port, port + 1], "that they do not answer is an alert")
        again = self.launch("--ranks", "3", *self.telemetry(port))
        again.wait_for_step(1)
        self.assertEqual(self.ports(), [port, port + 1, port + 2])
        self.assert_served()
        again.signal(signal.SIGTERM)
        again.end(75)
        self.assert_withdrawn()

    def train(self, ranks, port, hosts=False):
        training = Training(self.folder / "run", ranks, *SMALL, f"steps={FOREVER}", "checkpoint={every: 10 steps}",
                            *self.telemetry(port), hosts=hosts)
        self.addCleanup(training.abandon)
        wait_until(lambda: training.events("step"), "a step")
        return training

    @unittest.skipUnless(shutil.which("prometheus"), "Debian's package prometheus is not installed")
    def test_prometheus_follows(self):
        """Plain mpirun: both ranks believe to be the first of their host, and want the same port."""
        prometheus = Prometheus(self.folder / "prometheus", self.shared / "*.json")
        self.addCleanup(prometheus.stop)
        port = free_port()
        training = self.train(2, port, hosts=True)
        self.assertEqual(sorted(host for _, host in self.targets()), ["h0", "h1"])
        self.assertEqual(len([found for found in self.ports() if found == port]), 1)
        self.assert_served()
        wait_until(lambda: len(prometheus.query('up{run="run"} == 1')) == 2, "both ranks to be scraped")
        training.end(75, number=signal.SIGUSR1)
        self.assert_withdrawn()
        wait_until(lambda: not prometheus.ask("targets")["activeTargets"], "Prometheus to forget the ranks")

    @unittest.skipIf(EmulatedHosts.missing(), "several hosts cannot be emulated here")
    def test_over_the_loss_of_a_host(self):
        port = free_port()
        with EmulatedHosts(3) as hosts:
            launch = self.launch("--agent", hosts.agent, "--hosts", hosts.slots(1), "--hang-limit", "10",
                                 *self.telemetry(port, address="0.0.0.0"), prefix=hosts.prefix(0))
            launch.wait_for_step(12)
            self.assertEqual(self.targets(), [(f"{name}:{port}", name) for name in hosts.names])
            hosts.lose(2)
            launch.wait_for_step(1, attempt=2)
            self.assertEqual(self.targets(), [(f"{name}:{port}", name) for name in hosts.names[:2]])
            for target, _ in self.targets():
                read = f"import urllib.request as r; print(len(r.urlopen('http://{target}/metrics').read()))"
                done = subprocess.run([*hosts.prefix(0), sys.executable, "-c", read], capture_output=True, text=True,
                                      check=True)
                self.assertGreater(int(done.stdout), 1000)
            launch.signal(signal.SIGTERM)
            launch.end(75)
        self.assert_withdrawn()


if __name__ == "__main__":
    unittest.main(verbosity=2)
