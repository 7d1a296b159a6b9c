#!/usr/bin/env python3
"""The commands that the chart runs in its pods, on emulated hosts with real sshd and mpirun: for machines where no
kubelet can run. Taken from the rendered Job; only its folders are moved."""
import base64
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import yaml
from kube_tools import ROOT, template

sys.path.insert(0, str(ROOT / "tests/launch"))
from emulated_hosts import EmulatedHosts  # noqa: E402
from launches import OPEN_MPI, PATIENCE, PROGRAM, SMALL, quiet_hash, wait_until  # noqa: E402
from pods import missing  # noqa: E402

STEPS, FEW = 150, 10
SWEEP = {"metric": "loss", "budget": 6, "parameters": {
    "learning_rate": {"log_uniform": {"low": 0.001, "high": 0.1}}, "optimizer": {"choice": ["sgd", "adam"]}}}
TRIALS = [word for word in SMALL if not word.startswith("evaluate")] + [
    f"steps={STEPS}", "checkpoint={every: 20 steps}", f"evaluate={{every: {STEPS} steps}}"]


class RenderedPods:
    """The pods of a release with one group, or with test=True those of its `helm test`, each on its own host below
    `folder`."""

    def __init__(self, folder, *values, options=(), words=SMALL, test=False):
        self.folder = pathlib.Path(folder)
        words = json.dumps([*words, *options])
        text = template("--set=persistence.existingClaim=runs", *values, f"--set-json=cluster.launchOptions={words}").stdout
        objects = [item for item in yaml.safe_load_all(text) if item]
        (secret,) = (item for item in objects if item["kind"] == "Secret")
        one = {item["kind"]: item for item in objects if item["metadata"]["name"].endswith("-test") == test}
        self.pod = one["List"]["items"][0]["spec"] if test else one["Job"]["spec"]["template"]["spec"]
        self.container = self.pod["containers"][0]
        mounted = {name: text.encode() for name, text in one["ConfigMap"]["data"].items()}
        mounted["ssh/key"] = base64.b64decode(secret["data"]["key"])
        for name, content in mounted.items():
            path = self.folder / "etc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.hosts = EmulatedHosts(len(mounted["hosts"].splitlines()), names=[
            line.split()[0] for line in mounted["hosts"].decode().splitlines()])

    def moved(self, text, pod):
        """Where a path of the container is on this machine."""
        places = {"/etc/lockstep": "etc", "/run/lockstep": f"state-{pod}", "/dev/termination-log": f"message-{pod}", "/runs": "runs"}
        for path, place in places.items():
            text = text.replace(path, str(self.folder / place))
        return text

    def as_user(self):
        """A prefix that runs a command as the user whom the chart names in /etc/passwd; empty if it names none."""
        for mount in self.container["volumeMounts"]:
            if mount["mountPath"] == "/etc/passwd":
                self.folder.chmod(0o777)
                context = self.pod["securityContext"]
                script = (f"mount --bind {self.folder}/etc/{mount['subPath']} /etc/passwd && exec setpriv "
                          f"--reuid {context['runAsUser']} --regid {context['runAsGroup']} --clear-groups \"$@\"")
                return ["sh", "-c", script, "sh"]
        return []

    def start(self, pod):
        words = [self.moved(word, pod) for word in self.container["args"]]
        environment = {entry["name"]: self.moved(entry["value"], pod) for entry in self.container["env"] if "value" in entry}
        with open(self.folder / f"log-{pod}", "w", encoding="utf-8") as log:
            return subprocess.Popen([*self.hosts.prefix(pod), *self.as_user(), PROGRAM, *words], stdout=log, stderr=log,  # pylint: disable=consider-using-with
                                    stdin=subprocess.DEVNULL, env={**os.environ, **environment})

    def run(self):
        """Exit codes of all pods, the leader's first."""
        with self.hosts:
            pods = [self.start(pod) for pod in range(self.hosts.count)]
            try:
                return [pod.wait(PATIENCE) for pod in pods]
            finally:
                for pod in pods:
                    pod.kill()
                    pod.wait()

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8")


