"""The real Kueue for a control plane of this machine: its definitions, its webhooks at this machine's address, and its
controller.

    with Kueue(kubectl, kubeconfig) as kueue:
        kueue.queue("shared", cpu=2, memory="2Gi")
        kueue.local_queue("team-a", "shared")

It expects its certificates below /etc, so it runs in a mount namespace with its own /etc: needs root."""
import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile

import yaml
from control_plane import free_port, until, wait_for_definitions
from kube_tools import programs

# Kueue supports many kinds of jobs, most of which are not defined here; it must not be configured for them.
OURS = re.compile("/(mutate|validate)-(-v1-pod|batch-v1-job|kubeflow-org-v2beta1-mpijob|kueue-x-k8s-io)")
API = "kueue.x-k8s.io/v1beta2"
OWN_ETC = "mount -t tmpfs t {0} && mkdir {0}/u {0}/w && mount -t overlay o -o lowerdir=/etc,upperdir={0}/u,workdir={0}/w /etc"


def missing():
    """Why it cannot run here; empty if it can."""
    if os.geteuid() != 0:
        return "Kueue's certificates have a place that only root can give them"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["unshare", "--mount", "sh", "-c", OWN_ETC.format(folder)], capture_output=True, check=False)
    return "" if done.returncode == 0 else "the kernel forbids overlays"


class Kueue:
    """`kubectl`: a function that runs kubectl with `text` as its input, and raises on failure unless check=False."""

    def __init__(self, kubectl, kubeconfig):
        self.kubectl, self.kubeconfig = kubectl, kubeconfig
        self.bin = programs("kueue")
        self.port = free_port()
        self.folder = self.certificate = self.process = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lockstep-kueue-")  # pylint: disable=consider-using-with
        try:
            self.certificate = self.make_certificate()
            self.define()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        # They would not be answered any more, and without an answer no Job can be created.
        for hooks in ("mutating", "validating"):
            self.kubectl("delete", f"{hooks}webhookconfiguration", f"kueue-{hooks}-webhook-configuration", check=False)
        self.folder.cleanup()

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=kueue", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", self.path("tls.key"), "-out", self.path("tls.crt")],
                       check=True, capture_output=True)
        return base64.b64encode(self.path("tls.crt").read_bytes()).decode()

    def client(self, path):
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.certificate}

    def define(self):
        """Defines what Kueue's own kustomization does, with this machine's address in place of a Service."""
        files = self.bin.parent / "kueue"
        patches = yaml.safe_load((files / "crd/kustomization.yaml").read_text())["patches"]
        converted = {patch["path"].removeprefix("patches/webhook_in_") for patch in patches}
        for path in sorted((files / "crd/bases").glob("*.yaml")):
            definition = yaml.safe_load(path.read_text())
            if path.name.removeprefix("kueue.x-k8s.io_") in converted:
                definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {
                    "clientConfig": self.client("/convert"), "conversionReviewVersions": ["v1"]}}
            self.apply(definition)
        wait_for_definitions(self.kubectl)
        for hooks in yaml.safe_load_all((files / "webhook/manifests.yaml").read_text()):
            hooks["webhooks"] = [{**hook, "clientConfig": self.client(hook["clientConfig"]["service"]["path"])}
                                 for hook in hooks["webhooks"] if OURS.match(hook["clientConfig"]["service"]["path"])]
            hooks["metadata"]["name"] = "kueue-" + hooks["metadata"]["name"]
            self.apply(hooks)

    def start(self):
        config = self.path("config.yaml")
        config.write_text(json.dumps({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "leaderElection": {"leaderElect": False},
            "health": {"healthProbeBindAddress": "0"}, "metrics": {"bindAddress": "0"}, "internalCertManagement": {"enable": False},
            "webhook": {"host": "127.0.0.1", "port": self.port, "certDir": self.folder.name},
            "integrations": {"frameworks": ["batch/job", "kubeflow.org/mpijob", "pod"]}}))
        self.path("etc").mkdir()
        # The certificate for metrics is read from /etc even if unused.
        script = (f"{OWN_ETC.format(self.path('etc'))} && mkdir -p /etc/kueue/metrics/certs && "
                  f"cp {self.folder.name}/tls.* /etc/kueue/metrics/certs/ && exec \"$@\"")
        with self.path("log").open("wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                ["unshare", "--mount", "sh", "-c", script, "sh", self.bin / "kueue", f"--config={config}",
                 "--feature-gates=VisibilityOnDemand=false,ElasticJobsViaWorkloadSlices=true", f"--kubeconfig={self.kubeconfig}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder.name)
        # Until a webhook answers, it refuses objects.
        until(lambda: self.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(self.flavor("plain")), check=False).returncode == 0,
              lambda: "kueue: " + self.path("log").read_text(errors="replace")[-2000:])

    def apply(self, thing):
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=json.dumps(thing))

    @staticmethod
    def flavor(name):
        return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}}

    def queue(self, name, **amounts):
        """A ClusterQueue with this quota; a higher priority preempts within it."""
        self.apply({
            "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"}, "resourceGroups": [
                {"coveredResources": list(amounts), "flavors": [{"name": "plain", "resources": [
                    {"name": resource, "nominalQuota": str(amount)} for resource, amount in amounts.items()]}]}]}})

    def local_queue(self, namespace, queue):
        self.apply({"apiVersion": API, "kind": "LocalQueue",
                    "metadata": {"name": "training", "namespace": namespace}, "spec": {"clusterQueue": queue}})

    def priority(self, name, value):
        self.apply({"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name},
                    "value": value, "description": name})
