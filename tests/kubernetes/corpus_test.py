#!/usr/bin/env python3
"""Good and bad jobs get the same verdict from `lockstep check --no-data` and from `helm template`, as far as a schema
can express it.

Of tests/bad/jobs.txt, those that break a rule which no schema can express are left out, and those whose mistake is in
their overrides, which do not apply to a values file."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml
from kube_tools import ROOT, programs, template

sys.path.insert(0, str(ROOT / "tests/bad"))
import table  # noqa: E402

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
        sayable = [case for case in table.read(ROOT / "tests/bad/jobs.txt") if not case.arguments and not case.unsayable]
        self.assertGreater(len(sayable), 50)
        with tempfile.TemporaryDirectory() as folder:
            for case in sayable:
                pathlib.Path(folder, case.name).write_text(case.files["job.yaml"], encoding="utf-8")
            for job, (taken, why), (rendered, _) in verdicts([pathlib.Path(folder, case.name) for case in sayable]):
                with self.subTest(job=job.name):
                    self.assertFalse(taken, why)
                    self.assertEqual(rendered, job.name in HELM_TAKES)

    def test_a_refusal_names_the_key(self):
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder, "job.yaml")
            job.write_text(table.read(ROOT / "tests/bad/jobs.txt")[0].files["job.yaml"], encoding="utf-8")
            _, refusal = render(job)
        self.assertIn("/job", refusal.replace("job.", "/job"))
        self.assertIn("additional properties", refusal)


# What people write in YAML, and the corners of its two versions.
SCALARS = """0 -0 +0 00 5 -5 +5 05 010 0100 0777 -010 +010 08 09 008 0o17 0O17 0o8 0o 0x1F 0X1f 0x 0xg -0x1f 0x_1 0b11 0B11 0b2 -0b11 0b
1_000 1__0 _1 1_ _ 0_8 0_10 1_0.5 .1_0 ._5 1e1_0 1_0e1 12345678901234567 9007199254740993 1.0 1. .5 -.5 +.5 0.0 -0.0 1.50 0.1
0.30000000000000004 010.5 00.5 1e3 1E3 1e+3 1e-3 .5e3 1.e3 1e 1e+ 1e6 1e21 1e400 -1e400 100000000 123456789.5 1.2.3 .5.5 --5 +-5 1p3
0x1p3 1e3f 12:30 1:30 1:60 190:20:30 12:30:45.5 -1:30 1:2:3:4 10:5 2024-01-01 2024-1-1 2024-01 2024-13-45 20240131 01-02-2024
2024-01-01T00:00:00Z 2024-01-01T1:02:03 2024-01-01T00:00:00+02:00 2001-12-14t21:59:43.10-05:00 true True TRUE tRue false False FALSE y Y
yes Yes YES yEs n N no No NO nO on On ON oN off Off OFF oFF t T f F null1 nil none None NONE na NA N/A nan NaN inf Inf .inf .Inf
-.inf +.inf .nan .NaN -.nan .INF .NAN Infinity ~/data ~a a~ nUll = == << <<a . .. + a-b a_b a.b a/b /a/b a:b x86_64 v1.2 1a a1 1st 0a
0day 007bond 1e3x 0xfoo 8% 1/2 1-2 1+2 10k 16Gi 1s 5m on/off yes/no no-op n1 y2 NO2 off_by_one True1 trueish falsey null-model
Null_ resnet-20 1.0-rc1 1.0.0 2024.1 192.168.0.1 ::1 fe80::1 00:11:22:33:44:55 1:2:3 0:0 0:30 3.14 6.02e23 1E-8""".split()


class OneMeaning(unittest.TestCase):
    """A scalar that `check` accepts means the same to Helm; what it refuses, Helm or YAML 1.1 reads in another way."""

    JOB = "job:\n  model: lenet\n  data:\n    train: digits\n    {data}\n  epochs: 1\n  batch_size: 64\n  {more}\n"

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, data="", more=""):
        """The job as the program reads it, or None if it refuses."""
        job = self.write("job.yaml", self.JOB.format(data=data, more=more))
        done = subprocess.run([pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "bin/config_tool", "canonical", job],
                              capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["job"] if done.returncode == 0 else None

    @staticmethod
    def weights(keys):
        return "class_weights:" + "".join(f"\n      {key}: 1" for key in keys)

    def helm_reads(self, scalars):
        text = "".join(f"\n- {scalar}" for scalar in scalars)
        self.write("chart/Chart.yaml", "{apiVersion: v2, name: c, version: 0.1.0}\n")
        self.write("chart/templates/all.yaml", "v: {{ toJson .Values.v }}\n")
        done = subprocess.run([programs("helm") / "helm", "template", "r", self.folder / "chart", "--values",
                               self.write("values.yaml", f"v: {text}\n")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr + text)
        return json.loads(done.stdout.partition("v: ")[2])

    def test_scalars(self):
        self.assertGreaterEqual(len(SCALARS), 200)
        texts = [s for s in SCALARS if self.read(more=f"name: {s}")]
        numbers = {s: job["learning_rate"]["peak"] for s in SCALARS if (job := self.read(more=f"learning_rate: {s}"))}
        keys = [s for s in SCALARS if self.read(data=self.weights([s]))]
        self.assertGreater(min(len(texts), len(keys)), 90)
        self.assertGreater(len(numbers), 20)
        self.assertEqual(self.helm_reads(texts), texts)
        self.assertEqual(self.helm_reads(numbers), list(numbers.values()))
        job = self.write("all.yaml", self.JOB.format(data=self.weights(keys), more=""))
        done = template("--values", job, *VALUES, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        maps = [d for d in yaml.safe_load_all(done.stdout) if d and d["kind"] == "ConfigMap"]
        rendered = next(d["data"]["job.yaml"] for d in maps if "job.yaml" in d["data"])
        self.assertEqual(set(yaml.safe_load(rendered)["job"]["data"]["class_weights"]), set(keys))

        for scalar in set(SCALARS) - set(texts) - set(numbers):
            with self.subTest(refused=scalar):
                self.assertTrue(re.fullmatch("-?1e400|[-+]?\\.nan|[-+]?\\.inf", scalar, re.I) or self.has_two_meanings(scalar))

    def has_two_meanings(self, scalar):
        try:
            old = yaml.safe_load(scalar)  # by the rules of YAML 1.1
        except ValueError:  # a date of month 13
            return True
        return not isinstance(old, str) or self.helm_reads([scalar]) != [scalar]


if __name__ == "__main__":
    unittest.main(verbosity=2)
