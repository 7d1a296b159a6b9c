#!/usr/bin/env python3
"""Releases in queues of the real Kueue: they wait for quota, borrow, are preempted and continue, start smaller, grow,
and are placed in one rack. Nodes are kwok's, so pods run nothing; cluster_test.py has a preemption with pods that
train."""
import concurrent.futures
import shutil
import sys
import unittest

import kueue as kueue_module
from control_plane import ControlPlane, until
from jobset import JobSets
from kube_tools import ROOT, TEAM, sets
from kueue import Kueue
from release import Release
from trainer import NO_RUNTIME_YET, Trainer

GPU = "nvidia.com/gpu"
A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
cluster = kueue = None


def setUpModule():
    global cluster, kueue
    cluster = unittest.enterModuleContext(ControlPlane())
    cluster.define()
    cluster.node("cpu-0", {})
    kueue = unittest.enterModuleContext(Kueue(cluster.kubectl, cluster.kubeconfig))


class Queued(unittest.TestCase):
    """Releases that name the queue of their namespace."""

    def install(self, name, *values):
        release = Release(cluster, name, "queue.name=training", *values)
        done = release.helm("install", check=False)
        if done.returncode != 0:
            self.assertRegex(done.stderr, NO_RUNTIME_YET)
            release.helm("upgrade")
        self.addCleanup(release.cluster.helm, "uninstall", "run1", "-n", name)
        return release

    def waits(self, release):
        """Waits until none of its pods is left and its workload has no quota."""
        until(lambda: release.job()["spec"].get("suspend") and release.get("workloads") and not release.pods(), release.describe)

    def says(self, release, reason):
        """Waits until Kueue gives this reason for a workload without quota."""
        def said():
            conditions = [c for workload in release.get("workloads") for c in workload.get("status", {}).get("conditions", [])]
            return any(c["type"] == "QuotaReserved" and c["status"] == "False" and reason in c["message"] for c in conditions)
        until(said, lambda: reason + "\n" + release.describe())


