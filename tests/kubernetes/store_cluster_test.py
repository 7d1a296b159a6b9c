#!/usr/bin/env python3
"""Data and copies of checkpoints in an object store beside a real Kubernetes: versitygw, whose keys the pods have from a
Secret, and which a NetworkPolicy lets them reach. A run whose disk is gone goes on from the copies, to the same bits."""
import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from cluster import GATEWAY, PROGRAM, Run, wait_until
from kube_tools import CHART, ROOT
from network_policies import NetworkPolicies, missing
from on_a_cluster import FEW, OnACluster

sys.path[:0] = [str(ROOT / "tests/store"), str(ROOT / "tests/data")]
import make_data  # noqa: E402  pylint: disable=wrong-import-position
from real_server import VersityGateway  # noqa: E402  pylint: disable=wrong-import-position

VALUES = CHART / "ci/object-store-values.yaml"


class StoreRun(Run):
    """ci/object-store-values.yaml, with `rule`, a file of values, that lets the pods out to this store."""
    data = ()

    def __init__(self, cluster, name, steps, rule, **options):
        self.files = (VALUES, rule)
        super().__init__(cluster, name, steps, job=["checkpoint.copy_to=s3://data/runs"], **options)


class DisklessRun(StoreRun):
    """One pod of two ranks, whose disk goes with it. Events are those of its log."""

    def events(self, name=None):
        logs = sorted(self.cluster.state.glob(f"node-*/podlogs/{self.namespace}_{self.job_name}-0-*/lockstep/0.log"),
                      key=lambda path: path.stat().st_mtime)
        lines = [line.split(" ", 3)[3] for line in logs[-1].read_text().splitlines() if " F {" in line] if logs else []
        events = [json.loads(line) for line in lines]
        return [event for event in events if name in (None, event["event"])]


class Store(OnACluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not missing():
            cls.enterClassContext(NetworkPolicies(cls.cluster))
        cls.server = VersityGateway(address=GATEWAY)
        cls.addClassCleanup(cls.server.stop)
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        make_data.folder(cls.folder / "pets", 256)
        cls.server.put_tree(cls.folder / "pets", "pets")
        rule = {"to": [{"ipBlock": {"cidr": f"{GATEWAY}/32"}}], "ports": [{"protocol": "TCP", "port": cls.server.port}]}
        (cls.folder / "rule.yaml").write_text(json.dumps({"security": {"ssh": {"existingSecret": ""}, "networkPolicy": {"egress": [rule]}}}))
        pairs = [f"--from-literal={name}={value}" for name, value in cls.server.environment.items()]
        cls.cluster.kubectl("create", "secret", "generic", "object-store", *pairs)
        cls.addClassCleanup(cls.cluster.kubectl, "delete", "secret", "object-store")

    @functools.cache
    def quiet_hash(self, steps):
        """The hash of the same job on this machine, with the data on its disk."""
        done = subprocess.run([PROGRAM, "train", VALUES, f"data.train.images={self.folder}/pets", f"steps={steps}", "checkpoint=never",
                               "--ranks", "1", "--log", "json"], capture_output=True, text=True, check=True, cwd=self.folder)
        return json.loads(done.stdout.splitlines()[-1])["parameters_sha256"]

    def install_at(self, kind, steps, *values):
        return self.install(kind, steps=steps, rule=self.folder / "rule.yaml", values=values)

    def test_a_pod_whose_disk_goes_with_it(self):
        """It is killed, and the next is deleted as a drain does it."""
        run = self.install_at(DisklessRun, 2000, "persistence.existingClaim=", "cluster.log=json")
        wait_until(lambda: [event for event in run.events("copy") if event["step"] >= 100], "a copy")
        killed = run.events("step")[-1]
        self.cluster.kubectl("delete", "pod", run.pod(0), "--force", "--grace-period=0")

        def fetched(last):
            found = [event for event in run.events("copy") if event["fetched"]]
            return found and found[0]["step"] > last and found[0]["step"]
        first = wait_until(lambda: fetched(0), "the copy in the next pod")
        self.assertGreaterEqual(first, 100)
        run.wait_for_step(first + 30)
        print(f"from the last step of the pod that was killed to the first of the next: {run.events('step')[0]['time'] - killed['time']:.0f} s")
        self.cluster.kubectl("delete", "pod", run.pod(0))  # returns when it has ended
        second = wait_until(lambda: fetched(first), "the copy of its last step")
        self.assertGreaterEqual(second, first + 30)
        self.assertEqual(wait_until(lambda: run.events("step"), "a step")[0]["step"], second + 1)
        self.assertEqual(run.end()["parameters_sha256"], self.quiet_hash(run.steps))
        self.assertEqual(run.job()["status"].get("failed", 0), 0)

    def test_two_pods_whose_volume_is_new(self):
        words = ("cluster.replicas=2", "cluster.slots=1")
        run = self.install_at(StoreRun, FEW, *words)
        self.assertEqual(run.end()["parameters_sha256"], self.quiet_hash(FEW))
        run.remove()
        shutil.rmtree(run.directory)
        again = self.install_at(StoreRun, 2 * FEW, *words)
        self.assertEqual(again.end()["parameters_sha256"], self.quiet_hash(2 * FEW))
        fetched = again.events("copy")[0]
        self.assertEqual((fetched["step"], fetched["fetched"]), (FEW, True))
        self.assertEqual(again.events("step")[0]["step"], FEW + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
