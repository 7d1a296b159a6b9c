#!/usr/bin/env python3
"""GPUs by claims on a real Kubernetes with a driver of dynamic resource allocation: each pod has devices of its node to itself,
a pod in the place of another gets those that the other had, and they are free when the run has ended. The GPUs themselves are
stand-ins (tests/cuda), whose bits are the CPU's."""
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from cluster import Run, wait_until
from device_driver import DeviceDriver
from kube_tools import ROOT
from on_a_cluster import OnACluster

STAND_INS = {"LD_LIBRARY_PATH": "/runs/stand-ins", "LOCKSTEP_CUDA_MODULE": "/runs/stand-ins/libstand_in_this_build.so",
             "STAND_IN_GPUS": "2", "STAND_IN_SAME": "1"}


class ClaimingRun(Run):
    """Each pod has two ranks, and a claim by a template."""

    def __init__(self, cluster, name, steps, template, folder, **options):  # pylint: disable=too-many-arguments
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps({"cluster": {
            "replicas": 2, "slots": 2, "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": template}],
            "env": [{"name": variable, "value": value} for variable, value in STAND_INS.items()]}}))
        self.files = (file,)
        super().__init__(cluster, name, steps, job=["device=cuda"], **options)

    def claims(self):
        """By pod, those that have devices."""
        found = {}
        for claim in self.get("resourceclaims")["items"]:
            pods = [user["name"] for user in claim.get("status", {}).get("reservedFor", [])]
            if pods and pods[0].startswith(self.job_name):
                found.setdefault(pods[0], []).append(claim)
        return found


class Claims(OnACluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # An event of the scheduler keeps the first reason for minutes, also when it is another by then.
        cls.cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s", "pvc/runs")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (cls.cluster.runs / "stand-ins").mkdir()
        for name in ("libcuda.so.1", "libstand_in_this_build.so"):
            shutil.copy(pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "stand-ins" / name, cls.cluster.runs / "stand-ins")
        cls.driver = cls.enterClassContext(DeviceDriver(cls.cluster, devices=2))
        cls.cluster.apply(cls.driver.device_class("gpu.nvidia.com"))
        cls.cluster.kubectl("apply", "-f", ROOT / "k8s/samples/claims.yaml")

    def claiming(self, template, **options):
        return self.install(ClaimingRun, template=template, folder=self.folder, **options)

    def check_claims(self, run):
        """Each pod has one, with both devices of its node, which its driver has prepared."""
        claims = {pod: claim for pod, (claim,) in run.claims().items()}
        self.assertEqual(set(claims), {run.pod(0), run.pod(1)})
        self.assertEqual(self.driver.prepared(), {(run.node(index), claims[run.pod(index)]["metadata"]["uid"]) for index in (0, 1)})
        for index in (0, 1):
            devices = claims[run.pod(index)]["status"]["allocation"]["devices"]["results"]
            self.assertEqual([(device["pool"], device["device"]) for device in devices],
                             [(run.node(index), "device-00"), (run.node(index), "device-01")])
            self.check_container(run.pod(index), claims[run.pod(index)]["metadata"]["name"])

    def check_container(self, pod, claim):
        """What the driver says of the claim has been added to the container, where its runtime can do so."""
        node = self.cluster.get("pod", pod)["spec"]["nodeName"]
        version = self.cluster.get("node", node)["status"]["nodeInfo"]["containerRuntimeVersion"]
        if tuple(map(int, re.match(r"containerd://v?(\d+)\.(\d+)", version).groups())) < (1, 7):
            print(f"{version} adds no devices to containers: the variables of the driver were not looked for")
            return
        variables = self.cluster.kubectl("exec", pod, "--", "env").splitlines()
        self.assertIn("claim_" + re.sub("[^a-zA-Z0-9]", "_", f"{claim}_gpus") + "=true", variables)

    def test_devices_of_their_nodes(self):
        run = self.claiming("two-gpus")
        run.wait_for_step(50, ranks=4)
        self.check_claims(run)
        deleted = run.pod(1)
        self.cluster.kubectl("delete", "pod", deleted, "--wait=false")
        wait_until(lambda: run.ranks() == [4, 2, 4] or run.done(), "four ranks again")
        self.assertEqual(run.ranks(), [4, 2, 4])
        self.assertNotEqual(run.pod(1), deleted)
        self.check_claims(run)
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertIn("Stand-in", run.events("start")[-1]["device"])
        wait_until(lambda: not self.cluster.get("resourceclaims")["items"] and not self.driver.prepared(), "the devices to be free")

    def test_what_pods_wait_for(self):
        """For more devices than a node has, and for a template that is not there."""
        claims = json.loads(self.cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", ROOT / "k8s/samples/claims.yaml"))
        claims["metadata"]["name"] = "three-gpus"
        claims["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
        self.cluster.apply(claims)
        for template, why in (("three-gpus", "2 cannot allocate all claims"), ("no-gpus", 'resource claim template "no-gpus": ')):
            with self.subTest(template):
                self.check_what_it_waits_for(self.claiming(template, name=template), why)


if __name__ == "__main__":
    unittest.main(verbosity=2)
