#!/usr/bin/env python3
"""The rules by themselves: promtool accepts them, every alert has a case in which it fires and one in which it does not,
and runs of one name are two where their namespaces or their clusters differ."""
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


def name_of(rule):
    return rule.get("record") or rule["alert"]


def mutants(rules):
    """(what was left out, names of the rules that this may change, rules) for each label of a tenant and each clause that
    has it."""
    every = [rule for group in rules["groups"] for rule in group["rules"]]
    for rule in every:
        expression, name = rule["expr"], name_of(rule)
        changed = [name, *(name_of(other) for other in every if name in other["expr"])]
        for clause in CLAUSE.finditer(expression):
            for label in TENANT:
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
        self.assertEqual(len(alerts), 11)
        text = CASES.read_text()
        quiet = set(re.findall(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", text))
        fires = set(re.findall(r"alertname: (\w+)\n", text))
        self.assertEqual(fires, alerts)
        self.assertEqual(quiet, alerts)


class Tenants(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.rules = yaml.safe_load(RULES.read_text())
        self.cases = yaml.safe_load(CASES.read_text())
        self.cases["tests"] = [of_all_tenants(case) for case in self.cases["tests"]]

    def run_cases(self, name, rules, about=("",)):
        """Those that say something about one of these rules."""
        cases = [case for case in self.cases["tests"]
                 if any(rule in str([case.get("alert_rule_test"), case.get("promql_expr_test")]) for rule in about)]
        self.assertTrue(cases, about)
        (self.folder / f"rules-{name}.yaml").write_text(yaml.safe_dump(rules))
        path = self.folder / f"cases-{name}.yaml"
        path.write_text(yaml.safe_dump({**self.cases, "rule_files": [f"rules-{name}.yaml"], "tests": cases}))
        return promtool_test(path)

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
        all_mutants = list(mutants(self.rules))
        self.assertGreater(len(all_mutants), 50)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            codes = threads.map(lambda item: self.run_cases(item[0], item[1][2], item[1][1]).returncode, enumerate(all_mutants))
        self.assertEqual([what for (what, *_), code in zip(all_mutants, codes) if code != 1], [])


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
