"""The real Kueue for a control plane of this machine: its definitions, its webhooks at this machine's address, and its
controller.

    with Kueue(kubectl, kubeconfig) as kueue:
        kueue.queue("shared", cpu=2, memory="2Gi")
        kueue.local_queue("team-a", "shared")

It expects its certificates below /etc, so it runs in a mount namespace with its own /etc: needs root."""
import os
import re
import subprocess
import tempfile

import yaml
from control_plane import wait_for_definitions
from controller import Controller

API = "kueue.x-k8s.io/v1beta2"
OWN_ETC = "mount -t tmpfs t {0} && mkdir {0}/u {0}/w && mount -t overlay o -o lowerdir=/etc,upperdir={0}/u,workdir={0}/w /etc"


def missing():
    """Why it cannot run here; empty if it can."""
    if os.geteuid() != 0:
        return "Kueue's certificates have a place that only root can give them"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["unshare", "--mount", "sh", "-c", OWN_ETC.format(folder)], capture_output=True, check=False)
    return "" if done.returncode == 0 else "the kernel forbids overlays"


class Kueue(Controller):
    """The real Kueue; see Controller."""
    name = "kueue"
    # Kueue supports many kinds of jobs, most of which are not defined here; it must not be configured for them.
    hooked = re.compile("/(mutate|validate)-(-v1-pod|batch-v1-job|jobset-x-k8s-io|kubeflow-org-v2beta1-mpijob|"
                        "trainer-kubeflow-org|kueue-x-k8s-io)")

    def define(self):
        """Defines what Kueue's own kustomization does, with this machine's address in place of a Service."""
        patches = yaml.safe_load((self.files / "crd/kustomization.yaml").read_text())["patches"]
        converted = {patch["path"].removeprefix("patches/webhook_in_") for patch in patches}
        for path in sorted((self.files / "crd/bases").glob("*.yaml")):
            definition = yaml.safe_load(path.read_text())
            if path.name.removeprefix("kueue.x-k8s.io_") in converted:
                definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {
                    "clientConfig": self.client("/convert"), "conversionReviewVersions": ["v1"]}}
            self.apply(definition)
        wait_for_definitions(self.kubectl)
        self.define_webhooks()

    def start(self):
        self.path("etc").mkdir()
        # The certificate for metrics is read from /etc even if unused.
        script = (f"{OWN_ETC.format(self.path('etc'))} && mkdir -p /etc/kueue/metrics/certs && "
                  f"cp {self.folder.name}/tls.* /etc/kueue/metrics/certs/ && exec \"$@\"")
        self.launch({"apiVersion": "config.kueue.x-k8s.io/v1beta2",
                     "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "kubeflow.org/mpijob", "pod",
                                                     "trainer.kubeflow.org/trainjob"]}},
                    "--feature-gates=VisibilityOnDemand=false,ElasticJobsViaWorkloadSlices=true,FailureRecoveryPolicy=true",
                    prefix=["unshare", "--mount", "sh", "-c", script, "sh"])
        self.wait_for(self.flavor("plain"))

    @staticmethod
    def flavor(name):
        return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}}

    def queue(self, name, cohort=None, **amounts):
        """A ClusterQueue with this quota; a higher priority preempts within it. Queues of a cohort lend each other what they
        do not use, and take it back."""
        self.apply({
            "apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, **({"cohortName": cohort} if cohort else {}), "preemption": {
                "withinClusterQueue": "LowerPriority", **({"reclaimWithinCohort": "Any"} if cohort else {})}, "resourceGroups": [
                {"coveredResources": list(amounts), "flavors": [{"name": "plain", "resources": [
                    {"name": resource, "nominalQuota": str(amount)} for resource, amount in amounts.items()]}]}]}})

    def local_queue(self, namespace, queue):
        self.apply({"apiVersion": API, "kind": "LocalQueue",
                    "metadata": {"name": "training", "namespace": namespace}, "spec": {"clusterQueue": queue}})

    def priority(self, name, value):
        self.apply({"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name},
                    "value": value, "description": name})
