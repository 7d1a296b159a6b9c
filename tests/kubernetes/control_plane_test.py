#!/usr/bin/env python3
"""The chart in a real Kubernetes that lacks only the kubelet: install, upgrade, rollback, uninstall; Pod Security; how
the Job reacts to every exit code, to an eviction and to a new size; where groups are placed; quota. The test itself
writes the ends of pods, in place of the kubelet."""
import concurrent.futures
import json
import shutil
import sys
import time
import unittest

from control_plane import ControlPlane, until
from jobset import JobSets
from kube_tools import CHART, ROOT, TEAM, sets
from release import Release
from upgrades import by_name, changes

KINDS = [word for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule")
         for word in ("--api-versions", f"monitoring.coreos.com/v1/{kind}")]
PERMANENT = (*range(64, 75), 76, 77, 78)
COUNTED = (1, 2, 126, 127, 134, 137, 139, 143, 255)
cluster = None


def setUpModule():
    global cluster
    cluster = ControlPlane()
    unittest.addModuleCleanup(cluster.__exit__)
    cluster.start_control_plane()
    cluster.define()
    cluster.node("cpu-0", {"pool": "cpu"})
    cluster.node("big", {"pool": "big"}, **{"nvidia.com/gpu": "8"})
    cluster.node("small", {"pool": "small"}, **{"nvidia.com/gpu": "4"})


def without_namespace(thing):
    return {**thing, "metadata": {key: part for key, part in thing["metadata"].items() if key != "namespace"}}


def release_of(name, *values, **options):
    return Release(cluster, name, *values, **options)


