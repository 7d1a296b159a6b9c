#!/usr/bin/env python3
"""Releases in gangs of real schedulers, with the coscheduling plugin of the scheduler-plugins and Volcano's: all pods of a run get
nodes, or none does. Each scheduler has its own cluster, with a node of kwok's, so pods run nothing."""
import json
import shutil
import sys
import unittest

from control_plane import ControlPlane, until
from kube_tools import programs
from release import Release


class Gangs:
    """What holds with either. `scheduler`: the name that pods ask for; start() starts it in `cluster`."""
    gang = scheduler = cluster = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane())
        cls.cluster.define()
        cls.cluster.node("cpu-0", {}, cpu="3")
        cls.start()

    def install(self, name, *values):
        release = Release(self.cluster, name, *values)
        release.helm("install")
        return release

    def unscheduled(self, release):
        """Waits until a scheduler has found no room for a pod; returns how many pods have a node all the same."""
        def said():
            conditions = [c for pod in release.get("pods") for c in pod["status"].get("conditions", [])]
            return any((c["type"], c.get("reason")) == ("PodScheduled", "Unschedulable") for c in conditions)
        until(said, lambda: release.describe() + self.cluster.log(self.gang)())
        return sum("nodeName" in pod["spec"] for pod in release.get("pods"))

    def test_room_for_three_pods_and_two_runs_of_two(self):
        gang = f"cluster.gang={self.gang}"
        first = self.install("first", gang)
        pods = first.running(2)
        self.assertEqual({pod["spec"]["schedulerName"] for pod in pods}, {self.scheduler})

        second = self.install("second", gang, "groups[0].name=a", "groups[0].replicas=1", "groups[1].name=b", "groups[1].replicas=1")
        self.assertEqual(self.unscheduled(second), 0)
        plain = self.install("plain")
        self.assertEqual(self.unscheduled(plain), 1, "which holds a node, and waits for the other pod")
        self.cluster.helm("uninstall", "run1", "-n", "plain", "--wait")
        self.assertEqual(self.unscheduled(second), 0)

        first.end_pod(pods[0], 0)
        second.running_in(a=1, b=1)


class Coscheduling(Gangs, unittest.TestCase):
    gang, scheduler = "coscheduling", "scheduler-plugins-scheduler"

    @classmethod
    def start(cls):
        config = cls.cluster.folder / "scheduler-plugins.yaml"
        plugin = [{"name": "Coscheduling"}]
        config.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(cls.cluster.kubeconfig)}, "profiles": [{
                "schedulerName": cls.scheduler, "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
                "plugins": {"multiPoint": {"enabled": plugin}, "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]}}}]}))
        cls.cluster.start(cls.gang, programs("coscheduling") / "scheduler-plugins", f"--config={config}", "--secure-port=0")


class Volcano(Gangs, unittest.TestCase):
    gang = scheduler = "volcano"

    @classmethod
    def start(cls):
        cls.cluster.start(cls.gang, programs("volcano") / "volcano", f"--kubeconfig={cls.cluster.kubeconfig}", "--leader-elect=false",
                          "--cache-dumper=false")

    def test_a_queue_of_its_own(self):
        """Whose share has no room for two pods."""
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"},
                 "spec": {"weight": 1, "capability": {"cpu": "1"}}}
        self.cluster.apply(queue)
        release = self.install("queued", "cluster.gang=volcano", "cluster.gangQueue=research")
        self.assertEqual(self.unscheduled(release), 0)
        queue["spec"]["capability"]["cpu"] = "2"
        self.cluster.apply(queue)
        release.running(2)
        self.cluster.helm("uninstall", "run1", "-n", "queued", "--wait")


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("skipped: openssl is not installed (scripts/install-dependencies.sh --k8s)")
        sys.exit(77)
    unittest.main(verbosity=2)
