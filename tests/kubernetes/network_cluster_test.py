#!/usr/bin/env python3
"""NetworkPolicies of both charts where they are enforced, by kube-network-policies: who reaches sshd, the control socket and
the metrics of a run, and what its pods reach."""
import json
import pathlib
import sys
import tempfile
import unittest

from cluster import GATEWAY, Run, wait_until
from kube_tools import CHART, ROOT, TEAM
from network_policies import EnforcesPolicies
from teams_cluster_test import TeamRun

sys.path.insert(0, str(ROOT / "tests/store"))
from real_server import VersityGateway  # noqa: E402  pylint: disable=wrong-import-position

SSH, METRICS = 2222, {9840, 9841}
LONG = 100000  # steps: it is removed before it ends
LOGIN = {"role": "login"}
TRY = "for port in {ports}; do (timeout 3 bash -c 'exec 3<>/dev/tcp/{address}/'$port 2>/dev/null && echo $port) & done; wait"
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


class Network(EnforcesPolicies):
    def pod(self, namespace, name, **labels):
        """Makes a pod of no release; returns (namespace, name)."""
        container = {"name": "shell", "image": "localhost/lockstep:test", "command": ["sleep", "infinity"],
                     "resources": {"limits": {"cpu": "200m", "memory": "64Mi"}},
                     "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
        self.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels},
                            "spec": {"securityContext": RESTRICTED, "terminationGracePeriodSeconds": 0, "containers": [container]}})
        self.addCleanup(self.cluster.kubectl, "-n", namespace, "delete", "pod", name, "--wait=false")
        return namespace, name

    def namespace(self, name):
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.addCleanup(self.cluster.kubectl, "delete", "namespace", name, "--wait=false")
        wait_until(lambda: self.cluster.call_kubectl("-n", name, "get", "serviceaccount", "default", check=False).returncode == 0, name)

    def ready(self, *pods):
        for namespace, name in pods:
            self.cluster.kubectl("-n", namespace, "wait", "--for=condition=Ready", "--timeout=120s", f"pod/{name}")

    def sh(self, pod, script):
        return self.cluster.kubectl("-n", pod[0], "exec", pod[1], "--", "bash", "-c", script)

    def reached(self, pod, address, ports):
        """Those of the ports that let this pod connect."""
        words = self.sh(pod, TRY.format(address=address, ports=" ".join(map(str, sorted(ports))))).split()
        return set(map(int, words))

    def listening(self, pod):
        """The TCP ports of a pod that another could reach."""
        lines = [line.split() for line in self.sh(pod, "cat /proc/net/tcp /proc/net/tcp6").splitlines()]
        places = [words[1] for words in lines if words[3] == "0A"]
        return {int(place.rpartition(":")[2], 16) for place in places if not place.startswith("0100007F")}

    def team(self, name):
        """Makes one, whose login pods, in another namespace, may reach everything; returns the file of its values."""
        helm, file = self.cluster.helm, pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / f"{name}.yaml"
        login = json.dumps([{"namespaceSelector": {}, "podSelector": {"matchLabels": LOGIN}}])
        self.cluster.run(helm, "install", name, TEAM, "--set=quota.gpus=0", f"--set-json=network.allFrom={login}")
        self.addCleanup(self.cluster.run, helm, "uninstall", name)
        self.cluster.run("bash", "-c", f"{helm} get notes {name} | sed '1,/^team.yaml is:/d' > {file}")
        self.cluster.apply(*self.cluster.volume(name))
        return file

    def test_the_run_of_a_team(self):
        for name in ("monitoring", "others"):
            self.namespace(name)
        run = self.install(TeamRun, name="guarded", steps=LONG, team=self.team("walled"), values=["cluster.replicas=2", "cluster.slots=2"])
        labels = {"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/instance": run.name}
        prometheus, stranger, double = self.pod("monitoring", "a"), self.pod("others", "a"), self.pod("others", "b", **labels)
        neighbour, login = self.pod("walled", "a"), self.pod("others", "c", **LOGIN)
        run.wait_for_step(1, ranks=4)
        self.ready(prometheus, stranger, double, neighbour, login)
        leader, worker = ((run.namespace, run.pod(index)) for index in (0, 1))
        address = run.get("pod", leader[1])["status"]["podIP"]
        ports = self.listening(leader)
        self.assertLess({SSH, *METRICS}, ports, "and the control socket, and those of MPI")

        for who, expected in ((worker, ports), (login, ports), (prometheus, METRICS), (stranger, set()), (neighbour, set()), (double, set())):
            with self.subTest(who):
                self.assertEqual(self.reached(who, address, ports), expected)

        with self.subTest("what it reaches"):
            store = VersityGateway(address=GATEWAY)
            self.addCleanup(store.stop)
            self.assertEqual(self.reached(stranger, GATEWAY, {store.port}), {store.port})
            self.assertEqual(self.reached(worker, GATEWAY, {store.port}), set())
            rule = [{"to": [{"ipBlock": {"cidr": f"{GATEWAY}/32"}}], "ports": [{"protocol": "TCP", "port": store.port}]}]
            self.cluster.run(self.cluster.helm, "-n", run.namespace, "upgrade", run.name, CHART, "--reuse-values",
                             f"--set-json=security.networkPolicy.egress={json.dumps(rule)}")
            wait_until(lambda: self.reached(worker, GATEWAY, {store.port}), "the policy that lets it out")
        self.assertEqual(run.ranks(), [4])

    def test_a_run_without_a_policy(self):
        """So it is the policies that keep others out."""
        self.namespace("anybody")
        run = self.install(steps=LONG, values=["cluster.replicas=1", "security.networkPolicy.enabled=false"])
        stranger = self.pod("anybody", "a")
        run.wait_for_step(1)
        self.ready(stranger)
        pod = (run.namespace, run.pod(0))
        ports = self.listening(pod)
        self.assertEqual(self.reached(stranger, run.get("pod", pod[1])["status"]["podIP"], ports), ports)


if __name__ == "__main__":
    unittest.main(verbosity=2)