class Life(unittest.TestCase):
    def test_install_upgrade_rollback_uninstall(self):
        cluster.volume("life")
        release = release_of("life", "persistence.enabled=true")
        release.helm("install")
        release.running(2)
        first, key = release.job(), release.get("secret", "run1-ssh")["data"]["key"]

        with self.subTest("the same values change nothing"):
            release.helm("upgrade")
            same = release.job()
            self.assertEqual(same["metadata"]["uid"], first["metadata"]["uid"])
            self.assertEqual(same["metadata"]["generation"], first["metadata"]["generation"])
            self.assertEqual(release.get("secret", "run1-ssh")["data"]["key"], key)

        with self.subTest("another image is another Job, with the same key and volume"):
            release.helm("upgrade", "image.tag=other")
            second = until(lambda: len(release.jobs()) == 1 and release.job(), release.describe)
            self.assertNotEqual(second["metadata"]["name"], first["metadata"]["name"])
            self.assertEqual(second["spec"]["template"]["spec"]["containers"][0]["image"], "lockstep:other")
            self.assertEqual(release.get("secret", "run1-ssh")["data"]["key"], key)
            self.assertEqual(len(release.get("pvc")), 1)

        with self.subTest("a rollback has the first one's name"):
            cluster.helm("rollback", "run1", "1", "-n", release.name)
            back = until(lambda: len(release.jobs()) == 1 and release.job(), release.describe)
            self.assertEqual(back["metadata"]["name"], first["metadata"]["name"])
            self.assertEqual(release.get("secret", "run1-ssh")["data"]["key"], key)

        with self.subTest("nothing stays but the claim with the model"):
            cluster.helm("uninstall", "run1", "-n", release.name)
            kinds = "jobs,pods,services,networkpolicies,serviceaccounts,configmaps,secrets,pvc"
            mine = "app.kubernetes.io/instance=run1"
            until(lambda: [item["kind"] for item in release.get(kinds, "-l", mine)] == ["PersistentVolumeClaim"],
                  release.describe)

    def test_what_the_cluster_has_changes_no_render(self):
        """What Argo CD renders without a cluster is what Helm and Flux install."""
        cluster.volume("rendered")
        values = ("persistence.enabled=true", "security.ssh.existingSecret=mine")
        release = release_of("rendered", *values)
        release.kubectl("create", "secret", "generic", "mine", "--from-literal=key=key")
        release.helm("install")
        words = ("template", "run1", CHART, "-n", release.name, *sets(*values), "--kube-version", "1.35.4")
        offline, online = (cluster.helm(*words, *more).stdout for more in ((), ("--dry-run=server",)))
        self.assertEqual(offline, online)

    def test_helm_test_has_pods_and_a_service_of_its_own(self):
        release = release_of("tested", "cluster.maxUnavailable=1")
        release.helm("install")
        release.running(2)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            test = threads.submit(release.helm_test)
            pods = {pod["status"]["podIP"]: pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in release.running(4)}
            until(lambda: all(len(self.addresses(release, name)) == 2 for name in ("run1", "run1-test")), release.describe)
            for name, component in {"run1": "training", "run1-test": "test"}.items():
                self.assertEqual({pods[address] for address in self.addresses(release, name)}, {component})
            # The controller of budgets has seen all four pods by now.
            (budget,) = release.get("poddisruptionbudgets")
            self.assertEqual([budget["status"][key] for key in ("expectedPods", "disruptionsAllowed")], [2, 1])
            release.end_test(0)
            self.assertEqual(test.result().returncode, 0, test.result().stderr)

    def addresses(self, release, service):
        """The addresses of the pods behind a Service."""
        return [address for part in release.get("endpointslices", "-l", f"kubernetes.io/service-name={service}")
                for endpoint in part["endpoints"] or [] for address in endpoint["addresses"]]

    def test_every_values_file_is_taken_by_the_server(self):
        release = release_of("dry", level="privileged")
        # The test's pods are accepted only if everything that they refer to exists.
        for name in ("namespace", "quota"):
            cluster.kubectl("apply", "-f", ROOT / f"k8s/samples/{name}.yaml")
        cluster.apply({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"})
        parts = (["--no-hooks"], ["--show-only", "templates/tests/hosts.yaml", "--set", "security.serviceAccount.create=false"])
        for values in sorted((CHART / "ci").glob("*-values.yaml")):
            with self.subTest(values=values.name):
                cluster.helm("install", "dry", CHART, "-n", release.name, "-f", values, "--dry-run=server")
                for words in parts:
                    manifest = cluster.helm("template", "dry", CHART, "-n", release.name, "-f", values, *KINDS, *words).stdout
                    cluster.kubectl("-n", release.name, "create", "--dry-run=server", "--validate=strict", "-f", "-", text=manifest)

    def test_the_server_takes_every_upgrade_of_an_object_that_keeps_its_name(self):
        """upgrades_test.py has what may not change; this asks the server what it lets change."""
        release = release_of("upgraded", level="privileged")
        made, asked = set(), []
        for path, before, after in changes(mode="indexedJob"):
            old = {name: thing for name, thing in by_name(before).items() if name[0] in ("Job", "ConfigMap")}
            for name in sorted(old.keys() & by_name(after).keys()):
                new = by_name(after)[name]
                if new == old[name]:
                    continue
                with self.subTest(path=path, name=name):
                    if name not in made:
                        release.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(without_namespace(old[name])))
                    made.add(name)
                    release.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", text=json.dumps(without_namespace(new)))
                    asked.append(path)
        for path in ("cluster.backoffLimit", "cluster.suspend", "cluster.activeDeadlineSeconds", "cluster.ttlSecondsAfterFinished",
                     "cluster.labels", "queue.name"):
            self.assertIn(path, asked)

    def test_the_server_refuses_what_makes_another_name(self):
        """Had the Job kept its name."""
        release = release_of("renamed", level="privileged")
        wanted = {"image.tag", "cluster.managedBy", "cluster.takeoverSeconds", "cluster.podPatch"}
        for path, before, after in changes(wanted, mode="indexedJob"):
            (old,), (new,) = ([without_namespace(thing) for thing in objects if thing["kind"] == "Job"] for objects in (before, after))
            new["metadata"]["name"] = old["metadata"]["name"]
            with self.subTest(path=path):
                release.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(old))
                done = release.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", text=json.dumps(new), check=False)
                self.assertIn("field is immutable", done.stderr)

    def test_plain_manifests_are_taken_by_the_server(self):
        cluster.namespace("plain", "privileged")
        paths = sorted((ROOT / "k8s").glob("*.yaml"))
        self.assertGreater(len(paths), 4)
        for path in paths:
            with self.subTest(path=path.name):
                cluster.kubectl("-n", "plain", "create", "--dry-run=server", "--validate=strict", "-f", path)

    def test_samples_are_taken_by_the_server(self):
        cluster.namespace("team-b")
        cluster.kubectl("apply", "-f", ROOT / "k8s/samples/namespace.yaml")
        for name in ("namespace", "quota", "fetch", "claims", "forget-disruptions"):
            with self.subTest(sample=name):
                cluster.kubectl("-n", "team-a", "apply", "--dry-run=server", "--validate=strict", "-f", ROOT / f"k8s/samples/{name}.yaml")


