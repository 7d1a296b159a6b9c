"""The base of the tests on a real cluster."""
import itertools
import re
import time
import unittest

from cluster import PATIENCE, Cluster, Run, quiet_hash, wait_until

# A pod whose node is gone is given up after 5 s, and not after Kubernetes' 300.
TOLERATIONS = [f"tolerations[{i}].{key}={value}" for i, reason in enumerate(("unreachable", "not-ready")) for key, value in
               {"key": f"node.kubernetes.io/{reason}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": "5"}.items()]
STEPS = 1500  # enough for a pod to come back in time
FEW = 300  # if no pod has to


class OnACluster(unittest.TestCase):
    settings = {}  # of the cluster

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(**cls.settings)
        cls.enterClassContext(cls.cluster)

    def install(self, kind=Run, name=None, steps=STEPS, **options):
        name = name or self.id().rsplit("test_", 1)[-1].replace("_", "-")
        run = kind(self.cluster, name, steps, **options)
        self.addCleanup(run.remove)
        return run

    def check_bits(self, run):
        self.assertEqual(run.end()["parameters_sha256"], quiet_hash(run.steps))
        times = [event["time"] for event in run.events("step")]
        pause = max(after - before for before, after in itertools.pairwise(times))
        print(f"{run.name}: {run.steps} steps in {times[-1] - times[0]:.0f} s, with a pause of {pause:.0f} s at most", flush=True)

    def check_no_step_was_lost(self, run):
        self.assertEqual([event["step"] for event in run.events("step")], list(range(1, run.steps + 1)))

    def check_what_it_waits_for(self, run, why):
        """The command in the notes shows it, while nothing runs."""
        began = time.monotonic()
        notes = self.cluster.run(self.cluster.helm, "status", run.name).stdout
        command = f"PATH={self.cluster.bin}:$PATH " + re.search(r"(?m)^waits: +(kubectl .*)", notes)[1]
        wait_until(lambda: why in self.cluster.run("sh", "-c", command).stdout, why)
        self.assertEqual({pod["status"]["phase"] for pod in run.pods()}, {"Pending"})
        print(f"{run.name}: said after {time.monotonic() - began:.0f} s")

    def helm_test(self, run, code):
        """The report, as shown by Helm, of a test whose leader must have ended with `code`."""
        began = time.monotonic()
        done = self.cluster.run(self.cluster.helm, "test", run.name, "--logs", f"--timeout={PATIENCE}s", check=False)
        print(f"{run.name}: helm test took {time.monotonic() - began:.0f} s")
        self.assertEqual(done.returncode != 0, code != 0, done.stdout + done.stderr)
        leader = f"{run.name}-test"
        self.assertIn(self.cluster.kubectl("logs", leader), done.stdout)
        ended = self.cluster.get("pod", leader)["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual(ended["exitCode"], code, done.stdout)
        return done.stdout
