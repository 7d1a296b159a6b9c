#!/usr/bin/env python3
"""How long a Job waits before it makes a pod anew that is disrupted again and again, and how k8s/samples ends that. The
nodes are kwok's, so pods run nothing; cluster_test.py has the same with pods that train."""
import concurrent.futures
import shutil
import sys
import time
import unittest

import yaml
from control_plane import ControlPlane, until
from kube_tools import ROOT
from release import Release

SAMPLE = ROOT / "k8s/samples/forget-disruptions.yaml"
cluster = None


def apply_sample(release):
    """Without the sample's own pods, which would come each minute: the test does what they do."""
    release.kubectl("apply", "--server-side", "-f", SAMPLE)
    release.kubectl("patch", "cronjob", "forget-disruptions", "-p", '{"spec": {"suspend": true}}')


def forget(kubectl, namespace):
    """Does what the sample's pod would do, with its rights. `kubectl`: a function that runs it."""
    job = next(item for item in yaml.safe_load_all(SAMPLE.read_text(encoding="utf-8")) if item["kind"] == "CronJob")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return kubectl("-n", namespace, *pod["containers"][0]["command"][1:], f"--as=system:serviceaccount:{namespace}:{pod['serviceAccountName']}")


def setUpModule():
    global cluster
    cluster = unittest.enterModuleContext(ControlPlane())
    cluster.define()
    cluster.node("cpu-0", {})


class Backoff(unittest.TestCase):
    def install(self, name):
        release = Release(cluster, name)
        release.helm("install")
        return release

    def seconds(self, release):
        """Disrupts the pod of index 1; returns the seconds until it has been made anew."""
        (_, pod) = release.running(2)
        began = time.monotonic()
        release.end_pod(pod, 75)
        until(lambda: pod["metadata"]["uid"] not in {p["metadata"]["uid"] for p in release.running(2)}, release.describe)
        return time.monotonic() - began

    def test_each_wait_is_twice_the_one_before_and_with_the_sample_the_tenth_is_as_the_first(self):
        forgets = self.install("forgets")
        apply_sample(forgets)
        doubles = self.install("doubles")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            doubled = threads.submit(lambda: [self.seconds(doubles) for _ in range(3)])
            waits = []
            for _ in range(10):
                forget(cluster.kubectl, forgets.name)
                waits.append(self.seconds(forgets))
            print("seconds without the pod, by disruption:", *(f"{seconds:.0f}" for seconds in waits))
            self.assertLess(max(waits), 38, f"the third one would be 40 s otherwise: {waits}")
            self.assertTrue(all(expected - 2 < wait < expected + 8 for wait, expected in zip(doubled.result(), (10, 20, 40))),
                            doubled.result())
        self.assertEqual((doubles.failed(), forgets.failed()), (0, 0))

    def test_failures_that_count_still_do(self):
        release = self.install("counts")
        apply_sample(release)
        (_, pod) = release.running(2)
        release.end_pod(pod, 137)
        until(lambda: release.failed() == 1, release.describe)
        forget(cluster.kubectl, release.name)
        self.assertEqual(release.running(2)[1]["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"], "1")


if __name__ == "__main__":
    if not shutil.which("openssl"):
        print("skipped: openssl is not installed (scripts/install-dependencies.sh --k8s)")
        sys.exit(77)
    unittest.main(verbosity=2)
