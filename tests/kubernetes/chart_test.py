#!/usr/bin/env python3
"""The charts by themselves, with the real Helm: lint, the suites of helm-unittest, every values file of ci/, names that
depend on their contents, and renders that are reproducible."""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import upgrades
import yaml
from kube_tools import CHART, CLUSTER, MONITORING, ROOT, TEAM, helm, programs, sets, template

CHARTS = (CHART, TEAM, MONITORING)
CI = sorted((CHART / "ci").glob("*-values.yaml"))
OWN_KEY = ("--set", "security.ssh.existingSecret=mine")


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(kind, *arguments):
    """The objects of a kind in a render with our own key."""
    return [d for d in documents(template(*OWN_KEY, *arguments).stdout) if d["kind"] == kind and "-test" not in d["metadata"]["name"]]


def job_name(*arguments):
    return of_kind("Job", *arguments)[0]["metadata"]["name"]


class Chart(unittest.TestCase):
    def test_lint(self):
        for chart, values in [(chart, values) for chart in CHARTS for values in (None, *sorted((chart / "ci").glob("*-values.yaml")))]:
            with self.subTest(chart=chart.name, values=values and values.name):
                words = ["--values", values] if values else []
                done = subprocess.run([programs("helm") / "helm", "lint", "--strict", chart, "--kube-version", "1.33.0", *words],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_suites(self):
        for chart in CHARTS:
            with self.subTest(chart=chart.name):
                done = subprocess.run([programs("helm") / "helm-unittest", "--strict", chart], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"Tests: +\d+ passed")

    def test_every_values_file_renders_the_same_twice(self):
        self.assertGreater(len(CI), 5)
        for values in CI:
            with self.subTest(values=values.name):
                first, second = (template("--values", values).stdout for _ in range(2))
                self.assertTrue(first)
                self.assertEqual(first, second)

    def test_no_pod_of_helm_test_is_there_for_tools_that_take_lists_apart(self):
        lists = [d for d in documents(template(*OWN_KEY).stdout) if d["kind"] == "List"]
        self.assertEqual([len(d["items"]) for d in lists], [2])
        for pod in lists[0]["items"]:
            notes = pod["metadata"]["annotations"]
            self.assertEqual((notes["helm.sh/hook"], notes["argocd.argoproj.io/hook"]), ("test", "Skip"))

    def test_without_a_cluster_two_renders_differ_in_the_key_alone(self):
        mask = re.compile(r"^  key: .*$", re.MULTILINE)
        first, second = (template().stdout for _ in range(2))
        self.assertNotEqual(first, second)
        self.assertEqual(len(mask.findall(first)), 1)
        self.assertEqual(mask.sub("", first), mask.sub("", second))

    def test_ssh_reads_the_key(self):
        secret = next(d for d in documents(template().stdout) if d["kind"] == "Secret")
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(secret["data"]["key"]))
            file.flush()
            done = subprocess.run(["ssh-keygen", "-y", "-f", file.name], capture_output=True, text=True, check=True)
        self.assertTrue(done.stdout.startswith("ecdsa-sha2-nistp256 "), done.stdout)


