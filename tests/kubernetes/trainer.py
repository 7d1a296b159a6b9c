"""The real controller of Kubeflow's TrainJobs for a control plane of this machine, with its webhooks. It makes JobSets, so it
wants their controller, too.

    with JobSets(kubectl, kubeconfig), Trainer(kubectl, kubeconfig): ...
"""
import re
import shutil

from controller import Controller

# What its webhooks say of a TrainJob whose runtime was created milliseconds before, so that they have not seen it yet.
NO_RUNTIME_YET = "must be created before the TrainJob|runtime '.*' not found"


class Trainer(Controller):
    """The definitions of TrainJobs, their runtimes and JobSets must be there already."""
    name = "trainer"
    hooked = re.compile("/validate-trainer-kubeflow-org")
    certificates = {"certManagement": {"enable": False}}

    def define(self):
        self.define_webhooks()

    def start(self):
        place = self.path("k8s-webhook-server/serving-certs")  # below TMPDIR: the configuration has no place for it
        place.mkdir(parents=True)
        for name in ("tls.key", "tls.crt"):
            shutil.copy(self.path(name), place)
        self.launch({"apiVersion": "config.trainer.kubeflow.org/v1alpha1", "webhook": {"host": "127.0.0.1", "port": self.port}},
                    prefix=["env", f"TMPDIR={self.folder.name}"])
        runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": {"name": "first"},
                   "spec": {"template": {"spec": {"replicatedJobs": [{"name": "none", "template": {"spec": {"template": {
                       "spec": {"containers": [{"name": "none", "image": "none"}]}}}}}]}}}}
        self.wait_for(runtime)
        self.kubectl("delete", "clustertrainingruntime", "first")
