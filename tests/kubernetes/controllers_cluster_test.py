#!/usr/bin/env python3
"""Jobs on a real Kubernetes whose pods other controllers make or admit: the real Kueue, and those of JobSets, TrainJobs and
MPIJobs. In every case the bits are those of the run without Kubernetes."""
import time
import unittest

import kueue
from cluster import MpiRun, SetRun, TrainRun, wait_until
from jobset import JobSets
from on_a_cluster import FEW, TOLERATIONS, OnACluster
from trainer import Trainer

LONG = 12000  # until a lost node's pod has been replaced
ON_NODE = "nodeSelector.kubernetes\\.io/hostname"


class Controllers(OnACluster):
    def start(self, *controllers):
        """Starts them until the end of the test; returns the last one."""
        return [self.enterContext(controller(self.cluster.call_kubectl, self.cluster.environment["KUBECONFIG"]))
                for controller in controllers][-1]

    def start_queue(self):
        if kueue.missing():
            self.skipTest(kueue.missing())
        queue = self.start(kueue.Kueue)
        queue.queue("default", cpu="800m", memory="800Mi")
        queue.local_queue("default", "default")
        return queue

    def test_a_lost_leader_in_a_queue(self):
        """Another pod leads, and Kueue ends the lost one, so that a third is made, and taken in, while the node is away."""
        self.start_queue()
        run = self.install(steps=LONG, values=["cluster.replicas=2", "queue.name=training", "cluster.terminationGracePeriodSeconds=20",
                                               *TOLERATIONS])
        run.wait_for_step(50, ranks=2)
        lost, node = run.pod(0), run.node(0)
        self.assertNotEqual(node, run.node(1))
        began = time.monotonic()
        self.cluster.lose(node)
        self.addCleanup(self.cluster.revive, node)
        wait_until(lambda: run.ranks() == [2, 1, 2] or run.done(), "two ranks again")
        self.assertEqual(run.ranks(), [2, 1, 2], "too few steps for this machine")
        print(f"{run.name}: two ranks again after {time.monotonic() - began:.0f} s")
        self.assertNotEqual(run.pod(0), lost)
        self.assertEqual(run.node(0), run.node(1))
        self.check_bits(run)
        self.assertEqual(run.job()["status"].get("failed", 0), 0)

    def test_a_queue(self):
        """A run is preempted in the queue by a more urgent one, writes a checkpoint, and continues from it afterwards."""
        self.start_queue().priority("urgent", 1000)
        run = self.install(values=["cluster.replicas=2", "queue.name=training"])
        run.wait_for_step(50)
        urgent = self.install(name="urgent", steps=FEW, values=["cluster.replicas=2", "queue.name=training",
                                                                "queue.priorityClass=urgent"])
        wait_until(lambda: run.job()["spec"]["suspend"], "the preemption")
        self.check_bits(urgent)
        self.assertIsNone(run.condition())
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertGreater(len(run.ranks()), 1)
        self.assertEqual((run.ranks()[0], run.ranks()[-1]), (2, 2))
        self.assertEqual(run.job()["status"].get("failed", 0), 0)

    def test_an_mpi_job(self):
        self.cluster.start_mpi_operator()
        run = self.install(MpiRun, steps=FEW, values=["mode=mpijob", "cluster.replicas=2"])
        report = self.helm_test(run, 0)
        self.assertRegex(report, r"(?m)^all-reduce  all sums right; ")
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.ranks(), [2])

    def test_a_job_set(self):
        """One object with both groups, whose worker is killed and whose leader's node is lost. The other group goes on to the
        end; the JobSet has ended when the first group has, whose new pod looks for the others for cluster.preflightSeconds."""
        self.cluster.define("jobset")
        self.start(JobSets)
        run = self.install(SetRun, values=["mode=jobset", "groups[0].name=near", "groups[0].replicas=1", f"groups[0].{ON_NODE}=node-0",
                                           "groups[1].name=far", "groups[1].replicas=2", f"groups[1].{ON_NODE}=node-1", "cluster.preflightSeconds=30",
                                           *TOLERATIONS])
        run.wait_for_step(50, ranks=3)
        self.assertEqual(run.nodes(), [("far", "node-1"), ("far", "node-1"), ("near", "node-0")])
        self.cluster.kubectl("delete", "pod", run.pod_of("far", 1), "--force", "--grace-period=0")
        step = wait_until(lambda: 2 in run.ranks() and run.events("step")[-1]["step"], "the others to go on")
        run.wait_for_step(step + 1)
        launches = len(run.ranks())
        self.cluster.lose("node-0")
        self.addCleanup(lambda: run.condition() or self.cluster.revive("node-0"))
        wait_until(run.done, "the other group to end the run")
        self.assertGreater(len(run.ranks()), launches, "too few steps for this machine")
        self.assertIsNone(run.condition())
        self.cluster.revive("node-0")
        self.check_bits(run)
        self.assertEqual(run.job()["status"]["restarts"], 0)

    def test_a_job_set_whose_leader_has_failed(self):
        """The other group is ended, too."""
        self.cluster.define("jobset")
        self.start(JobSets)
        began = time.monotonic()
        run = self.install(SetRun, values=["mode=jobset", "groups[0].name=near", "groups[0].replicas=1", "groups[1].name=far",
                                           "groups[1].replicas=1", "cluster.checkHosts=true", "network.minBandwidth=100000",
                                           "cluster.backoffLimit=0"])
        wait_until(lambda: {group for group, node in run.nodes() if node} == {"near", "far"}, "both groups")
        run.end("Failed")
        failed = time.monotonic()
        wait_until(lambda: [group for group, _ in run.nodes()] == ["near"], "the other group's pod to be gone")
        print(f"{run.name}: failed after {failed - began:.0f} s, the other group gone {time.monotonic() - failed:.0f} s later")
        self.assertEqual(run.events("step"), [])

    def test_a_train_job(self):
        """Of which Kubeflow's controller makes the same JobSet."""
        self.cluster.define("jobset")
        self.cluster.define("trainer")
        self.start(JobSets, Trainer)
        run = self.install(TrainRun, steps=FEW, values=["mode=trainjob", "groups[0].name=near", "groups[0].replicas=1",
                                                        "groups[1].name=far", "groups[1].replicas=2"])
        self.check_bits(run)
        self.check_no_step_was_lost(run)
        self.assertEqual(run.ranks(), [3])


if __name__ == "__main__":
    unittest.main()