class Queue(Queued):
    def test_a_job_waits_for_quota_is_preempted_and_goes_on(self):
        kueue.priority("urgent", 1000)
        low = self.install("low")
        self.waits(low)
        kueue.queue("shared", cpu=2, memory="2Gi")
        kueue.local_queue("low", "shared")
        first = low.running(2)

        equal = self.install("equal")
        kueue.local_queue("equal", "shared")
        self.says(equal, "insufficient unused quota")
        self.waits(equal)

        high = self.install("high", "queue.priorityClass=urgent")
        kueue.local_queue("high", "shared")
        pods = high.running(2)
        self.waits(low)
        self.assertEqual(low.failed(), 0)

        high.end_pod(pods[0], 0)
        until(lambda: high.conditions().get("Complete"), high.describe)
        # Kueue takes the older one first, unless it has just looked at it when the quota becomes free.
        for second in self.trains_to_its_end(low, equal):
            self.trains_to_its_end(second)
        again = {p["metadata"]["uid"] for p in low.get("pods")}
        self.assertTrue(again)
        self.assertFalse(again & {p["metadata"]["uid"] for p in first})

    def trains_to_its_end(self, *releases):
        """Ends the first of them that runs; returns the others."""
        done = until(lambda: next((r for r in releases if len(r.pods()) == 2), None),
                     lambda: "".join(r.describe() for r in releases))
        done.end_pod(done.pods()[0], 0)
        until(lambda: done.conditions().get("Complete") == "SuccessPolicy", done.describe)
        return [r for r in releases if r is not done]

    def test_it_starts_smaller_where_quota_is_short(self):
        kueue.queue("narrow", cpu=2, memory="2Gi")
        release = self.install("partial", "cluster.replicas=4", "queue.minReplicas=1")
        kueue.local_queue("partial", "narrow")
        pods = release.running(2)
        self.assertEqual([release.job()["spec"][key] for key in ("parallelism", "completions")], [2, 2])
        args = pods[0]["spec"]["containers"][0]["args"]
        self.assertEqual(args[args.index("--expect-hosts") + 1], "1")

    def test_an_elastic_job_grows_as_far_as_the_quota(self):
        cluster.volume("growing")
        kueue.queue("three", cpu=3, memory="3Gi")
        release = self.install("growing", "persistence.enabled=true", "cluster.maxReplicas=4")
        kueue.local_queue("growing", "three")
        leader = release.running(2)[0]["metadata"]["uid"]
        release.helm("upgrade", "cluster.replicas=3")
        self.assertEqual(release.running(3)[0]["metadata"]["uid"], leader)
        release.helm("upgrade", "cluster.replicas=4")
        self.says(release, "insufficient unused quota")
        self.assertEqual(len(release.pods()), 3)
        release.helm("upgrade", "cluster.replicas=1")
        self.assertEqual(release.running(1)[0]["metadata"]["uid"], leader)
        self.assertEqual(release.failed(), 0)

    def test_each_group_is_admitted_by_itself(self):
        kueue.queue("two", cpu=2, memory="2Gi")
        release = self.install("kinds", "groups[0].name=a", "groups[0].replicas=2", "groups[1].name=b", "groups[1].replicas=1")
        kueue.local_queue("kinds", "two")
        pods = until(release.pods, release.describe)  # of either release, as the queue decides
        self.says(release, "insufficient unused quota")
        self.assertEqual(len({pod["metadata"]["labels"]["lockstep/group"] for pod in pods}), 1)
        self.assertEqual(len(release.get("workloads")), 2)
        kueue.queue("two", cpu=3, memory="3Gi")
        release.running(3)

    def test_the_groups_of_a_job_set_are_admitted_together(self):
        self.enterContext(JobSets(cluster.kubectl, cluster.kubeconfig))
        self.check_all_groups_or_none("jobset")

    def test_the_groups_of_a_train_job_are_admitted_together(self):
        """Kueue holds the TrainJob, and leaves the JobSet that Trainer makes of it alone."""
        for controller in (JobSets, Trainer):
            self.enterContext(controller(cluster.kubectl, cluster.kubeconfig))
        release = self.check_all_groups_or_none("trainjob")
        until(lambda: "Complete" in {c["type"] for c in release.held("trainjob")["status"]["conditions"] if c["status"] == "True"},
              release.describe)

    def check_all_groups_or_none(self, mode):
        """Quota for one of two groups is none; both wait for a more urgent run that needs a pod's; both go on. Returns the
        release, which has come to its end."""
        queue, urgent_class = f"of-{mode}s", f"before-{mode}s"
        kueue.priority(urgent_class, 1000)
        kueue.queue(queue, cpu=2, memory="2Gi")
        release = self.install(f"gang-{mode}", f"mode={mode}", "groups[0].name=a", "groups[0].replicas=2", "groups[1].name=b",
                               "groups[1].replicas=1")
        kueue.local_queue(release.name, queue)
        self.says(release, "couldn't assign flavors to pod set b")  # there were room for the other
        self.assertEqual((len(release.get("workloads")), release.get("pods")), (1, []))
        kueue.queue(queue, cpu=3, memory="3Gi")
        first = {pod["metadata"]["uid"] for pod in release.running(3)}

        urgent = self.install(f"before-{mode}", f"queue.priorityClass={urgent_class}", "cluster.replicas=1")
        kueue.local_queue(urgent.name, queue)
        (pod,) = urgent.running(1)
        until(lambda: release.held(mode)["spec"]["suspend"] and not release.pods(), release.describe)  # one would have been enough
        urgent.end_pod(pod, 0)
        groups = release.running_in(a=2, b=1)
        self.assertEqual(len(release.get("workloads")), 1)
        self.assertFalse(first & {pod["metadata"]["uid"] for pods in groups.values() for pod in pods})
        self.assertEqual([job["status"].get("failed", 0) for job in release.jobs()], [0, 0])
        release.end_pod(groups["a"][0], 0)
        until(lambda: release.job_set()["status"].get("terminalState") == "Completed", release.describe)
        return release

    def test_helm_test_waits_for_room_for_all_of_its_pods(self):
        kueue.queue("tested", cpu=3, memory="3Gi")
        release = self.install("tested")
        kueue.local_queue("tested", "tested")
        release.running(2)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            test = threads.submit(release.helm_test)
            self.says(release, "insufficient unused quota")
            self.assertEqual(len(release.pods()), 2)
            kueue.queue("tested", cpu=4, memory="4Gi")
            release.end_test(0)
            self.assertEqual(test.result().returncode, 0, test.result().stderr)
            # The pods and the workload of the previous test do not block the next one, whichever way it ended.
            for code in (1, 0):
                test = threads.submit(release.helm_test)
                release.end_test(code)
                self.assertEqual(test.result().returncode, code, test.result().stderr)
        self.assertEqual(release.failed(), 0)

    def test_a_team_has_a_queue(self):
        kueue.queue("pool", cpu=2, memory="2Gi")
        cluster.helm("install", "team-c", TEAM, *sets("queue.clusterQueue=pool"))
        self.install("team-c").running(2)

    def test_an_mpi_job_waits_too(self):
        cluster.start_mpi_operator()
        release = self.install("mpi", "mode=mpijob")
        until(lambda: release.get("workloads"), release.describe)
        self.assertEqual(release.pods(), [])
        kueue.queue("operator", cpu=2, memory="2Gi")
        kueue.local_queue("mpi", "operator")
        release.running(2)


