"""The real Prometheus Operator for a control plane of this machine, with the webhook that checks rules. What it configures a
Prometheus with is read from where its pods would have it: they are none, since their image comes from a registry.

    with PrometheusOperator(kubectl, kubeconfig) as operator:
        operator.prometheus("lab", {"release": "lab"})
        operator.scrape_configs("lab"), operator.rules("lab")
"""
import base64
import gzip
import json
import os
import subprocess

import yaml
from control_plane import until, wait_for_definitions
from controller import Controller
from free_ports import free_port
from shared import ENDS_WITH_US

API = "monitoring.coreos.com/v1"


class PrometheusOperator(Controller):
    name = "prometheus-operator"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.processes = []

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        super().__exit__()

    def define(self):
        for path in sorted((self.files / "prometheus-operator-crd").glob("*.yaml")):
            self.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
        wait_for_definitions(self.kubectl)
        # As in its documentation, which is the only place that has it.
        self.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                    "metadata": {"name": f"{self.name}-validating-webhook-configuration"}, "webhooks": [{
                        "name": "prometheusrulevalidate.monitoring.coreos.com", "failurePolicy": "Fail", "sideEffects": "None",
                        "clientConfig": self.client("/admission-prometheusrules/validate"), "admissionReviewVersions": ["v1"],
                        "rules": [{"apiGroups": ["monitoring.coreos.com"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                                   "resources": ["prometheusrules"]}]}]})

    def start(self):
        self.run("prometheus-admission", f"--web.listen-address=127.0.0.1:{self.port}", f"--web.cert-file={self.path('tls.crt')}",
                 f"--web.key-file={self.path('tls.key')}")
        self.run("prometheus-operator", f"--web.listen-address=127.0.0.1:{free_port()}", KUBECONFIG=str(self.kubeconfig))
        self.wait_for({"apiVersion": API, "kind": "PrometheusRule", "metadata": {"name": "first", "namespace": "default"},
                       "spec": {"groups": [{"name": "first", "rules": [{"record": "first", "expr": "1"}]}]}})
        self.kubectl("delete", "prometheusrule", "first")

    def run(self, program, *words, **variables):
        with self.path("log").open("ab") as log:
            self.processes.append(subprocess.Popen(  # pylint: disable=consider-using-with
                [*ENDS_WITH_US, self.bin / program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder.name,
                env={**os.environ, **variables}))

    def prometheus(self, name, labels):
        """A Prometheus of the namespace default for the monitors and rules with these labels."""
        chosen = {"matchLabels": labels}
        selectors = {f"{kind}{suffix}": value for kind in ("podMonitor", "serviceMonitor", "rule")
                     for suffix, value in (("Selector", chosen), ("NamespaceSelector", {}))}
        self.apply({"apiVersion": API, "kind": "Prometheus", "metadata": {"name": name, "namespace": "default"},
                    "spec": {"replicas": 0, **selectors}})

    def scrape_configs(self, name, job):
        """Those that the Prometheus is configured with, once there are some whose names begin with this."""
        def found():
            done = self.kubectl("get", "secret", f"prometheus-{name}", "-o", "json", check=False)
            if done.returncode != 0:
                return None
            text = gzip.decompress(base64.b64decode(json.loads(done.stdout)["data"]["prometheus.yaml.gz"])).decode()
            # Its pods' reloader does so: of one shard it is the first.
            configs = yaml.safe_load(text.replace("$(SHARD)", "0")).get("scrape_configs") or []
            return [config for config in configs if config["job_name"].startswith(job)]
        return until(found, lambda: f"{job}: " + self.path("log").read_text(errors="replace")[-2000:])

    def rules(self, name):
        """The rule files that it is configured with, by name."""
        def found():
            items = json.loads(self.kubectl("get", "configmap", "-l", f"prometheus-name={name}", "-o", "json").stdout)["items"]
            return {file: text for item in items for file, text in item["data"].items()}
        return until(found, lambda: "rules: " + self.path("log").read_text(errors="replace")[-2000:])