class Operators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster.start_mpi_operator()

    def test_a_launcher_that_may_not_fail_again_ends_the_mpi_job_and_its_pods(self):
        release = release_of("mpi-wrong", "mode=mpijob", "cluster.launcherBackoffLimit=0")
        release.helm("install")
        (launcher,) = (pod for pod in release.running(2) if pod["spec"]["hostname"].endswith("-launcher"))
        release.end_pod(launcher, 78)
        until(lambda: "Failed" in {condition["type"] for job in release.get("mpijobs")
                                   for condition in job.get("status", {}).get("conditions", []) if condition["status"] == "True"},
              release.describe)
        until(lambda: not release.pods(), release.describe)

    def test_the_mpi_operator_makes_the_pods_of_the_hosts_file(self):
        release = release_of("mpi", "mode=mpijob", "cluster.replicas=3", "cluster.slots=2")
        release.helm("install")
        pods = release.running(3)
        (job,) = release.get("mpijobs")
        configs = {item["metadata"]["name"]: item["data"] for item in release.get("configmaps") if "data" in item}
        hosts = [line.split() for line in configs[job["metadata"]["name"]]["hosts"].splitlines()]
        self.assertEqual(sorted(name for name, _ in hosts),
                         sorted(f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in pods))
        own = [line.split() for line in configs[job["metadata"]["name"] + "-config"]["hostfile"].splitlines()]
        self.assertEqual([(f"{name}.mpi.svc", slots) for name, slots in hosts], [tuple(line) for line in own])
        self.assertIn(pods[0]["spec"]["subdomain"], [service["metadata"]["name"] for service in release.get("services")])
        self.assertEqual({pod["status"]["qosClass"] for pod in pods}, {"Guaranteed"})


class Sets(unittest.TestCase):
    """Mode jobset, with the controller of JobSets."""
    GROUPS = ("mode=jobset", "groups[0].name=a", "groups[0].replicas=1", "groups[0].slots=2", "groups[1].name=b", "groups[1].replicas=2")

    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(JobSets(cluster.kubectl, cluster.kubeconfig))

    def start(self, name, *values):
        release = release_of(name, *self.GROUPS, *values)
        release.helm("install")
        return release, release.running_in(a=1, b=2)

    def end(self, release):
        """Why it ended, when it has, and its last pod is gone."""
        def ended():
            conditions = release.job_set().get("status", {}).get("conditions", [])
            return [c for c in conditions if c["type"] in ("Completed", "Failed") and c["status"] == "True"]
        (condition,) = until(ended, release.describe)
        until(lambda: not release.pods(), release.describe)
        return condition["type"], condition["reason"]

    def test_its_pods_are_those_of_the_hosts_file(self):
        release, groups = self.start("set")
        hosts = release.get("configmaps", "-l", "app.kubernetes.io/instance=run1")[0]["data"]["hosts"].splitlines()
        pods = [pod for name in ("a", "b") for pod in groups[name]]
        self.assertEqual(hosts, [f"{pod['spec']['hostname']}.{pod['spec']['subdomain']} slots={slots}" for pod, slots in zip(pods, (2, 1, 1))])
        self.assertEqual([service["metadata"]["name"] for service in release.get("services")], ["run1", "run1-test"])  # both the chart's
        until(lambda: sum(len(part["endpoints"] or []) for part in release.get("endpointslices")) == 3, release.describe)
        self.assertEqual(len(release.get("jobs", "-l", "app.kubernetes.io/instance=run1")), 2)

    def test_the_leader_s_group_is_first(self):
        release = release_of("set-first", *self.GROUPS, "groups[0].nodeSelector.pool=later")
        release.helm("install")
        until(lambda: any(event["reason"] == "FailedScheduling" for event in release.get("events")), release.describe)
        self.assertEqual([job["metadata"]["name"].split("-")[2:] for job in release.jobs()], [["a", "0"]])
        cluster.node("later", {"pool": "later"})
        release.running_in(a=1, b=2)

    def test_the_leader_s_success_ends_all(self):
        release, groups = self.start("set-0")
        release.end_pod(groups["a"][0], 0)
        self.assertEqual(self.end(release), ("Completed", "AllJobsCompleted"))

    def test_a_permanent_code_ends_all_at_once(self):
        release, groups = self.start("set-65")
        release.end_pod(groups["b"][1], 65)
        self.assertEqual(self.end(release), ("Failed", "FailJobSetFailurePolicyAction"))

    def test_after_the_limit_of_a_group_all_fail(self):
        release, groups = self.start("set-limit", "cluster.backoffLimit=0")
        release.end_pod(groups["b"][0], 1)
        self.assertEqual(self.end(release), ("Failed", "FailJobSetFailurePolicyAction"))

    def test_a_pod_that_may_go_on_is_replaced_alone(self):
        """After a checkpoint, which is not counted, and after what the machine did, which is."""
        release, groups = self.start("set-75")
        for pod, code in zip(groups["b"], (75, 137)):
            release.end_pod(pod, code)
        gone = {pod["metadata"]["uid"] for pod in groups["b"]}
        until(lambda: not gone & {pod["metadata"]["uid"] for pod in release.pods()}, release.describe)
        again = release.running_in(a=1, b=2)
        self.assertEqual(again["a"][0]["metadata"]["uid"], groups["a"][0]["metadata"]["uid"])
        # A Job that waits for each index alone counts a failed pod only when its replacement is there.
        until(lambda: {job["metadata"]["name"].split("-")[2]: job["status"].get("failed", 0) for job in release.jobs()} == {"a": 0, "b": 1},
              release.describe)
        self.assertEqual(release.job_set()["status"]["restarts"], 0)

    def test_an_upgrade_changes_nothing_or_makes_another(self):
        cluster.volume("set-life")
        release, groups = self.start("set-life", "persistence.enabled=true")
        first = release.job_set()
        release.helm("upgrade")
        self.assertEqual(release.running_in(a=1, b=2)["a"][0]["metadata"]["uid"], groups["a"][0]["metadata"]["uid"])
        self.assertEqual(release.job_set()["metadata"]["uid"], first["metadata"]["uid"])
        release.helm("upgrade", "cluster.suspend=true")
        until(lambda: not release.pods(), release.describe)
        release.helm("upgrade")
        release.running_in(a=1, b=2)
        self.assertEqual(release.job_set()["metadata"]["uid"], first["metadata"]["uid"])
        for change in ("image.tag=other", "cluster.backoffLimit=9"):
            name = release.job_set()["metadata"]["name"]
            release.helm("upgrade", change)
            until(lambda old=name: [found["metadata"]["name"] for found in release.get("jobsets")] != [old]
                  and len(release.get("jobsets")) == 1, release.describe)
            release.running_in(a=1, b=2)
        cluster.helm("uninstall", "run1", "-n", release.name)
        until(lambda: not release.get("jobsets,jobs,pods,services"), release.describe)