class Samples(Queued):
    """What k8s/samples has for Kueue, unchanged."""

    def sample(self, name):
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", ROOT / f"k8s/samples/{name}.yaml")

    def test_a_team_borrows_what_the_other_leaves_and_gives_it_back(self):
        for node in ("a100-0", "a100-1"):
            cluster.node(node, A100, **{GPU: "8"})
        for team in ("team-a", "team-b"):
            cluster.namespace(team)
        self.sample("kueue")
        borrower = self.install("team-a", "cluster.gpusPerNode=4", "cluster.replicas=3", "queue.priorityClass=research")
        pods = borrower.running(3)
        self.assertLessEqual({pod["spec"]["nodeName"] for pod in pods}, {"a100-0", "a100-1"})
        (workload,) = borrower.get("workloads")
        self.assertEqual(workload["status"]["admission"]["clusterQueue"], "team-a")

        owner = self.install("team-b", "cluster.gpusPerNode=8", "cluster.replicas=1")
        (pod,) = owner.running(1)
        self.waits(borrower)
        self.assertEqual(borrower.failed(), 0)
        owner.end_pod(pod, 0)
        borrower.running(3)

    def test_pods_of_a_job_are_in_one_rack(self):
        """Racks with one node each and one with two, so that only one rack has room for two pods that need a node
        each."""
        self.sample("topology")
        for rack, nodes in {"r0": 1, "r1": 1, "r2": 2, "r3": 1, "r4": 1}.items():
            for node in range(nodes):
                labels = {"cloud.provider.com/topology-block": "b0", "cloud.provider.com/topology-rack": rack, "lockstep/pool": "racks"}
                cluster.node(f"{rack}-{node}", labels, **{GPU: "8"})
        values = ("cluster.gpusPerNode=8", "queue.topology=required", "queue.topologyLevel=cloud.provider.com/topology-rack")
        large = self.install("three-of-a-rack", *values, "cluster.replicas=3")
        self.says(self.queued(large), 'topology "racks" allows to fit only 2 out of 3 pod')
        two = self.queued(self.install("two-of-a-rack", *values))
        self.assertEqual({pod["spec"]["nodeName"] for pod in two.running(2)}, {"r2-0", "r2-1"})
        self.assertEqual(large.pods(), [])

    def queued(self, release):
        kueue.local_queue(release.name, "racks")
        return release


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("skipped: openssl is not installed (scripts/install-dependencies.sh --k8s)")
        sys.exit(77)
    if kueue_module.missing():
        print(f"skipped: {kueue_module.missing()}")
        sys.exit(77)
    unittest.main(verbosity=2)
