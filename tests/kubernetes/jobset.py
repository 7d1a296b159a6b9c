"""The real controller of JobSets for a control plane of this machine, with its webhooks.

    with JobSets(kubectl, kubeconfig): ...
"""
import re

from controller import Controller


class JobSets(Controller):
    """The definition of JobSets must be there already (ControlPlane.define()). The webhook for pods is left out: it is for
    exclusive placement only, and would be called for every pod of the cluster."""
    name = "jobset"
    hooked = re.compile("/(mutate|validate)-jobset-x-k8s-io")

    def define(self):
        self.define_webhooks()

    def start(self):
        self.launch({"apiVersion": "config.jobset.x-k8s.io/v1alpha1"})
        # Suspended, so it never has pods.
        template = {"spec": {"template": {"spec": {"containers": [{"name": "none", "image": "none"}]}}}}
        self.wait_for({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "first", "namespace": "default"},
                       "spec": {"suspend": True, "replicatedJobs": [{"name": "none", "template": template}]}})
        self.kubectl("delete", "jobset", "first")