class PodSecurity(unittest.TestCase):
    def test_the_host_network_needs_more_than_restricted(self):
        release = release_of("host-network", "network.profile=hostNetwork")
        release.helm("install")
        until(lambda: any("violates PodSecurity" in event["message"] for event in release.get("events")), release.describe)
        self.assertEqual(release.pods(), [])

    def test_shared_rdma_devices_do_not(self):
        cluster.node("rdma", {"pool": "rdma"}, **{"rdma/rdma_shared_device_a": "8"})
        release = release_of("rdma", "network.profile=rdmaSharedDevice", "nodeSelector.pool=rdma")
        release.helm("install")
        release.running(2)


class Verdicts(unittest.TestCase):
    """How the Job reacts when a pod has ended."""

    def start(self, name, *values):
        release = release_of(name, *values)
        release.helm("install")
        return release, release.running(2)

    def end_with(self, codes, index):
        """Makes a release for each code, whose pod with this index has ended with it. All at once, since each has to
        wait."""
        releases = {code: release_of(f"code-{code}") for code in codes}
        for release in releases.values():
            release.helm("install")
        pods = {code: release.running(2) for code, release in releases.items()}
        for code, release in releases.items():
            release.end_pod(pods[code][index], code)
        return releases

    def test_permanent_codes_fail_the_job_at_once(self):
        for code, release in self.end_with(PERMANENT, 0).items():
            with self.subTest(code=code):
                until(lambda found=release: found.conditions().get("Failed") == "PodFailurePolicy", release.describe)
                self.assertEqual(release.pods(), [])

    def test_a_checkpoint_or_an_unfit_node_is_no_failure(self):
        for code in (75, 79):
            with self.subTest(code=code):
                release, pods = self.start(f"code-{code}")
                release.end_pod(pods[0], code)
                again = until(lambda of=release: (now := of.pods()) and len(now) == 2 and now, release.describe)
                self.assertNotEqual(again[0]["metadata"]["uid"], pods[0]["metadata"]["uid"])
                self.assertEqual(again[1]["metadata"]["uid"], pods[1]["metadata"]["uid"])
                self.assertEqual(release.failed(), 0)

    def test_what_the_machine_did_is_counted_and_tried_again(self):
        for code, release in self.end_with(COUNTED, 1).items():
            with self.subTest(code=code):
                until(lambda found=release: found.failed() == 1 and len(found.pods()) == 2, release.describe)
                self.assertNotIn("Failed", release.conditions())

    def test_after_the_limit_the_job_fails(self):
        release, pods = self.start("limit", "cluster.backoffLimit=0")
        release.end_pod(pods[1], 1)
        until(lambda: release.conditions().get("Failed") == "BackoffLimitExceeded", release.describe)
        self.assertEqual(release.pods(), [])

    def test_the_leader_s_success_ends_the_job_and_the_other_pods(self):
        release, pods = self.start("code-0")
        release.end_pod(pods[0], 0)
        until(lambda: release.conditions().get("Complete") == "SuccessPolicy", release.describe)
        self.assertEqual(release.pods(), [])

    def test_where_any_pod_may_lead_the_success_of_any_ends_it(self):
        cluster.volume("any")
        release, pods = self.start("any-0", "persistence.enabled=true")
        release.end_pod(pods[1], 0)
        until(lambda: release.conditions().get("Complete") == "SuccessPolicy", release.describe)
        self.assertEqual(release.pods(), [])

    def test_each_index_has_a_wait_of_its_own(self):
        """Four disruptions in a row of different pods: the last pod is replaced as soon as the first."""
        release = release_of("waits", "cluster.replicas=4")
        release.helm("install")
        pods, waits = release.running(4), []
        for pod in pods:
            began = time.monotonic()
            release.end_pod(pod, 75)
            gone = pod["metadata"]["uid"]
            until(lambda gone=gone: len(release.pods()) == 4 and gone not in {p["metadata"]["uid"] for p in release.pods()}, release.describe)
            waits.append(time.monotonic() - began)
        self.assertLess(waits[-1], 20, f"twice Kubernetes' first wait of 10 s: {waits}")
        self.assertEqual(release.failed(), 0)

    def test_a_worker_s_success_does_not(self):
        release, pods = self.start("worker-0")
        release.end_pod(pods[1], 0)
        until(lambda: release.job()["status"].get("succeeded") == 1, release.describe)
        self.assertEqual(release.conditions(), {})
        self.assertEqual(len(release.pods()), 1)

    def test_an_evicted_pod_is_replaced_and_not_counted(self):
        release, pods = self.start("evicted")
        name = pods[1]["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": release.name}}
        cluster.kubectl("create", "--raw", f"/api/v1/namespaces/{release.name}/pods/{name}/eviction", "-f", "-",
                        text=json.dumps(eviction))
        until(lambda: (now := release.pods()) and len(now) == 2 and name not in [p["metadata"]["name"] for p in now],
              release.describe)
        self.assertEqual(release.failed(), 0)

    def test_a_preempted_pod_is_replaced_and_not_counted(self):
        """By the scheduler, for a pod with a higher PriorityClass on a full node."""
        cluster.node("tiny", {"pool": "tiny"}, cpu="2")
        cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "serving"}, "value": 10000})
        release, _ = self.start("preempted", "nodeSelector.pool=tiny")
        container = {"name": "server", "image": "server", "resources": {"requests": {"cpu": "1"}}}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server", "namespace": "default"}, "spec": {
            "priorityClassName": "serving", "nodeSelector": {"pool": "tiny"}, "containers": [container]}})
        until(lambda: any(event["reason"] == "Preempted" for event in release.get("events")) and len(release.pods()) == 1,
              release.describe)
        cluster.kubectl("delete", "pod", "server")
        release.running(2)
        self.assertEqual(release.failed(), 0)


