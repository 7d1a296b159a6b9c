#!/usr/bin/env python3
"""The dashboards by the rules of Grafana's dashboard-linter (as documented) and by ours: a description on each panel,
one data source, a current schema. dashboard_linter_test.py runs the linter itself."""
import json
import re
import unittest

from servers import DASHBOARDS

UNITS = {"none", "short", "percentunit", "s", "bytes", "Bps", "watt", "joule", "celsius", "hertz", "h"}  # known to Grafana
RUN = ["cluster", "namespace", "job", "run"]
TITLES = {"lockstep / GPUs", "lockstep / Input and checkpoints", "lockstep / Job", "lockstep / Ranks and balance"}


class Dashboards(unittest.TestCase):
    def setUp(self):
        self.boards = {file.name: json.loads(file.read_text()) for file in DASHBOARDS}

    def panels(self):
        for name, board in self.boards.items():
            for panel in board["panels"]:
                yield f"{name}: {panel['title']}", panel

    def test_the_four_are_there(self):
        self.assertEqual({board["title"] for board in self.boards.values()}, TITLES)
        for name, board in self.boards.items():
            self.assertFalse(board["editable"], name)
            self.assertGreaterEqual(board["schemaVersion"], 39, name)
            self.assertIsNone(board["id"], name)
        self.assertEqual(len({board["uid"] for board in self.boards.values()}), len(self.boards))

    def test_variables(self):
        for name, board in self.boards.items():
            variables = {variable["name"]: variable for variable in board["templating"]["list"]}
            source = variables.pop("datasource")
            self.assertEqual((source["type"], source["query"], source["label"]),
                             ("datasource", "prometheus", "Data source"), name)
            wanted = {"cluster", "namespace", "job", "run", "instance"} | (set() if name == "job.json" else {"rank"})
            if top := variables.pop("top", None):
                self.assertEqual((top["type"], top["current"]["value"]), ("custom", "20"), name)
                self.assertEqual(top["query"].split(", "), [option["value"] for option in top["options"]], name)
            self.assertEqual(set(variables), wanted, name)
            for variable in variables.values():
                where = f"{name}: {variable['name']}"
                self.assertEqual(variable["type"], "query", where)
                self.assertEqual(variable["datasource"]["uid"], "$datasource", where)
                self.assertEqual(variable["label"], variable["name"].capitalize(), where)
                # Targets outside Kubernetes have no namespace.
                everything = ".*" if variable["name"] in ("cluster", "namespace") else ".+"
                if variable["name"] == "run":  # one at first, and others beside it if somebody wants them
                    wanted_all = (None, True, False)
                    self.assertEqual(variable["current"], {}, where)
                else:
                    wanted_all = (everything, True, True)
                self.assertEqual((variable["allValue"], variable["multi"], variable["includeAll"]), wanted_all, where)
                self.assertEqual(variable["refresh"], 2, where)  # on a change of the time range
                self.assertRegex(variable["definition"], rf"^label_values\(lockstep_\w+(\{{.*\}})?, {variable['name']}\)$")

    def test_panels(self):
        places = {}
        for where, panel in self.panels():
            self.assertTrue(panel["title"] and panel["description"].endswith("."), where)
            self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "$datasource"}, where)
            self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS, where)
            self.assertTrue(panel["targets"], where)
            self.assertNotIn(panel["type"], ("graph", "singlestat"), where)
            board, place = where.split(":")[0], panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, where)
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((board, x, y), places, f"{where} lies over {places.get((board, x, y))}")
                    places[board, x, y] = where

    def test_queries(self):
        for where, panel in self.panels():
            self.assertEqual(len({target["refId"] for target in panel["targets"]}), len(panel["targets"]), where)
            for target in panel["targets"]:
                expression = target["expr"]
                self.assertEqual(target["datasource"]["uid"], "$datasource", where)
                self.assertTrue(target["legendFormat"], where)
                selectors = re.findall(r"(?:lockstep_\w+|\w+:\w+:\w+)(\{[^}]*\})?", expression)
                self.assertTrue(selectors, where)
                for selector in selectors:
                    for label in ("cluster", "namespace", "job", "run", "instance"):
                        self.assertIn(f'{label}=~"${label}"', selector, f"{where}: {expression}")
                for function, window in re.findall(r"\b(i?rate)\([^[]*\[([^]]*)\]", expression):
                    self.assertEqual(window, "$__rate_interval", f"{where}: {function}")
                # lockstep_run_seconds_total goes on after a restart: its value is of the whole run.
                counters = re.findall(r"(\w*)\(?lockstep_(?!run_seconds)\w+_total\b", expression)
                self.assertTrue(all(function in ("rate", "increase") for function in counters), f"{where}: {expression}")

    def test_no_sum_mixes_runs(self):
        for where, panel in self.panels():
            for target in panel["targets"]:
                aggregations = re.findall(r"\b(?:sum|min|max|avg|count|topk|bottomk|quantile)(?= by|\()( by \(([^)]*)\))?", target["expr"])
                for clause, labels in aggregations:
                    self.assertEqual(labels.split(", ")[:4], RUN, f"{where}: {clause or target['expr']}")

    def test_panels_of_ranks_have_as_many_lines_as_one_can_read(self):
        for where, panel in self.panels():
            for target in panel["targets"]:
                if panel["type"] in ("timeseries", "state-timeline") and "{{rank}}" in target["legendFormat"]:
                    self.assertRegex(target["expr"], r"^(top|bottom)k by \(cluster, namespace, job, run\) \(\$top, ", where)
                    self.assertIn("as many as Top says", panel["description"], where)
                    self.assertIn("top", [variable["name"] for variable in self.boards[where.split(":")[0]]["templating"]["list"]])

    def test_speeds_of_ranks_are_compared_within_a_part(self):
        """Ranks of different parts of a model do different work; parts_test.py runs these queries in a Prometheus."""
        panels = {panel["title"]: panel for _, panel in self.panels()}
        for title in ("Compute seconds per micro-batch", "Speed of a rank", "Parts: computing", "Parts: waiting for each other"):
            for target in panels[title]["targets"]:
                self.assertIn("* on (cluster, namespace, job, run, rank, instance) group_left (part) lockstep_part_info{", target["expr"], title)
                self.assertTrue({"{{part}}", "{{rank}}"} & set(re.findall(r"{{\w+}}", target["legendFormat"])), title)

    def test_annotations(self):
        for name, board in self.boards.items():
            notes = [note["name"] for note in board["annotations"]["list"] if "expr" in note]
            self.assertEqual(notes, ["Checkpoint", "Shares moved", "Restart"], name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
