#!/usr/bin/env python3
"""A sweep as one release of the chart on a real Kubernetes: its pods wait in a queue of the real Kueue, are killed and
preempted, and the trials have the bits of the same sweep on one machine."""
import csv
import json
import pathlib
import subprocess
import tempfile
import unittest

import kueue
from cluster import DATA, PROGRAM, Run, wait_until
from kube_tools import CHART
from on_a_cluster import FEW, OnACluster

TRIALS = 6


class SweepRun(Run):
    """ci/sweep-values.yaml. The trials are of `steps` steps, the last of which is evaluated."""
    options = []
    data = [word for word in DATA if not word.startswith(("learning_rate", "evaluate"))]
    files = (CHART / "ci/sweep-values.yaml",)

    def records(self, kind):
        path = self.directory / "journal.jsonl"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return [record for record in map(json.loads, lines) if record["record"] == kind]

    def step(self, trial):
        """The newest step of a trial; 0 before."""
        path = self.directory / f"trials/{trial:04}/events.jsonl"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        return max((event["step"] for event in map(json.loads, lines) if event["event"] == "step"), default=0)

    def running(self, step):
        """Unfinished trials that have come to this step."""
        finished = {record["trial"] for record in self.records("result")}
        return {trial for trial in range(TRIALS) if trial not in finished and self.step(trial) >= step}

    def quiet(self, folder):
        """The directory of the same sweep on this machine, a trial after the other."""
        config = self.cluster.get("configmap", "-l", self.selector)["items"]
        (text,) = (item["data"]["job.yaml"] for item in config if "job.yaml" in item["data"] and "sweep:" in item["data"]["job.yaml"])
        file, directory = pathlib.Path(folder) / "sweep.yaml", pathlib.Path(folder) / "quiet"
        file.write_text(text, encoding="utf-8")
        words = [word for word in self.overrides if not word.startswith("checkpoint")]
        subprocess.run([PROGRAM, "sweep", file, "--ranks", "1", "--directory", directory, *words], check=True, capture_output=True)
        return directory


def hashes(directory):
    with open(directory / "trials.csv", newline="", encoding="utf-8") as file:
        return {int(row["trial"]): row["parameters_sha256"] for row in csv.DictReader(file)}


class Sweeps(OnACluster):
    def setUp(self):
        if kueue.missing():
            self.skipTest(kueue.missing())
        self.queue = self.enterContext(kueue.Kueue(self.cluster.call_kubectl, self.cluster.environment["KUBECONFIG"]))
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder) / "key"
            subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f", key], check=True)
            self.cluster.kubectl("create", "secret", "generic", "lockstep-ssh", f"--from-file=key={key}")

    def sweep(self, steps, *values):
        return self.install(SweepRun, steps=steps, values=[
            f"sweep.budget={TRIALS}", "sweep.method=random", "queue.minReplicas=0", *values], job=[f"evaluate={{every: {steps} steps}}"])

    def test_a_sweep_in_a_queue(self):
        """It waits for quota, loses a worker and its leader, is preempted by a more urgent run, and goes on."""
        run = self.sweep(1000)
        wait_until(lambda: run.job()["spec"].get("suspend") and not run.pods(), "Kueue to hold the Job")
        self.queue.queue("default", cpu="1200m", memory="1200Mi")
        self.queue.priority("urgent", 1000)
        self.queue.local_queue("default", "default")
        wait_until(lambda: run.running(30) >= {0, 1, 2}, "a trial in each pod")
        self.assertEqual({node for _, node in run.nodes()}, {"node-0", "node-1"})
        self.cluster.kubectl("delete", "pod", run.pod(2), "--force", "--grace-period=0")
        wait_until(lambda: run.records("result"), "the end of a trial")

        urgent = self.install(name="urgent", steps=FEW, values=["cluster.replicas=3", "queue.name=training", "queue.priorityClass=urgent"])
        wait_until(lambda: run.job()["spec"]["suspend"], "the preemption")
        self.check_bits(urgent)
        finished = {record["trial"] for record in run.records("result")}
        self.assertIsNone(run.condition())
        self.assertLess(len(finished), TRIALS)
        wait_until(lambda: run.job()["spec"].get("suspend") is False and run.running(1) - finished, "trials after it")
        self.cluster.kubectl("delete", "pod", run.pod(0), "--force", "--grace-period=0")

        found = wait_until(run.condition, "the Job's end")
        self.assertEqual(found, "Complete", run.logs())
        self.assertEqual(run.records("failure"), [])
        self.assertEqual(sorted(record["trial"] for record in run.records("result")), list(range(TRIALS)))  # none was repeated
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(hashes(run.directory), hashes(run.quiet(folder)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
