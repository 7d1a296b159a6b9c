#!/usr/bin/env python3
"""`lockstep pod` without Kubernetes: pods that are told to leave and come back, the end of the leader, mistakes, unfit
nodes, orphans."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from emulated_hosts import EmulatedHosts, enter
from launches import OPEN_MPI, PROGRAM, quiet_hash, wait_until
from pods import Pods, Worker, make_key, missing

from https_stub import HttpsStub  # found by launches.py

STEPS = 1500  # enough for a signal to arrive or a pod to start in the meantime, on any machine
NEVER = 10 * STEPS  # no checkpoint but the one written on leaving


class PodTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def hosts(self, count):
        hosts = EmulatedHosts(count)
        hosts.__enter__()
        self.addCleanup(hosts.__exit__)
        return hosts

    def work(self, pods, host, *words):
        worker = pods.work(host, *words)
        self.addCleanup(worker.abandon)
        return worker

    def lead(self, pods, *words, name="run", **options):
        leader = pods.lead(f"{self.folder}/{name}", *words, **options)
        self.addCleanup(leader.abandon)
        return leader


class Leaving(PodTest):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.quiet = quiet_hash(folder, STEPS)

    def check_steps(self, leader):
        steps = [event["step"] for event in leader.events("step")]
        self.assertEqual(steps, list(range(1, STEPS + 1)), "a step was lost or repeated")

    def test_a_worker_that_is_told_to_leave_checkpoints_and_the_others_go_on(self):
        pods = Pods(self.hosts(3), f"{self.folder}/pods")
        workers = [self.work(pods, host) for host in (1, 2)]
        leader = self.lead(pods, steps=STEPS, every=NEVER)
        leader.wait_for_step(15)
        workers[1].signal(signal.SIGTERM)
        workers[1].end(75)
        self.assertIn("leaving after a signal; 1 rank here was asked to write a checkpoint, 0 left", workers[1].output())
        self.assertEqual(leader.end()["parameters_sha256"], self.quiet)
        workers[0].end(0)
        self.assertEqual([event["ranks"] for event in leader.events("launch")], [3, 2])
        self.assertEqual([event["reason"] for event in leader.events("restart") if "reason" in event], ["resize"])
        self.check_steps(leader)

    def test_a_worker_that_comes_back_is_taken_in_again(self):
        pods = Pods(self.hosts(2), f"{self.folder}/pods")
        worker = self.work(pods, 1)
        leader = self.lead(pods, steps=STEPS, every=10)
        leader.wait_for_step(10)
        worker.signal(signal.SIGTERM)
        worker.end(75)
        again = self.work(pods, 1)
        self.assertEqual(leader.end()["parameters_sha256"], self.quiet)
        again.end(0)
        self.assertEqual([event["ranks"] for event in leader.events("launch")], [2, 1, 2])
        self.check_steps(leader)

    def test_the_leader_checkpoints_and_the_one_in_its_place_goes_on(self):
        pods = Pods(self.hosts(2), f"{self.folder}/pods")
        worker = self.work(pods, 1)
        first = self.lead(pods, steps=STEPS, every=NEVER)
        first.wait_for_step(10)
        first.signal(signal.SIGTERM)
        self.assertTrue(first.end(75)["interrupted"])
        self.assertIsNone(worker.process.poll(), "a worker waits for the leader that takes its place")
        steps = len(first.events("step"))
        first.abandon()  # the second one's files have the same names
        second = self.lead(pods, steps=STEPS, every=NEVER)
        self.assertEqual(second.end()["parameters_sha256"], self.quiet)
        worker.end(0)
        self.assertEqual([event["step"] for event in second.events("step")], list(range(steps + 1, STEPS + 1)))


class Ends(PodTest):
    def test_a_second_signal_to_the_leader_ends_at_once(self):
        pods = Pods(self.hosts(1), f"{self.folder}/pods")
        leader = self.lead(pods, "--hang-limit", "1000", steps=100000)
        leader.wait_for_step(5)
        stopped = leader.process_of_rank(0)
        subprocess.run(["kill", "-STOP", str(stopped)], check=True)  # so that the first signal alone cannot end it
        leader.signal(signal.SIGTERM)
        leader.wait_for_warning("stopping: ")  # the first signal has been handled
        leader.signal(signal.SIGTERM)
        leader.end(128 + signal.SIGTERM)

    def test_a_mistake_ends_all_pods_and_is_told_where_kubernetes_looks(self):
        pods = Pods(self.hosts(2), f"{self.folder}/pods")
        worker = self.work(pods, 1)
        leader = self.lead(pods, "batch_size=7")
        leader.end(78)
        worker.end(0)
        message = pods.termination_log(0).read_text(encoding="utf-8")
        self.assertRegex(message, "^lockstep: .*batch_size")
        self.assertIn(f"{message}\n", leader.output())
        self.assertFalse(pods.termination_log(1).exists())

    def test_a_host_that_is_missing_is_named(self):
        hosts = self.hosts(2)
        pods = Pods(hosts, f"{self.folder}/pods")
        leader = self.lead(pods, pod=["--preflight-limit", "1"])
        leader.end(1)
        message = pods.termination_log(0).read_text(encoding="utf-8")
        self.assertRegex(message, f"^lockstep: preflight: expected 2 of 2 hosts within 1 s, found 1; missing: "
                                  f"{hosts.names[1]} \\(ssh: connect to host {hosts.names[1]} port 2222: Connection "
                                  "refused\\). Do these pods run ")

    def test_a_worker_whose_leader_never_comes_gives_up(self):
        hosts = self.hosts(2)
        pods = Pods(hosts, f"{self.folder}/pods")
        worker = self.work(pods, 1, "--leader-limit", "2")
        worker.end(1)
        message = (f"lockstep: no leader: {hosts.names[0]} did not answer for 2 s, and no rank runs here; see why it does "
                   "not start (kubectl describe pod), or let workers wait longer: --leader-limit")
        self.assertIn(message + "\n", worker.output())
        self.assertEqual(pods.termination_log(1).read_text(encoding="utf-8"), message)

    def test_what_a_worker_alone_finds_does_not_end_the_job(self):
        pods = Pods(self.hosts(2), f"{self.folder}/pods")
        lock = ["--leader-lock", "/proc/none/lock"]
        self.work(pods, 1, *lock).end(79)
        self.assertRegex(pods.termination_log(1).read_text(encoding="utf-8"), "^lockstep: --leader-lock: .*/proc/none")
        self.lead(pods, pod=lock).end(73)

    def test_a_report_instead_of_the_job(self):
        hosts = self.hosts(2)
        pods = Pods(hosts, f"{self.folder}/pods")
        text = self.report(pods, 0)
        self.assertRegex(text, r"^2 ranks on 2 hosts\n\nrank ")
        self.assertRegex(text, r"\nall-reduce  all sums right; .*\nclocks      at most .*\n\nno problems found\n$")
        self.assertFalse(pods.termination_log(0).exists())
        self.report(pods, 1, "--min-bandwidth", "1000000")
        self.assertRegex(pods.termination_log(0).read_text(encoding="utf-8"),
                         "^lockstep: all-reduce: expected at least 1e\\+06 GB/s, found ")

    def test_a_report_before_the_job(self):
        """The job begins if it finds no problem; otherwise it does not, and the message says what is wrong."""
        hosts = self.hosts(2)
        pods = Pods(hosts, f"{self.folder}/pods")
        worker, leader = self.work(pods, 1), self.lead(pods, steps=5, pod=["--check-hosts=--exact required"])
        leader.end(0)
        worker.end(0)
        self.assertIn("no problems found\n", leader.output())
        self.work(pods, 1)
        leader = self.lead(pods, name="refused", pod=["--check-hosts=--min-bandwidth 1000000"])
        leader.end(1)
        self.assertRegex(pods.termination_log(0).read_text(encoding="utf-8"), "^lockstep: all-reduce: expected at least 1e\\+06 GB/s, found ")
        self.assertFalse(pathlib.Path(f"{self.folder}/refused/events.jsonl").exists())

    def report(self, pods, code, *words):
        """The leader prints the report instead of running a job; a worker ends with it, however it ends."""
        worker = self.work(pods, 1)
        done = subprocess.run([*pods.hosts.prefix(0), PROGRAM, *pods.words(0), "--report", "--", *words], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        worker.end(0)
        return done.stdout

    def test_a_signal_before_the_start_ends_with_75(self):
        pods = Pods(self.hosts(2), f"{self.folder}/pods")
        leader = self.lead(pods)
        wait_until(lambda: (pods.folder / "state-0" / "ssh/ssh_config").exists(), "the pod to settle in")
        leader.signal(signal.SIGTERM)
        leader.end(75)

    def test_a_pod_that_is_not_in_the_list(self):
        hosts = self.hosts(2)
        pods = Pods(hosts, f"{self.folder}/pods", count=1)
        worker = self.work(pods, 1)
        worker.end(78)
        message = pods.termination_log(1).read_text(encoding="utf-8")
        self.assertEqual(message, f"lockstep: {pods.folder}/hosts: expected a line for this host, '{hosts.names[1]}', "
                                  f"found {hosts.names[0]}:1; the list must name every pod of the job, the leader first")


class UnfitNodes(PodTest):
    WHY = "--leader-lock: /proc/none: cannot create the folder: No such file or directory; it must be on a volume that all pods may write to, and whose locks hold among nodes"

    def setUp(self):
        super().setUp()
        self.api = self.enterContext(HttpsStub(f"{self.folder}/account", once=True))
        self.pod = pathlib.Path(self.folder)
        make_key(self.pod / "key")
        (self.pod / "hosts").write_text("lead slots=1\nwork slots=1\n", encoding="utf-8")
        (self.pod / "unfit-node.json").write_text(json.dumps([
            {"path": "/events", "object": {"message": "$(MESSAGE)", "pod": "$(LOCKSTEP_POD)"}},
            {"path": "/pods", "object": {"name": "run-$(NODE_HASH)", "node": "$(LOCKSTEP_NODE)", "job": "$(LOCKSTEP_JOB)/$(LOCKSTEP_JOB_UID)"}},
        ]), encoding="utf-8")

    def end(self, name, port=None):
        """The pod whose run directory cannot be used; returns its code and what it prints."""
        words = ["pod", "--name", name, "--hostfile", self.pod / "hosts", "--key", self.pod / "key", "--state", self.pod / "state", "--port", "22722",
                 "--leader-lock", "/proc/none/lock", "--unfit-node", self.pod / "unfit-node.json", "--service-account", self.api.folder]
        variables = {"LOCKSTEP_NODE": "node-7", "LOCKSTEP_POD": "run-1", "LOCKSTEP_JOB": "run", "LOCKSTEP_JOB_UID": "12",
                     "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port or self.api.port)}
        done = subprocess.run([PROGRAM, *words], env={**os.environ, **variables}, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def test_a_worker_names_and_marks_its_node(self):
        self.assertEqual(self.end("work"), (79, f"lockstep: node node-7: {self.WHY}\n"))
        made = [("/events", {"message": f"node node-7: {self.WHY}", "pod": "run-1"}),
                ("/pods", {"name": "run-c346d387", "node": "node-7", "job": "run/12"})]
        self.assertEqual(self.api.taken, made)
        self.assertEqual(self.end("work"), (79, f"lockstep: node node-7: {self.WHY}\n"), "what exists is left alone")

    def test_the_mistake_of_a_leader_is_the_jobs(self):
        self.assertEqual(self.end("lead"), (73, f"lockstep: {self.WHY}\n"))
        self.assertEqual(self.api.taken, [])

    def test_an_api_that_is_not_there_or_refuses(self):
        warning = "warning: cannot tell Kubernetes that node node-7 is unfit, so this pod's replacement may be scheduled there again: "
        (self.api.folder / "token").write_text("another", encoding="utf-8")
        code, said = self.end("work")
        self.assertEqual((code, said.splitlines()[0]), (79, f"{warning}https://127.0.0.1:{self.api.port}/events: 403: "))
        code, said = self.end("work", port=1)
        self.assertEqual(code, 79)
        self.assertRegex(said, f"^{warning}https://127.0.0.1:1/events: .*[Cc]onnect")


class FirstProcess(PodTest):
    """A worker as process 1 of its own namespaces."""

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.folder)
        make_key(folder / "key")
        (folder / "hosts").write_text("lead slots=1\nwork slots=1\n", encoding="utf-8")
        pod = f"{PROGRAM} pod --hostfile {folder}/hosts --key {folder}/key --state {folder}/state"
        script = f"hostname work; ip link set lo up; exec {pod}"
        self.worker = Worker(["unshare", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                              script], folder / "log")
        self.addCleanup(self.worker.abandon)
        self.inside = [*enter(self.worker.init())]
        wait_until(lambda: self.run_inside(PROGRAM, "pod", "--probe").returncode == 0, "sshd to listen")

    def run_inside(self, *words):
        return subprocess.run([*self.inside, *words], capture_output=True, text=True, check=False)

    def processes(self):
        """(state, parent, name) of all processes in the pod."""
        rows = self.run_inside("sh", "-c", "cat /proc/[0-9]*/stat").stdout.splitlines()
        return [(row.rsplit(")", 1)[1].split()[0], int(row.rsplit(")", 1)[1].split()[1]),
                 row[row.index("(") + 1:row.rindex(")")]) for row in rows]

    def test_orphans_are_reaped(self):
        self.run_inside("sh", "-c", "exec >/dev/null 2>&1; sleep 1000 & sleep 1000 & exit 0")
        wait_until(lambda: len([p for p in self.processes() if p[2] == "sleep" and p[1] == 1]) == 2, "the two orphans")
        self.run_inside("sh", "-c", r"kill $(cat /proc/[0-9]*/stat | sed -n 's/^\([0-9]*\) (sleep).*/\1/p' | head -n 1)")
        wait_until(lambda: len([p for p in self.processes() if p[2] == "sleep"]) == 1, "the one to be reaped")
        self.assertEqual([p for p in self.processes() if p[:2] == ("Z", 1)], [])
        self.worker.signal(signal.SIGTERM)
        self.worker.end(75)

    def test_a_lost_sshd_is_an_error(self):
        self.run_inside("sh", "-c", "kill -9 $(cat /proc/[0-9]*/stat | sed -n 's/^\\([0-9]*\\) (sshd).*/\\1/p')")
        self.worker.end(1)
        self.assertIn("lockstep: sshd ended with 137; see its output above", self.worker.output())

    def test_the_end_of_the_job_ends_it(self):
        environment = f"LOCKSTEP_POD_STATE={self.folder}/state"
        self.assertEqual(self.run_inside("env", environment, PROGRAM, "pod", "--end", "0").returncode, 0)
        self.worker.end(0)

    def test_a_host_that_is_left_out_ends_to_be_replaced(self):
        environment = f"LOCKSTEP_POD_STATE={self.folder}/state"
        told = subprocess.run([*self.inside, "env", environment, PROGRAM, "pod", "--end", "79"], input="another processor", text=True, check=False)
        self.assertEqual(told.returncode, 0)
        self.worker.end(79)
        self.assertIn("lockstep: another processor\n", self.worker.output())


if __name__ == "__main__":
    if missing():
        print(f"pods cannot be emulated here: {missing()}")
        sys.exit(77)
    if OPEN_MPI >= 5:
        print("these expect Open MPI 4: on emulated hosts Open MPI 5's daemons now and then lose each other at the start")
        sys.exit(77)
    unittest.main()