class Names(unittest.TestCase):
    """The name of a Job changes if and only if a value changes that is immutable in a Job."""
    PLAIN = sets("persistence.enabled=true")

    def test_same_values_same_name(self):
        self.assertEqual(job_name(*self.PLAIN), job_name(*self.PLAIN))

    def test_what_changes_the_name(self):
        plain = job_name(*self.PLAIN)
        for change in ("image.tag=other", "cluster.replicas=3", "resources.limits.cpu=2", "nodeSelector.disk=fast", "persistence.directory=b",
                       "cluster.maxReplicas=4", "network.sshPort=2223", "cluster.terminationGracePeriodSeconds=60"):
            with self.subTest(change=change):
                self.assertNotEqual(plain, job_name(*self.PLAIN, *sets(change)))

    def test_what_does_not(self):
        plain = job_name(*self.PLAIN)
        for change in ("cluster.labels.cost=a", "cluster.backoffLimit=1", "observability.podMonitor.enabled=true",
                       "security.networkPolicy.enabled=false", "cluster.activeDeadlineSeconds=60", "cluster.suspend=true", "queue.name=a"):
            with self.subTest(change=change):
                self.assertEqual(plain, job_name(*self.PLAIN, *sets(change)))

    def test_an_elastic_job_keeps_its_name_and_template(self):
        jobs = [of_kind("Job", *self.PLAIN, *sets("cluster.maxReplicas=8", f"cluster.replicas={n}"))[0] for n in (2, 5)]
        self.assertEqual([job["spec"]["parallelism"] for job in jobs], [2, 5])
        for job in jobs:
            del job["spec"]["parallelism"], job["spec"]["completions"]
        self.assertEqual(jobs[0], jobs[1])

    def test_the_hosts_are_the_pods(self):
        values = ["--values", CHART / "ci" / "groups-values.yaml"]
        hosts = [line.split() for line in of_kind("ConfigMap", *values)[0]["data"]["hosts"].splitlines()]
        pods = [f"{job['metadata']['name']}-{i}.{job['spec']['template']['spec']['subdomain']}"
                for job in of_kind("Job", *values) for i in range(job["spec"]["completions"])]
        self.assertEqual([name for name, _ in hosts], pods)
        self.assertEqual([slots for _, slots in hosts], ["slots=8", "slots=4", "slots=4"])

    def test_long_names_that_end_differently_share_nothing(self):
        """Helm separates the objects of releases, and a run directory belongs to one run."""
        def names(release):
            return {(d["kind"], d["metadata"]["name"]) for d in documents(template(*OWN_KEY, *self.PLAIN, release=release).stdout)}

        first, second = names("r" * 28 + "-lr01"), names("r" * 28 + "-lr02")
        self.assertEqual(len(first), len(second))
        self.assertEqual(first & second, set())

    def test_the_longest_names_are_dns_labels(self):
        done = template(*OWN_KEY, *sets("groups[0].name=a234567890123456", "groups[0].replicas=2000", "persistence.enabled=true"),
                        release="r" * 53)
        jobs = [d for d in documents(done.stdout) if d["kind"] == "Job"]
        self.assertLessEqual(len(jobs[0]["metadata"]["name"]) + len("-1999"), 63)


def numbers_in(part):
    """All numbers of an object."""
    if isinstance(part, (dict, list)):
        return [number for inner in (part.values() if isinstance(part, dict) else part) for number in numbers_in(inner)]
    return [part] if isinstance(part, (int, float)) and not isinstance(part, bool) else []


class Texts(unittest.TestCase):
    QUANTITIES = {"cluster.sharedMemory", "persistence.size", "data.fetchSize"}  # may be numbers

    def test_a_text_of_digits_is_no_number_in_any_object(self):
        render, found = upgrades.Renders(), []
        more = {"groups": [{"name": "2024"}], "cluster.labels": {"a": "2024"}, "cluster.env": [{"name": "A", "value": "2024"}],
                "job": {**upgrades.SAMPLES["job"], "name": "2024"}}
        texts = {path: "2024" for path, part in upgrades.leaves(json.loads((CHART / "values.schema.json").read_text()))
                 if part.get("type") in ("string", ["string", "null"]) and re.search(part.get("pattern", ""), "2024")}
        for path, value in (texts | more).items():
            if path in self.QUANTITIES:
                continue
            objects = render(upgrades.ALWAYS | upgrades.ALSO.get(path, {}) | {"observability.podMonitor.enabled": True, path: value})
            with self.subTest(path=path):
                self.assertIsNotNone(objects)
                self.assertNotIn(2024, numbers_in(objects))
                found += [path] if "2024" in str(objects) else []
        self.assertGreater(len(found), 25)


