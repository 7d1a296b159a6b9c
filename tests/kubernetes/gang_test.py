#!/usr/bin/env python3
"""Releases in gangs of the real coscheduling plugin of the scheduler-plugins: all pods of a run get nodes, or none does. The node
is kwok's, so pods run nothing."""
import json
import shutil
import sys
import unittest

from control_plane import ControlPlane, until
from kube_tools import programs
from release import Release

SCHEDULER = "scheduler-plugins-scheduler"
cluster = None


def setUpModule():
    global cluster
    program = programs("coscheduling") / "scheduler-plugins"
    cluster = unittest.enterModuleContext(ControlPlane())
    cluster.define()
    cluster.node("cpu-0", {}, cpu="3")
    config = cluster.folder / "scheduler-plugins.yaml"
    plugin = [{"name": "Coscheduling"}]
    config.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig)}, "profiles": [{
            "schedulerName": SCHEDULER, "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
            "plugins": {"multiPoint": {"enabled": plugin}, "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]}}}]}))
    cluster.start("scheduler-plugins", program, f"--config={config}", "--secure-port=0")


class Gangs(unittest.TestCase):
    def install(self, name, *values):
        release = Release(cluster, name, *values)
        release.helm("install")
        return release

    def unscheduled(self, release):
        """Waits until a scheduler has found no room for a pod; returns how many pods have a node all the same."""
        def said():
            conditions = [c for pod in release.get("pods") for c in pod["status"].get("conditions", [])]
            return any((c["type"], c.get("reason")) == ("PodScheduled", "Unschedulable") for c in conditions)
        until(said, lambda: release.describe() + cluster.log("scheduler-plugins")())
        return sum("nodeName" in pod["spec"] for pod in release.get("pods"))

    def test_room_for_three_pods_and_two_runs_of_two(self):
        gang = "cluster.gang=coscheduling"
        first = self.install("first", gang)
        pods = first.running(2)
        self.assertEqual({pod["spec"]["schedulerName"] for pod in pods}, {SCHEDULER})

        second = self.install("second", gang, "groups[0].name=a", "groups[0].replicas=1", "groups[1].name=b", "groups[1].replicas=1")
        self.assertEqual(self.unscheduled(second), 0)
        plain = self.install("plain")
        self.assertEqual(self.unscheduled(plain), 1, "which holds a node, and waits for the other pod")
        cluster.helm("uninstall", "run1", "-n", "plain", "--wait")
        self.assertEqual(self.unscheduled(second), 0)

        first.end_pod(pods[0], 0)
        second.running_in(a=1, b=1)


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("skipped: openssl is not installed (scripts/install-dependencies.sh --k8s)")
        sys.exit(77)
    unittest.main(verbosity=2)