class Entrypoint(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def test_the_job_ends_with_the_bits_of_a_laptop(self):
        pods = RenderedPods(self.folder, "--set=cluster.replicas=3", options=[f"steps={STEPS}"])
        self.assertEqual(pods.run(), [0, 0, 0], pods.read("log-0"))
        events = [json.loads(line) for line in pods.read("runs/default/run1/events.jsonl").splitlines()]
        self.assertEqual([event["ranks"] for event in events if event["event"] == "launch"], [3])
        with tempfile.TemporaryDirectory() as quiet:
            self.assertEqual(events[-1]["parameters_sha256"], quiet_hash(quiet, STEPS))

    def test_a_sweep_goes_on_without_pods_that_are_killed(self):
        """A worker is drained, then the leader killed; neither comes back."""
        pods = RenderedPods(self.folder, f"--set-json=sweep={json.dumps(SWEEP)}", "--set=cluster.replicas=3", words=TRIALS)
        directory = pathlib.Path(self.folder) / "runs/default/run1"

        def journal(kind):
            path = directory / "journal.jsonl"
            lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
            return [record for record in map(json.loads, lines) if record["record"] == kind]

        def trains(trial):
            path = directory / f"trials/{trial:04}/events.jsonl"
            return path.exists() and path.read_text(encoding="utf-8").count('"step"') > 30
        with pods.hosts:
            running = [pods.start(pod) for pod in range(3)]
            try:
                wait_until(lambda: all(trains(trial) for trial in range(3)), "a trial in each pod")
                drained = int(pathlib.Path(f"/proc/{running[2].pid}/task/{running[2].pid}/children").read_text().split()[0])
                os.kill(drained, signal.SIGTERM)
                self.assertEqual(running[2].wait(PATIENCE), 75, pods.read("log-2"))
                wait_until(lambda: journal("result"), "the end of a trial")
                running[0].kill()
                running[0].wait()
                finished = {record["trial"] for record in journal("result")}
                self.assertEqual(running[1].wait(PATIENCE), 0, pods.read("log-1"))
            finally:
                for pod in running:
                    pod.kill()
                    pod.wait()
        self.assertFalse(journal("failure"))
        self.assertEqual(sorted(record["trial"] for record in journal("result")), list(range(6)))
        self.assertTrue(finished)
        self.assertIn("the best trial's job is", pods.read("log-1"))
        self.assertEqual(self.hashes(directory), self.hashes(self.quiet_sweep(pods)))

    def quiet_sweep(self, pods):
        """The directory of the same sweep on this machine alone."""
        directory = pathlib.Path(self.folder) / "quiet"
        subprocess.run([PROGRAM, "sweep", pods.folder / "etc/job.yaml", "--ranks", "1", "--directory", directory, *TRIALS],
                       check=True, capture_output=True)
        return directory

    @staticmethod
    def hashes(directory):
        with open(directory / "trials.csv", newline="", encoding="utf-8") as file:
            return [row["parameters_sha256"] for row in csv.DictReader(file)]

    def test_a_user_that_the_image_does_not_know_can_train(self):
        pods = RenderedPods(self.folder, "--set=security.podSecurityContext.runAsUser=1000650000",
                            "--set=security.podSecurityContext.runAsGroup=0", options=[f"steps={FEW}"])
        self.assertEqual(pods.run(), [0, 0], pods.read("log-0"))
        self.assertEqual((pathlib.Path(self.folder) / "runs/default/run1/events.jsonl").stat().st_uid, 1000650000)

    def test_users_that_sshd_cannot_have(self):
        """One without an entry, and one as CRI-O adds it for a user that the image does not know."""
        pods = RenderedPods(self.folder)
        pods.folder.chmod(0o777)
        added = pods.folder / "passwd"
        added.write_text("root:x:0:0:root:/root:/bin/sh\n1000650000:x:1000650000:0:1000650000 user:/run/lockstep:/sbin/nologin\n")
        user = ["setpriv", "--reuid", "1000650000", "--regid", "0", "--clear-groups"]
        with pods.hosts:
            for passwd, found in (("/etc/passwd", "none"), (added, "'1000650000' with /sbin/nologin")):
                with self.subTest(found):
                    mounted = ["sh", "-c", f'mount --bind {passwd} /etc/passwd && exec "$@"', "sh"]
                    done = subprocess.run([*pods.hosts.prefix(0), "unshare", "--mount", *mounted, *user, PROGRAM,
                                           *(pods.moved(word, 0) for word in pods.container["args"])],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual((done.returncode, done.stderr), (78, (
                        f"lockstep: expected a user with the id 1000650000 and a shell for sshd in /etc/passwd, found {found}; set the "
                        "chart's security.podSecurityContext.runAsUser to 1000650000, or to 1000, the image's user\n")))

    def test_helm_test_reports(self):
        pods = RenderedPods(self.folder, test=True)
        self.assertEqual(pods.run(), [0, 0], pods.read("log-0"))
        self.assertRegex(pods.read("log-0"), r"(?m)^2 ranks on 2 hosts\n\nrank  host +computes on\n +0  run1-test .*\n +1  run1-test-1 ")

    def test_a_wrong_job_ends_all_pods_with_its_message(self):
        pods = RenderedPods(self.folder, options=["data.train={images: /nowhere}"])
        self.assertEqual(pods.run(), [78, 78], pods.read("log-0"))
        self.assertRegex(pods.read("message-0"), "^lockstep: .*/nowhere")
        self.assertRegex(pods.read("log-1"), "lockstep pod: the job has ended with 78: see the log of its leader, run1-")


if __name__ == "__main__":
    if missing():
        print(f"skipped: pods cannot be emulated here: {missing()}")
        sys.exit(77)
    if OPEN_MPI >= 5:
        print("skipped: on emulated hosts Open MPI 5's daemons now and then lose each other at the start")
        sys.exit(77)
    unittest.main(verbosity=2)
