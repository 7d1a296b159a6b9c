"""kube-network-policies for the pod network of a Cluster: what no NetworkPolicy lets through is dropped.

    with NetworkPolicies(cluster): ...

Installed as usual, each node has one, which judges what its node's pods send and get. Here one does for all nodes, since
their pods are on one bridge, and it judges by both ends. It looks for its cluster and its token where a pod has them, so it
runs in a mount namespace with its own /run."""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from cluster import LAB, SCRIPT, wait_until
from free_ports import free_port
from kube_tools import programs
from on_a_cluster import OnACluster

QUEUE = 77 + int(LAB or 0)
PLACE = "/run/secrets/kubernetes.io/serviceaccount"
SCRIPT_IN_RUN = f'mount -t tmpfs t /run && mkdir -p {PLACE} && echo "$CA" >{PLACE}/ca.crt && printf %s "$TOKEN" >{PLACE}/token && exec "$@"'
LISTENERS = pathlib.Path("/proc/net/netfilter/nfnetlink_queue")


def missing():
    """Why it cannot run here; empty if it can."""
    if not shutil.which("iptables", path=os.environ["PATH"] + ":/usr/sbin"):
        return "iptables is not installed (scripts/install-dependencies.sh --k8s)"
    rule = "iptables -t mangle -A FORWARD -m conntrack --ctstate NEW -j NFQUEUE --queue-num 77"
    done = subprocess.run(["unshare", "--net", "sh", "-c", f"PATH=$PATH:/usr/sbin {rule}"], capture_output=True, check=False)
    return "" if done.returncode == 0 and LISTENERS.exists() else "the kernel has no queues of packets"


class NetworkPolicies:
    def __init__(self, cluster):
        self.cluster, self.process = cluster, None

    def __enter__(self):
        config = json.loads(self.cluster.kubectl("config", "view", "--flatten", "--minify", "--raw", "-o", "json"))
        server = config["clusters"][0]["cluster"]
        program = programs("network-policies") / "kube-network-policies"
        host, port = server["server"].removeprefix("https://").rsplit(":", 1)
        with open(self.cluster.state / "log/network-policies.log", "wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                ["setpriv", "--pdeathsig", "INT", "unshare", "--mount", "sh", "-c", SCRIPT_IN_RUN, "sh", program, f"--nfqueue-id={QUEUE}", "--hostname-override=node-0",
                 f"--metrics-bind-address=127.0.0.1:{free_port()}", "--v=2"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, 
                     "CA": base64.b64decode(server["certificate-authority-data"]).decode(), "TOKEN": config["users"][0]["user"]["token"]})
        wait_until(self.listens, "kube-network-policies")
        self.cluster.run(SCRIPT, "judge")
        return self

    def listens(self):
        assert self.process.poll() is None, (self.cluster.state / "log/network-policies.log").read_text()
        return any(line.split()[0] == str(QUEUE) for line in LISTENERS.read_text().splitlines())

    def __exit__(self, *_):
        self.cluster.run(SCRIPT, "pass")
        self.process.send_signal(signal.SIGINT)  # where the kernel takes its own rules, too, it removes them
        self.process.wait()


class EnforcesPolicies(OnACluster):
    """Tests on a cluster that enforces network policies."""

    @classmethod
    def setUpClass(cls):
        if missing():
            raise unittest.SkipTest(missing())
        super().setUpClass()
        cls.enterClassContext(NetworkPolicies(cls.cluster))
