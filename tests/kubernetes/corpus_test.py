#!/usr/bin/env python3
"""Good and bad jobs get the same verdict from `lockstep check --no-data` and from `helm template`, as far as a schema
can express it.

A job of tests/bad/jobs with a file `schema` ("no: <reason>") breaks a rule that no schema can express. One whose
mistake is in its overrides (`args`) does not apply to a values file."""
import concurrent.futures
import os
import subprocess
import unittest

from kube_tools import ROOT, template

# What Helm accepts although the program refuses it as a job file, and why that is right.
HELM_TAKES = {
    "28_no_job": "values without a job: the chart then trains the digits",
    "29_empty_file": "the same",
    "35_merge_key": "Helm's YAML merges maps by <<, so the job is whole when it reaches the pods",
    "43_boolean_word": "Helm's YAML reads `yes` as true, so it reaches the pods as true",
}
VALUES = ["--set", "security.ssh.existingSecret=mine", "--set", "persistence.existingClaim=runs", "--set", "cluster.replicas=1"]


def check(job):
    """Whether the program accepts the job."""
    done = subprocess.run([os.environ["LOCKSTEP"], "check", "--no-data", job], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr


def render(job):
    """Whether Helm accepts it."""
    done = template("--values", job, *VALUES, check=False)
    return done.returncode == 0, done.stderr


def verdicts(jobs):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(jobs, pool.map(check, jobs), pool.map(render, jobs)))


class Corpus(unittest.TestCase):
    def test_good_jobs(self):
        # A sweep is no job: the chart does not run it.
        jobs = sorted(job for job in (ROOT / "examples").glob("*.yaml") if "\nsweep:" not in job.read_text(encoding="utf-8"))
        self.assertGreater(len(jobs), 4)
        for job, (taken, why), (rendered, refusal) in verdicts(jobs):
            with self.subTest(job=job.name):
                self.assertTrue(taken, why)
                self.assertTrue(rendered, refusal)

    def test_bad_jobs(self):
        folders = [folder for folder in sorted((ROOT / "tests/bad/jobs").iterdir()) if not (folder / "args").exists()]
        sayable = [folder for folder in folders if not (folder / "schema").exists()]
        self.assertGreater(len(sayable), 50)
        for job, (taken, why), (rendered, _) in verdicts([folder / "job.yaml" for folder in sayable]):
            with self.subTest(job=job.parent.name):
                self.assertFalse(taken, why)
                self.assertEqual(rendered, job.parent.name in HELM_TAKES)

    def test_a_refusal_names_the_key(self):
        job = ROOT / "tests/bad/jobs/01_unknown_key/job.yaml"
        _, refusal = render(job)
        self.assertIn("/job", refusal.replace("job.", "/job"))
        self.assertIn("additional properties", refusal)


if __name__ == "__main__":
    unittest.main(verbosity=2)
