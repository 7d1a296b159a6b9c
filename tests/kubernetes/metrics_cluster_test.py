#!/usr/bin/env python3
"""Who finds the metrics of a run on a real Kubernetes: a Prometheus with the samples' configuration and rights, and one that
the real Prometheus Operator configures from the chart's monitors and rules."""
import json
import pathlib
import sys
import tempfile
import unittest

import yaml
from cluster import wait_until
from kube_tools import CHART, MONITORING, ROOT, programs
from on_a_cluster import OnACluster
from prometheus_operator import PrometheusOperator

sys.path.insert(0, str(ROOT / "tests/observability"))
from servers import Prometheus  # noqa: E402  pylint: disable=wrong-import-position

RANKS = ["cluster.replicas=2", "cluster.slots=2"]
LONG = 100000  # steps: it is removed before it ends
LABELS = {"release": "lab"}


class Metrics(OnACluster):
    def test_prometheus(self):
        """The sample's own configuration finds every rank of a running job, with the rights of the sample's account."""
        cluster = self.cluster
        cluster.kubectl("apply", "-f", ROOT / "k8s/samples/prometheus-rights.yaml")
        scrape = yaml.safe_load((ROOT / "k8s/samples/prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
        self.assertEqual(scrape[0]["kubernetes_sd_configs"], [{"role": "pod"}])
        prometheus = self.prometheus(scrape, cluster.kubectl("-n", "monitoring", "create", "token", "prometheus").strip())
        run = self.install(values=RANKS, job=["telemetry.prometheus.linger=120"])
        found = self.found(prometheus, run)
        self.assertEqual({row["metric"]["job"] for row in found}, {"lockstep"})
        targets = [target for target in prometheus.ask("targets")["activeTargets"] if target["labels"]["run"] == run.name]
        self.assertEqual(sorted(target["discoveredLabels"]["__meta_kubernetes_pod_container_port_name"] for target in targets),
                         ["metrics-0", "metrics-0", "metrics-1", "metrics-1"])
        self.check_bits(run)

    def prometheus(self, scrape, token, rules=None):
        """A Prometheus on the node that finds what the owner of the token may see."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        kubeconfig = self.cluster.kubeconfig(folder, token)
        for config in scrape:
            for discovery in config["kubernetes_sd_configs"]:
                discovery["kubeconfig_file"] = kubeconfig
        server = Prometheus(folder / "prometheus", scrape=scrape, rules=rules, program=programs("prometheus") / "prometheus-kubernetes")
        self.addCleanup(server.stop)
        return server

    def found(self, prometheus, run):
        """The series of steps, once each of the four ranks of a run has one."""
        ranks = {(run.pod(pod), str(2 * pod + slot)) for pod in (0, 1) for slot in (0, 1)}
        query = f'lockstep_steps_total{{run="{run.name}"}} > 0'
        rows = wait_until(lambda: (rows := prometheus.query(query)) and len(rows) == len(ranks) and rows, "all ranks' steps")
        self.assertEqual({(row["metric"]["host"], row["metric"]["rank"]) for row in rows}, ranks)
        return rows

    def test_the_operator(self):
        """It takes the chart's rules, refuses wrong ones, and makes of either monitor what finds every rank."""
        operator = self.enterContext(PrometheusOperator(self.cluster.call_kubectl, self.cluster.environment["KUBECONFIG"]))
        operator.prometheus("lab", LABELS)
        on = [f"observability.podMonitor.{word}" for word in ("enabled=true", "labels.release=lab", "interval=1s")]
        run = self.install(steps=LONG, values=[*RANKS, *on])
        self.cluster.run(self.cluster.helm, "install", "monitoring", MONITORING, "--set=rules.labels.release=lab")
        self.addCleanup(self.cluster.run, self.cluster.helm, "uninstall", "monitoring")

        rule = self.cluster.get("prometheusrule", "monitoring")
        rule["spec"]["groups"][0]["rules"][0]["expr"] = "sum("
        refused = self.cluster.call_kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(rule), check=False)
        self.assertIn("could not parse expression", refused.stderr)

        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in operator.rules("lab").items():
            (folder / f"{name}.yaml").write_text(text)
        token = json.loads(self.cluster.kubectl("config", "view", "--raw", "-o", "json"))["users"][0]["user"]["token"]
        prometheus = self.prometheus(operator.scrape_configs("lab", "podMonitor/"), token, rules=folder / "*.yaml")
        rows = self.found(prometheus, run)
        self.assertEqual({(row["metric"]["namespace"], row["metric"]["job"]) for row in rows}, {("default", run.name)})
        loaded = {alert["name"] for group in prometheus.ask("rules")["groups"] for alert in group["rules"]}
        ours = yaml.safe_load((MONITORING / "rules/lockstep.yaml").read_text(encoding="utf-8"))["groups"]
        self.assertEqual(loaded, {rule.get("alert") or rule["record"] for group in ours for rule in group["rules"]})
        prometheus.stop()

        words = ["observability.podMonitor.enabled=false", "observability.serviceMonitor.enabled=true",
                 "observability.serviceMonitor.labels.release=lab", "observability.serviceMonitor.interval=1s"]
        self.cluster.run(self.cluster.helm, "upgrade", run.name, CHART, "--reuse-values", *(f"--set={word}" for word in words))
        self.found(self.prometheus(operator.scrape_configs("lab", "serviceMonitor/"), token), run)
        self.assertEqual(run.ranks(), [4], "the pods are still the first ones")


if __name__ == "__main__":
    unittest.main(verbosity=2)
