#!/usr/bin/env python3
"""Two teams on a real Kubernetes, by the commands of docs/kubernetes-operate.md: each has a guaranteed share, borrows
what the other leaves, and gives it back; a more urgent run of a team goes first. Whoever makes room writes a
checkpoint, and goes on from it to the same bits."""
import pathlib
import tempfile
import unittest

import kueue
from cluster import Run, wait_until
from kube_tools import TEAM
from on_a_cluster import FEW, OnACluster

SHARE = {"cpu": "800m", "memory": "800Mi"}  # two pods


class TeamRun(Run):
    """Installed with the values that the notes of the team's release show."""

    def __init__(self, cluster, name, steps, team, **options):
        self.files = (team,)
        super().__init__(cluster, name, steps, namespace=team.stem, **options)

    def suspended(self):
        return self.job()["spec"].get("suspend") and not self.pods()

    def interrupted(self):
        return [event for event in self.events("end") if event["interrupted"]]


class Teams(OnACluster):
    def setUp(self):
        if kueue.missing():
            self.skipTest(kueue.missing())
        self.queue = self.enterContext(kueue.Kueue(self.cluster.call_kubectl, self.cluster.environment["KUBECONFIG"]))
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.queue.priority("urgent", 1000)

    def team(self, name):
        """Makes one; returns the file of its values."""
        self.queue.queue(name, cohort="research", **SHARE)
        helm, file = self.cluster.helm, self.folder / f"{name}.yaml"
        self.cluster.run(helm, "install", name, TEAM, "--set", f"quota.gpus=0,queue.clusterQueue={name}")
        self.cluster.run("bash", "-c", f"{helm} get notes {name} | sed '1,/^team.yaml is:/d' > {file}")
        self.cluster.apply(*self.cluster.volume(name))
        return file

    def run_of(self, team, name, steps, pods, *values):
        return self.install(TeamRun, name=name, steps=steps, team=team, values=[f"cluster.replicas={pods}", *values])

    def test_guaranteed_shares_borrowing_and_priority(self):
        first, second = self.team("team-a"), self.team("team-b")
        long = self.run_of(first, "long", 3000, 3)  # one pod more than its share
        long.wait_for_step(50, ranks=3)

        owner = self.run_of(second, "owner", FEW, 2)
        wait_until(long.suspended, "what was borrowed to be given back")
        first_time = len(long.interrupted())  # twice where its pods are not told at once
        self.assertGreater(first_time, 0)
        self.check_bits(owner)
        self.assertEqual(owner.ranks(), [2])
        before = len(long.events("step"))
        wait_until(lambda: len(long.events("step")) > before, "the run that had borrowed")

        urgent = self.run_of(first, "urgent", FEW, 2, "queue.priorityClass=urgent")
        wait_until(long.suspended, "a more urgent run of the same team to go first")
        self.assertGreater(len(long.interrupted()), first_time)
        self.check_bits(urgent)
        self.check_bits(long)
        self.check_no_step_was_lost(long)
        self.assertEqual((long.ranks()[0], long.ranks()[-1]), (3, 3))
        self.assertEqual(long.job()["status"].get("failed", 0), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
