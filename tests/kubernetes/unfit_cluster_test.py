#!/usr/bin/env python3
"""Nodes that are not perfect, on a real Kubernetes: one with another processor (a stand-in), one without the shared mount, one
that comes late. The run goes on without them, to the same bits; with cluster.avoidUnfitNodes the pod of an unfit node is
replaced on another one, though the scheduler prefers the first."""
import json
import pathlib
import re
import unittest

from cluster import Run, wait_until
from on_a_cluster import OnACluster

MANY = 6000
ODD = "node-1"  # the one that is unfit
GROUPS = ["groups[0].name=near", "groups[0].replicas=1", "groups[0].nodeSelector.kubernetes\\.io/hostname=node-0",
          "groups[1].name=far", "groups[1].replicas=1"]
PREFERRED = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 100, "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [ODD]}]}}]}}
# Another processor for oneDNN, and for all that ssh starts there.
SHIM = f'[ "$LOCKSTEP_NODE" != {ODD} ] || export ONEDNN_MAX_CPU_ISA=SSE41; exec lockstep "$@"'
OTHER_PROCESSOR = {"spec": {"containers": [{"name": "lockstep", "command": ["sh", "-c", SHIM, "lockstep"]}]}}


class RunOnShares(Run):
    """Each node has a share of its own, so that one lacks what the leader's has."""

    def __init__(self, cluster, *words, **options):
        for node in ("node-0", ODD):
            share = cluster.runs / node
            share.mkdir(exist_ok=True)
            share.chmod(0o777)
        super().__init__(cluster, *words, **options)
        self.directory = cluster.runs / "node-0" / self.name


class UnfitNodes(OnACluster):
    def install_far(self, kind=Run, *, values=(), **files):
        """A run whose second pod starts on the unfit node. `files`: values by name of a file."""
        path = pathlib.Path(self.cluster.state) / f"{self.id()}.json"
        path.write_text(json.dumps({**files, "affinity": PREFERRED}), encoding="utf-8")
        kind = type("WithFile", (kind,), {"files": [path]})
        return self.install(kind, steps=MANY, values=[*GROUPS, *values], group="near")

    def far_pods(self, run):
        """The pods of the second group, in order of their time: the Job keeps those that have ended as unfit."""
        pods = [pod for pod in run.pods() if pod["metadata"]["labels"].get("lockstep/group") == "far"]
        return sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def far_job(self, run):
        return self.cluster.get("job", run.job_name.replace("-near-", "-far-"))

    def unfit(self, run):
        """How the pods of the second group have ended: (node, message)."""
        ends = [(pod["spec"]["nodeName"], pod["status"]["containerStatuses"][0]["state"].get("terminated")) for pod in self.far_pods(run)
                if pod["status"].get("containerStatuses")]
        return [(node, end["message"]) for node, end in ends if end and end["exitCode"] == 79]

    def check_replaced_elsewhere(self, run, why):
        wait_until(lambda: run.ranks()[-1:] == [2] and run.events("step") or run.done(), "both pods to train")
        pods = self.far_pods(run)
        self.assertEqual(pods[-1]["spec"]["nodeName"], "node-0", run.logs())
        self.assertIn(2, run.ranks()[1:], "too few steps for this machine")
        self.assertRegex(self.cluster.kubectl("get", "events", "--field-selector=reason=UnfitNode", "-o",
                                              "jsonpath={.items[*].message}"), f"node {ODD}: .*{why}")
        (mark,) = self.cluster.get("pods", "-l", f"app.kubernetes.io/instance={run.name},app.kubernetes.io/component=unfit-node")["items"]
        self.assertEqual(mark["spec"]["nodeName"], ODD)
        self.check_bits(run)
        self.assertEqual(self.far_job(run)["status"].get("failed", 0), 0)
        run.remove()
        self.cluster.kubectl("wait", "--for=delete", "--timeout=120s", f"pod/{mark['metadata']['name']}")

    def check_another_processor(self):
        run = self.install_far(values=["cluster.avoidUnfitNodes=true"], cluster={"podPatch": OTHER_PROCESSOR})
        self.check_replaced_elsewhere(run, "its fingerprint differs")


class Unfit(UnfitNodes):
    def test_a_node_with_another_processor(self):
        self.check_another_processor()

    def test_a_node_without_the_mount(self):
        share = {"volumes": [{"name": "shares", "hostPath": {"path": str(self.cluster.runs)}}],
                 "volumeMounts": [{"name": "shares", "mountPath": "/runs/default", "subPathExpr": "$(LOCKSTEP_NODE)"}]}
        run = self.install_far(RunOnShares, values=["cluster.avoidUnfitNodes=true"], cluster=share)
        self.check_replaced_elsewhere(run, "run directory")

    def test_no_right_to_mark_nodes(self):
        """The replacement meets the same node, and the Job counts neither."""
        run = self.install_far(cluster={"podPatch": OTHER_PROCESSOR})
        wait_until(lambda: len(self.unfit(run)) >= 2 or run.done(), "two pods to end as unfit")
        found = self.unfit(run)
        self.assertGreaterEqual(len(found), 2, "too few steps for this machine")
        for node, message in found:
            self.assertEqual(node, ODD)
            self.assertRegex(message, f"^lockstep: node {ODD}: ")
        self.assertEqual(self.far_job(run)["status"].get("failed", 0), 0)
        self.check_bits(run)

    def test_a_node_that_comes_late(self):
        """Later than a pod that runs may stay silent: no pod fails meanwhile."""
        self.cluster.kubectl("cordon", ODD)
        self.addCleanup(self.cluster.kubectl, "uncordon", ODD)
        run = self.install(steps=300, values=["cluster.replicas=2", "cluster.spread=required", "cluster.preflightSeconds=5"])
        waits = r"lockstep pod: after [1-9]\d+ s still waiting for .*; without a node, as far as DNS knows: 1\n"
        wait_until(lambda: re.search(waits, run.logs()), "the leader to wait for twice the limit")
        self.cluster.kubectl("uncordon", ODD)
        self.check_bits(run)
        self.assertEqual((run.ranks(), run.job()["status"].get("failed", 0)), ([2], 0))


if __name__ == "__main__":
    unittest.main()
