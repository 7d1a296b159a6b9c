#!/usr/bin/env python3
"""The chart on clusters that differ from the others' one: pods have IPv6 addresses only, or both; or what is known of
OpenShift is emulated: users that the image does not know, DNS behind another port, enforced policies."""
import unittest

from network_policies import EnforcesPolicies
from on_a_cluster import OnACluster
from unfit_cluster_test import UnfitNodes

USER, METRICS = 1000680000, 9840
READ = "exec 3<>/dev/tcp/{host}/{port}; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
ASSIGNED = [f"security.podSecurityContext.{key}={value}" for key, value in {
    "runAsUser": USER, "runAsGroup": 0, "fsGroup": USER}.items()]


class OtherCluster(OnACluster):
    def check_a_deleted_leader(self, values=(), **options):
        """Two pods train, one without the other, then both: to the same bits. Returns the run."""
        run = self.install(values=["cluster.replicas=2", "cluster.spread=required", *values], **options)
        run.wait_for_step(50, ranks=2)
        self.cluster.kubectl("-n", run.namespace, "delete", "pod", run.pod(0), "--wait=false")
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.job()["status"].get("failed", 0), 0)
        self.assertEqual(run.ranks()[:2], [2, 1])

    def addresses(self, run):
        """Of all pods: their addresses' families."""
        pods = [[place["ip"] for place in pod["status"]["podIPs"]] for pod in run.pods()]
        return [[6 if ":" in address else 4 for address in addresses] for addresses in pods]


class Ipv6(OtherCluster, UnfitNodes):
    settings = {"FAMILIES": "6"}

    def test_a_deleted_leader(self):
        self.check_a_deleted_leader()

    def test_an_unfit_node(self):
        """The pod on it tells the API, which has an IPv6 address only."""
        self.check_another_processor()

    def test_metrics_and_a_report(self):
        run = self.install(values=["cluster.replicas=2"])
        run.wait_for_step(1, ranks=2)
        self.assertEqual(self.addresses(run), [[6], [6]])
        read = READ.format(host=f"{run.pod(1).rpartition('-')[0]}.{run.name}", port=METRICS)
        self.assertIn('lockstep_steps_total{rank="1"} ', self.cluster.kubectl("exec", run.pod(0), "--", "bash", "-c", read))
        self.assertRegex(self.helm_test(run, 0), r"(?m)^2 ranks on 2 hosts\n")
        self.check_bits(run)


class BothFamilies(OtherCluster):
    settings = {"FAMILIES": "4 6"}

    def test_a_deleted_leader(self):
        self.check_a_deleted_leader()


class LikeOpenShift(OtherCluster, EnforcesPolicies):
    settings = {"DNS_PORT": "5353"}

    def test_a_deleted_leader(self):
        namespace = "team-a"
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}}, *self.cluster.volume(namespace))
        self.check_a_deleted_leader(ASSIGNED, namespace=namespace)


if __name__ == "__main__":
    unittest.main(verbosity=2)
