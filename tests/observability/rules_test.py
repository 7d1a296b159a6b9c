#!/usr/bin/env python3
"""The rules by themselves: promtool accepts them, every alert has a case in which it fires and one in which it does not,
and runs of one name are two where their namespaces or their clusters differ, and where only the instances of their ranks
do, as the trials of a sweep."""
import concurrent.futures
import copy
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from servers import ROOT, RULES, skip_without_prometheus

CASES = pathlib.Path(__file__).with_name("rules_test.yaml")
TENANTS = (("c", "a"), ("c", "b"), ("d", "a"))  # clusters and namespaces, which have runs of one name
TENANT = ("cluster", "namespace")
CLAUSE = re.compile(r"\b(?:by|on) \(([^)]*)\)")


def promtool_test(cases):
    return subprocess.run(["promtool", "test", "rules", cases], capture_output=True, text=True, check=False)


def labels_of(tenant, labels):
    """The labels of a target, had its cluster and its namespace been named after the tenant's."""
    ends = dict(zip(TENANT, tenant))
    mine = {key: f"{value}-{ends[key.removeprefix('exported_')]}" if key.removeprefix("exported_") in ends else value
            for key, value in labels.items()}
    return ends | mine


def series_of(tenant, text):
    name, labels = re.fullmatch(r'([^{]*)\{(.*)\}', text).groups()
    mine = labels_of(tenant, dict(re.findall(r'(\w+)="([^"]*)"', labels)))
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in mine.items()) + "}"


def of_all_tenants(case):
    """The same case, in which each tenant has what there was."""
    case = copy.deepcopy(case)
    case["input_series"] = [{**line, "series": series_of(tenant, line["series"])} for tenant in TENANTS for line in case["input_series"]]
    for test in case.get("alert_rule_test", []):
        test["exp_alerts"] = [{**alert, "exp_labels": labels_of(tenant, alert["exp_labels"])}
                              for tenant in TENANTS for alert in test["exp_alerts"]]
    for test in case.get("promql_expr_test", []):
        test["exp_samples"] = [{**sample, "labels": series_of(tenant, sample["labels"])} for tenant in TENANTS for sample in test["exp_samples"]]
    return case


TRIALS = {"a:9840": "one", "b:9840": "two", "c:9840": "three"}  # digests of their jobs, by instance
OF_TRIALS = {"LockstepStraggler": ("instance", "digest"), "LockstepPartWaits": ("digest",), "LockstepCheckpointStale": ("instance",),
             "LockstepCollectiveHang": ("instance",), "LockstepGpuIdle": ("instance",), "LockstepDataStarved": ("instance",)}
QUIET_IN_THREE = {"LockstepCheckpointStale": ('state="ended"', "1x80"), "LockstepCollectiveHang": ("last_step", "0+15x80"),
                  "LockstepGpuIdle": ('state="training"', "0x160")}


def series_of_trial(line, instance, digest, quiet):
    more = f',instance="{instance}"' + (f',digest="{digest}"' if "part_info" in line["series"] else "")
    values = next((values for part, values in quiet if digest == "three" and part in line["series"]), line["values"])
    return {"series": line["series"][:-1] + more + "}", "values": values}


def alert_of_trial(alert, told, instance, digest):
    labels = {"instance": instance, "digest": digest, "device": "T4" if digest == "one" and len(told) == 2 else ""}
    return {**alert, "exp_labels": alert["exp_labels"] | {key: labels[key] for key in (*told, "device") if labels[key]}}


def of_trials(case):
    """The same case, had each of three trials of one run what there was, and the first a known device; None: it says
    nothing of their ranks."""
    alerts = [copy.deepcopy(test) for test in case.get("alert_rule_test", []) if test["alertname"] in OF_TRIALS]
    if not any(test["exp_alerts"] for test in alerts) or re.search("instance=|rank_info|cluster=", str(case)):
        return None
    quiet = [QUIET_IN_THREE[test["alertname"]] for test in alerts if test["alertname"] in QUIET_IN_THREE]
    lines = [series_of_trial(line, instance, digest, quiet) for line in case["input_series"] for instance, digest in TRIALS.items()]
    for line in list(lines):
        if 'digest="one"' in line["series"]:
            labels = re.sub(r',(part|first|last|digest)="[^"]*"', "", line["series"].partition("{")[2])
            lines.append({**line, "series": "lockstep_rank_info{" + labels[:-1] + ',device="T4"}'})
    for test in alerts:
        told = OF_TRIALS[test["alertname"]]
        test["exp_alerts"] = [alert_of_trial(alert, told, instance, digest) for instance, digest in TRIALS.items()
                              for alert in test["exp_alerts"] if digest != "three" or test["alertname"] not in QUIET_IN_THREE]
    return {"name": case["name"], "interval": case["interval"], "input_series": lines, "alert_rule_test": alerts}


