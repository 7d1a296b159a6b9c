#!/usr/bin/env python3
"""The image and the chart on a real Kubernetes: two nodes with kubelet, containerd and runc. Pods are deleted, a node
is drained, the Job is scaled or suspended, a job is wrong; in every case the bits are those of the run without Kubernetes.
controllers_cluster_test.py has those whose pods another controller makes."""
import json
import time
import unittest

from backoff_test import SAMPLE, forget
from cluster import PATIENCE, wait_until
from kube_tools import CHART
from on_a_cluster import FEW, TOLERATIONS, OnACluster

MANY = 6000  # if one has to do so several times


class Pods(OnACluster):
    def test_three_pods(self):
        run = self.install(steps=FEW, values=["cluster.replicas=3"])
        run.wait_for_step(1)
        self.assertEqual({node for _, node in run.nodes()}, {"node-0", "node-1"})
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.ranks(), [3])

    def test_a_deleted_worker(self):
        run = self.install(values=["cluster.replicas=3"])
        run.wait_for_step(50)
        self.cluster.kubectl("delete", "pod", run.pod(2), "--wait=false")
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.ranks()[:2], [3, 2])

    def test_a_pod_disrupted_three_times(self):
        """With k8s/samples/forget-disruptions.yaml, whose pod would run what is run here, each costs what the first does."""
        self.cluster.kubectl("apply", "-f", SAMPLE)
        self.addCleanup(self.cluster.kubectl, "delete", "-f", SAMPLE)
        run = self.install(steps=MANY, values=["cluster.replicas=3"])
        waits = []
        run.wait_for_step(20, ranks=3)
        for _ in range(3):
            forget(self.cluster.kubectl, "default")
            pod, launches = run.pod(2), len(run.ranks())
            began = time.monotonic()
            self.cluster.kubectl("delete", "pod", pod, "--wait=false")
            wait_until(lambda launches=launches: 3 in run.ranks()[launches:] or run.done(), "three ranks again")
            self.assertIn(3, run.ranks()[launches:], f"too few steps for this machine: {waits}")
            waits.append(time.monotonic() - began)
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.job()["status"].get("failed", 0), 0)
        print("seconds without the pod, by disruption:", *(f"{seconds:.0f}" for seconds in waits))
        self.assertLess(max(waits), 40, f"the third one would be 40 s otherwise: {waits}")

    def test_a_deleted_leader(self):
        run = self.install(values=["cluster.replicas=2"])
        run.wait_for_step(50)
        self.cluster.kubectl("delete", "pod", run.pod(0), "--wait=false")
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.job()["status"].get("failed", 0), 0)

    def test_the_lost_node_of_the_leader(self):
        """Another pod leads."""
        self.check_a_lost_node(0)

    def test_the_lost_node_of_a_worker(self):
        """The leader goes on without it."""
        self.check_a_lost_node(1)

    def check_a_lost_node(self, index):
        """The power of a pod's node fails. Nobody acts; for Kubernetes the pod stays as it is, without an end."""
        run = self.install(values=["cluster.replicas=2", "cluster.spread=required", *TOLERATIONS])
        run.wait_for_step(50)
        node = run.node(index)
        self.cluster.lose(node)
        self.addCleanup(lambda: run.condition() or self.cluster.revive(node))
        self.cluster.kubectl("wait", "--for=condition=Ready=Unknown", f"--timeout={PATIENCE}s", "node", node)
        not_ready = time.monotonic()
        run.wait_for_step(1, ranks=1)
        self.assertLess(time.monotonic() - not_ready, 60)
        # The Job is complete only when the lost pod has ended, too.
        self.cluster.kubectl("wait", "--for=condition=SuccessCriteriaMet", f"--timeout={PATIENCE}s", "job", run.job_name)
        lost = self.cluster.get("pod", run.pod(index))
        self.assertIn("deletionTimestamp", lost["metadata"])
        self.assertEqual(lost["status"]["phase"], "Running", "Kubernetes knows no better")
        self.assertIsNone(run.condition())
        self.cluster.revive(node)
        self.check_bits(run)

    def test_a_drained_node(self):
        run = self.install(values=["cluster.replicas=3"])
        run.wait_for_step(50)
        self.addCleanup(self.cluster.kubectl, "uncordon", "node-1")
        self.cluster.kubectl("drain", "node-1", "--force", "--ignore-daemonsets", "--delete-emptydir-data",
                             f"--timeout={PATIENCE}s")
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.job()["status"].get("failed", 0), 0)

    def test_scaling(self):
        run = self.install(values=["cluster.replicas=2", "cluster.minReplicas=1", "cluster.maxReplicas=3"])
        run.wait_for_step(20, ranks=2)
        self.scale(run, 3)
        run.wait_for_step(21, ranks=3)
        self.scale(run, 1)
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual((run.ranks()[0], 3 in run.ranks(), run.ranks()[-1]), (2, True, 1))

    def scale(self, run, pods):
        patch = {"spec": {"parallelism": pods, "completions": pods}}
        self.cluster.kubectl("patch", "job", run.job_name, "--patch", json.dumps(patch))

    def test_suspended_for_a_while(self):
        run = self.install(values=["cluster.replicas=2"])
        run.wait_for_step(50)
        began = time.monotonic()
        self.suspend(run, "true")
        wait_until(lambda: not run.pods(), "its pods to be gone")
        gone, held = time.monotonic(), run.events("step")[-1]["step"]
        self.assertEqual(run.events("checkpoint")[-1]["step"], held)
        self.assertLess(held, run.steps, "too few steps for this machine")
        self.suspend(run, "false")
        run.wait_for_step(held + 1)
        print(f"{run.name}: no pods after {gone - began:.0f} s, on from step {held} after {time.monotonic() - gone:.0f} s")
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual((run.ranks()[0], run.ranks()[-1]), (2, 2))
        self.assertEqual(run.job()["status"].get("failed", 0), 0)

    def suspend(self, run, value):
        self.cluster.run(self.cluster.helm, "upgrade", run.name, CHART, "--reuse-values", f"--set=cluster.suspend={value}")

    def test_groups(self):
        """Two Jobs, one run: the leader belongs to the first, and the other ends when the first does."""
        node = "nodeSelector.kubernetes\\.io/hostname"
        run = self.install(steps=FEW, values=["groups[0].name=near", "groups[0].replicas=1", f"groups[0].{node}=node-0",
                                              "groups[1].name=far", "groups[1].replicas=2", f"groups[1].{node}=node-1"], group="near")
        run.wait_for_step(1)
        self.assertEqual(run.nodes(), [("far", "node-1"), ("far", "node-1"), ("near", "node-0")])
        self.check_bits(run)
        self.assertEqual(run.ranks(), [3])
        report = self.helm_test(run, 0)
        self.assertRegex(report, rf"(?m)^ +0  {run.name}-test .*\n +1  {run.name}-test-1 ")
        far = run.job_name.replace("-near-", "-far-")
        self.cluster.kubectl("wait", "--for=condition=Complete", f"--timeout={PATIENCE}s", "job", far)

    def test_a_wrong_job(self):
        run = self.install(values=["cluster.replicas=2"], job=["data.train={images: /nowhere}"])
        run.end("Failed")
        leader = run.pod(0)
        status = self.cluster.get("pod", leader)["status"]
        ended = status["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual(ended["exitCode"], 78)
        self.assertRegex(ended["message"], "^lockstep: .*/nowhere")
        self.assertIn(ended["message"], self.cluster.kubectl("logs", leader))
        self.assertEqual(run.ranks(), [])

    def test_what_pods_wait_for(self):
        for name, value, why in (("no-image", "image.tag=nowhere", 'Failed to pull image "localhost/lockstep:nowhere"'),
                                 ("no-claim", "persistence.existingClaim=nowhere", 'persistentvolumeclaim "nowhere" not found')):
            with self.subTest(name):
                self.check_what_it_waits_for(self.install(name=name, values=[value]), why)

    def test_a_report_before_the_job(self):
        run = self.install(steps=FEW, values=["cluster.replicas=2", "cluster.spread=required", "cluster.checkHosts=true"])
        run.wait_for_step(1)
        nodes = [run.node(index) for index in (0, 1)]
        self.check_bits(run)
        report = self.cluster.kubectl("logs", run.pod(0))
        for index, node in enumerate(nodes):
            self.assertRegex(report, rf"(?m)^ +{index}  {run.job_name}-{index}\S* on {node} ")
        self.assertIn("\nno problems found\n", report)

    def test_a_report_that_finds_something(self):
        began = time.monotonic()
        run = self.install(steps=FEW, values=["cluster.replicas=2", "cluster.checkHosts=true", "cluster.backoffLimit=0",
                                              "network.minBandwidth=100000"])
        run.end("Failed")
        print(f"{run.name}: failed after {time.monotonic() - began:.0f} s")
        self.assertRegex(run.logs(), r"(?m) lockstep: all-reduce: expected at least 1e\+05 GB/s, found ")
        self.assertEqual(run.events("step"), [])

    def test_helm_test(self):
        """Reports on the hosts in the log of its first pod, fails if something is wrong, and leaves the job alone."""
        run = self.install(values=["cluster.replicas=2"])
        report = self.helm_test(run, 0)
        self.assertRegex(report, rf"(?m)^2 ranks on 2 hosts\n\nrank  host +computes on\n +0  {run.name}-test .*\n +1  {run.name}-test-1 ")
        self.assertRegex(report, r"(?m)^all-reduce  all sums right; .*\nclocks      at most .*\n\nno problems found$")
        self.cluster.run(self.cluster.helm, "upgrade", run.name, CHART, "--reuse-values", "--set=network.minBandwidth=100000")
        report = self.helm_test(run, 1)
        self.assertNotIn("no problems found", report)
        self.assertRegex(report, r"(?m)^lockstep: all-reduce: expected at least 1e\+05 GB/s, found ")
        self.check_bits(run)
        self.assertEqual(run.ranks(), [2])


if __name__ == "__main__":
    unittest.main()