class Umbrella(unittest.TestCase):
    def test_a_parent_chart_switches_it_on(self):
        with tempfile.TemporaryDirectory() as folder:
            parent = pathlib.Path(folder)
            dependency = {"name": "lockstep", "version": "0.1.0", "condition": "lockstep.enabled", "tags": ["training"]}
            (parent / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": "all", "version": "1.0.0", "dependencies": [dependency]}))
            (parent / "values.yaml").write_text(json.dumps({"tags": {"training": True}, "global": {"domain": "example"}, "lockstep": {"enabled": True}}))
            shutil.copytree(CHART, parent / "charts/lockstep")
            on, off = (documents(template(*words, chart=parent).stdout) for words in ([], sets("lockstep.enabled=false")))
        self.assertIn("Job", [thing["kind"] for thing in on])
        self.assertEqual(off, [])


class Monitoring(unittest.TestCase):
    """The chart lockstep-monitoring."""

    def groups(self, *arguments):
        done = template(*arguments, chart=MONITORING)
        (rule,) = (thing for thing in documents(done.stdout) if thing["kind"] == "PrometheusRule")
        return rule["spec"]["groups"]

    def test_without_values_the_rules_are_those_of_bare_metal(self):
        self.assertEqual(self.groups(), yaml.safe_load((MONITORING / "rules/lockstep.yaml").read_text())["groups"])

    def test_its_package_has_rules_and_dashboards(self):
        with tempfile.TemporaryDirectory() as folder:
            helm("package", MONITORING, "--destination", folder)
            (package,) = pathlib.Path(folder).iterdir()
            self.assertEqual(template(chart=package).stdout, template(chart=MONITORING).stdout)

    def test_every_alert_has_a_section_that_its_runbook_names(self):
        sections = {line[3:].strip().lower() for line in (ROOT / "docs/alerts.md").read_text().splitlines() if line.startswith("## ")}
        alerts = [rule for group in self.groups("--set", "runbooks=https://a/alerts") for rule in group["rules"] if "alert" in rule]
        self.assertEqual(len(alerts), 16)
        for alert in alerts:
            page, _, section = alert["annotations"]["runbook_url"].partition("#")
            self.assertEqual((page, section), ("https://a/alerts", alert["alert"].lower()))
            self.assertIn(section, sections)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool_takes_other_thresholds(self):
        """Each of them another number."""
        alerts = json.loads((MONITORING / "values.schema.json").read_text())["properties"]["alerts"]["properties"]
        thresholds = {name: [41.5 + index for index, _ in enumerate(alert["default"]["thresholds"])] for name, alert in alerts.items()}
        values = {"alerts": {name: {"thresholds": numbers} for name, numbers in thresholds.items()}}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "values.json")
            file.write_text(json.dumps(values))
            groups = self.groups("--values", file)
            file.write_text(json.dumps({"groups": groups}))
            subprocess.run(["promtool", "check", "rules", file], check=True, stdout=subprocess.DEVNULL)
        for alert in (rule for group in groups for rule in group["rules"] if "alert" in rule):
            for number in thresholds[alert["alert"]]:
                self.assertEqual(alert["expr"].count(f"({number})"), 1, alert)


class Overrides(unittest.TestCase):
    """--set as handled by a real Helm, which passes fractions as text."""
    JOB = ("--set-json", 'job={"model": "resnet", "data": {"train": {"digits": {}}}, "steps": 1, "checkpoint": "never"}')

    def job(self, *pairs):
        return yaml.safe_load(of_kind("ConfigMap", *self.JOB, *sets(*pairs))[0]["data"]["job.yaml"])["job"]

    def test_fractions_are_numbers(self):
        job = self.job("job.learning_rate=0.01", "job.data.normalize.mean={0.5,1}", "job.data.normalize.std={1,.25}")
        self.assertEqual(job["learning_rate"], 0.01)
        self.assertEqual(job["data"]["normalize"], {"mean": [0.5, 1], "std": [1, 0.25]})

    def test_whole_numbers_are_checked_as_those_of_a_file(self):
        done = template(*self.JOB, *sets("job.micro_batches=4", "cluster.replicas=5"), check=False)
        self.assertIn("job.micro_batches: expected at least as many micro-batches as ranks, found 4 micro-batches and 5 ranks", done.stderr)

    def test_a_name_of_digits_stays_a_text(self):
        self.assertEqual(self.job("job.name=0.5")["name"], "0.5")

    def test_what_is_no_number_is_refused(self):
        done = template(*self.JOB, *sets("job.clip_norm=0.5.0"), check=False)
        self.assertIn("at '/job/clip_norm': '0.5.0' does not match pattern", done.stderr)