def name_of(rule):
    return rule.get("record") or rule["alert"]


def mutants(rules, labels):
    """(what was left out, names of the rules that this may change, rules) for each of the labels and each clause that has
    it."""
    every = [rule for group in rules["groups"] for rule in group["rules"]]
    for rule in every:
        expression, name = rule["expr"], name_of(rule)
        changed = [name, *(name_of(other) for other in every if name in other["expr"])]
        for clause in CLAUSE.finditer(expression):
            operand = expression[expression.rfind(" or ", 0, clause.start()) + 1:].partition(" or ")[0]
            same = {"namespace"} if 'namespace=""' in operand.partition(") unless")[0] else set()
            for label in set(labels) & set(clause[1].split(", ")) - same:
                begin, end = clause.span(1)
                kept = [name for name in clause[1].split(", ") if name != label]
                rule["expr"] = expression[:begin] + ", ".join(kept) + expression[end:]
                yield f"{label} at {begin} of {name}", changed, copy.deepcopy(rules)
        rule["expr"] = expression


class Rules(unittest.TestCase):
    def test_promtool_takes_them(self):
        subprocess.run(["promtool", "check", "rules", RULES], check=True, stdout=subprocess.DEVNULL)

    def test_promtool_takes_the_configuration(self):
        subprocess.run(["promtool", "check", "config", "--syntax-only", ROOT / "share/prometheus/prometheus.yml"],
                       check=True, stdout=subprocess.DEVNULL)

    def test_cases(self):
        done = promtool_test(CASES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_cases(self):
        alerts = set(re.findall(r"alert: (\w+)", RULES.read_text()))
        self.assertEqual(len(alerts), 16)
        text = CASES.read_text()
        quiet = set(re.findall(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", text))
        fires = set(re.findall(r"alertname: (\w+)\n", text))
        self.assertEqual(fires, alerts)
        self.assertEqual(quiet, alerts)


class Changed(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.rules = yaml.safe_load(RULES.read_text())
        self.cases = yaml.safe_load(CASES.read_text())

    def run_cases(self, name, rules, about=("",)):
        """Those that say something about one of these rules."""
        cases = [case for case in self.cases["tests"]
                 if any(rule in str([case.get("alert_rule_test"), case.get("promql_expr_test")]) for rule in about)]
        self.assertTrue(cases, about)
        (self.folder / f"rules-{name}.yaml").write_text(yaml.safe_dump(rules))
        path = self.folder / f"cases-{name}.yaml"
        path.write_text(yaml.safe_dump({**self.cases, "rule_files": [f"rules-{name}.yaml"], "tests": cases}))
        return promtool_test(path)

    def assert_all_fail(self, all_mutants):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            codes = threads.map(lambda item: self.run_cases(item[0], item[1][2], item[1][1]).returncode, enumerate(all_mutants))
        self.assertEqual([what for (what, *_), code in zip(all_mutants, codes) if code != 1], [])


class Tenants(Changed):
    def setUp(self):
        super().setUp()
        self.cases["tests"] = [case if "without a namespace" in case["name"] else of_all_tenants(case) for case in self.cases["tests"]]

    def test_cases_of_three_tenants(self):
        done = self.run_cases("all", self.rules)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_clause_has_both_labels(self):
        expressions = [rule["expr"] for group in self.rules["groups"] for rule in group["rules"]]
        for expression in expressions:
            self.assertNotRegex(expression, r"\b(without|ignoring)\b")
            for labels in CLAUSE.findall(expression):
                self.assertEqual(labels.split(", ")[:2], list(TENANT), expression)

    def test_a_clause_without_one_of_them_fails_a_case(self):
        all_mutants = list(mutants(self.rules, TENANT))
        self.assertGreater(len(all_mutants), 50)
        self.assert_all_fail(all_mutants)


class Trials(Changed):
    def setUp(self):
        super().setUp()
        self.cases["tests"] = [*filter(None, map(of_trials, self.cases["tests"])),
                               *(case for case in self.cases["tests"] if re.search("rank_info|run_seconds", str(case)))]

    def test_cases_of_three_trials(self):
        self.assertGreater(len(self.cases["tests"]), 7)
        done = self.run_cases("all", self.rules)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_clause_without_a_label_that_tells_them_apart_fails_a_case(self):
        all_mutants = list(mutants(self.rules, ("instance", "digest", "device")))
        self.assertGreaterEqual(len(all_mutants), 20)
        self.assert_all_fail(all_mutants)


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