class Size(unittest.TestCase):
    def test_an_elastic_job_is_scaled_by_an_upgrade(self):
        cluster.volume("elastic")
        release = release_of("elastic", "persistence.enabled=true", "cluster.minReplicas=1", "cluster.maxReplicas=4")
        release.helm("install")
        pods = release.running(2)
        uid = release.job()["metadata"]["uid"]
        for size in (4, 1):
            release.helm("upgrade", f"cluster.replicas={size}")
            now = release.running(size)
            self.assertEqual(now[0]["metadata"]["uid"], pods[0]["metadata"]["uid"])  # index 0 keeps running
            self.assertEqual(release.job()["metadata"]["uid"], uid)
        self.assertEqual(release.failed(), 0)

    def test_pods_with_a_gpu_are_packed(self):
        """Four pods of one GPU, beside which the other nodes stay whole."""
        for index in range(3):
            cluster.node(f"whole-{index}", {"pool": "whole"}, **{"nvidia.com/gpu": "8"})
        release = release_of("packed", "cluster.replicas=4", "cluster.gpusPerNode=1", "nodeSelector.pool=whole")
        release.helm("install")
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in release.running(4)}), 1)

    def test_groups_land_on_their_nodes(self):
        release = release_of("groups", "groups[0].name=big", "groups[0].replicas=1", "groups[0].gpusPerNode=8",
                          "groups[0].nodeSelector.pool=big", "groups[1].name=small", "groups[1].replicas=2",
                          "groups[1].gpusPerNode=2", "groups[1].nodeSelector.pool=small")
        release.helm("install")
        where = {pod["metadata"]["labels"]["lockstep/group"] + pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]:
                 pod["spec"]["nodeName"] for pod in release.running(3)}
        self.assertEqual(where, {"big0": "big", "small0": "small", "small1": "small"})
        self.assertEqual({pod["status"]["qosClass"] for pod in release.pods()}, {"Guaranteed"})
        hosts = release.get("configmaps", "-l", "app.kubernetes.io/instance=run1")[0]["data"]["hosts"].splitlines()
        pods = release.pods()
        self.assertEqual(sorted(line.split()[0] for line in hosts),
                         sorted(f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in pods))

    def test_pods_land_where_devices_are_that_they_claim(self):
        """What a driver of dynamic resource allocation would say of its node, the test writes: four GPUs, so two pods."""
        cluster.node("claimed", {})
        cluster.apply(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"},
             "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]}},
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "claimed"},
             "spec": {"driver": "gpu.nvidia.com", "nodeName": "claimed",
                      "pool": {"name": "claimed", "generation": 1, "resourceSliceCount": 1},
                      "devices": [{"name": f"gpu-{index}"} for index in range(4)]}})
        release = release_of("claims", "cluster.slots=2", "cluster.replicas=3", "cluster.resourceClaims[0].name=gpus",
                             "cluster.resourceClaims[0].resourceClaimTemplateName=two-gpus")
        release.kubectl("apply", "-f", ROOT / "k8s/samples/claims.yaml")
        release.helm("install")
        self.assertEqual({pod["spec"]["nodeName"] for pod in release.running(2)}, {"claimed"})
        until(lambda: any("cannot allocate all claims" in event["message"] for event in release.get("events")), release.describe)
        claims = until(lambda: len(found := [claim for claim in release.get("resourceclaims") if "allocation" in claim.get("status", {})]) == 2
                       and found, release.describe)
        devices = [result["device"] for claim in claims for result in claim["status"]["allocation"]["devices"]["results"]]
        self.assertEqual(sorted(devices), [f"gpu-{index}" for index in range(4)])

    def test_a_quota_holds(self):
        cluster.kubectl("apply", "-f", ROOT / "k8s/samples/namespace.yaml")
        cluster.kubectl("apply", "-f", ROOT / "k8s/samples/quota.yaml")
        cluster.helm("install", "run1", CHART, "-n", "team-a", *sets("cluster.gpusPerNode=4", "cluster.replicas=3",
                                                                     "cluster.priorityClassName=training"))
        self.addCleanup(cluster.helm, "uninstall", "run1", "-n", "team-a")  # other tests need the GPUs
        until(lambda: any("exceeded quota" in event["message"] for event in cluster.get("-n", "team-a", "events")),
              "no pod was refused by the quota")
        self.assertLessEqual(len(cluster.get("-n", "team-a", "pods")), 2)

    def test_a_team_has_its_quota_and_its_priority(self):
        def refused(why):
            until(lambda: any(why in event["message"] for event in release.get("events")), release.describe)

        cluster.helm("install", "team-c", TEAM, *sets("quota.cpu=3", "priority.classes={of-team-c}", "priority.create=true"))
        release = release_of("team-c")
        release.helm("install")
        refused("exceeded quota: other-priorities,")
        self.assertEqual(release.pods(), [])
        release.helm("upgrade", "cluster.replicas=4", "cluster.priorityClassName=of-team-c")
        release.running(3)
        refused("exceeded quota: team,")
        cluster.helm("uninstall", "team-c")  # the quota goes; the namespace, its runs and their class stay
        release.running(4)


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("skipped: openssl is not installed (scripts/install-dependencies.sh --k8s)")
        sys.exit(77)
    unittest.main(verbosity=2)