class OneSource(unittest.TestCase):
    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_prometheus_takes_the_sample(self):
        """With static targets: Debian's Prometheus is built without service discovery for Kubernetes."""
        config = yaml.safe_load((ROOT / "k8s/samples/prometheus.yml").read_text())
        self.assertEqual(config["scrape_configs"][0].pop("kubernetes_sd_configs"), [{"role": "pod"}])
        config["scrape_configs"][0]["static_configs"] = [{"targets": ["127.0.0.1:9840"]}]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(config, file)
            file.flush()
            done = subprocess.run(["promtool", "check", "config", "--syntax-only", file.name], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_versions(self):
        version = re.search(r"project\(lockstep VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        for folder in CHARTS:
            chart = yaml.safe_load((folder / "Chart.yaml").read_text())
            self.assertEqual(chart["appVersion"], version)
            self.assertRegex(chart["version"], r"^\d+\.\d+\.\d+$")

    def test_a_cluster_that_is_too_old_is_refused(self):
        oldest = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
        self.assertEqual(oldest, ">=1.33.0-0")
        self.assertIn("Kubernetes 1.33 or later", (CHART / "README.md").read_text())
        done = helm("template", "run1", CHART, "--kube-version", "1.32.9", check=False)
        self.assertIn("chart requires kubeVersion: >=1.33.0-0 which is incompatible with Kubernetes v1.32.9", done.stderr)

    def test_a_package_has_the_chart_and_no_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            helm("package", CHART, "--destination", folder)
            version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
            with tarfile.open(f"{folder}/lockstep-{version}.tgz") as package:
                files = package.getnames()
            self.assertIn("lockstep/templates/tests/hosts.yaml", files)
            self.assertEqual([name for name in files if name.startswith(("lockstep/tests/", "lockstep/ci/"))], [])
            self.assertEqual(helm("template", "run1", f"{folder}/lockstep-{version}.tgz", *CLUSTER, *OWN_KEY).stdout,
                             template(*OWN_KEY).stdout)

    def test_a_readme_links_to_nothing_outside_of_its_package(self):
        for chart in CHARTS:
            links = re.findall(r"\]\(([^)]+)\)", (chart / "README.md").read_text())
            outside = [link for link in links if not link.startswith("https://") and not (chart / link).resolve().is_relative_to(chart)]
            self.assertEqual(outside, [])

    def test_the_package_of_the_team_has_the_dashboards(self):
        """In the source tree they belong to the other chart."""
        with tempfile.TemporaryDirectory() as folder:
            helm("package", TEAM, "--destination", folder)
            (package,) = pathlib.Path(folder).iterdir()
            with tarfile.open(package) as files:
                for path in sorted((MONITORING / "dashboards").glob("*.json")):
                    self.assertEqual(files.extractfile(f"lockstep-team/dashboards/{path.name}").read(), path.read_bytes())

    def test_what_artifact_hub_shows(self):
        for folder in CHARTS:
            chart = yaml.safe_load((folder / "Chart.yaml").read_text())
            notes = {key.removeprefix("artifacthub.io/"): value for key, value in chart["annotations"].items()}
            for key in ("name", "version", "appVersion", "description", "keywords", "kubeVersion"):
                self.assertTrue(chart[key], key)
            self.assertEqual((notes["license"], notes["category"]), ("Apache-2.0", "monitoring-logging" if folder == MONITORING else "ai-machine-learning"))
            for change in yaml.safe_load(notes["changes"]):
                self.assertIn(change["kind"], ("added", "changed", "deprecated", "removed", "fixed", "security"))
                self.assertTrue(change["description"])
            for link in yaml.safe_load(notes["links"]):
                self.assertEqual(sorted(link), ["name", "url"])
                self.assertTrue(link["url"].startswith("https://"), link)
            for image in yaml.safe_load(notes.get("images", "[]")):
                self.assertEqual(image["image"], of_kind("Job")[0]["spec"]["template"]["spec"]["containers"][0]["image"])

    def test_the_chart_has_the_digits_of_the_program(self):
        self.assertEqual((CHART / "files/digits.yaml").read_text(), (ROOT / "examples/digits.yaml").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
