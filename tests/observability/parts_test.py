#!/usr/bin/env python3
"""A real Prometheus scrapes three ranks of a model in two parts. Rules and dashboards distinguish the parts: every
query of the panels about parts returns data for each rank, under its part."""
import json
import pathlib
import tempfile
import unittest

from servers import DASHBOARDS, RULES, Prometheus, Training, as_asked, free_port, skip_without_prometheus, wait_until

PART_OF_RANK = {"0": "0", "1": "1", "2": "1"}
BOARD = next(file for file in DASHBOARDS if file.name == "ranks-and-balance.json")
BY_PART = {"Compute seconds per micro-batch", "Speed of a rank", "Parts of the model", "Parts: computing",
           "Parts: waiting for each other", "Parts: bubble"}
WAITS = 'activity=~"activation_wait|gradient_wait|send_wait"'
JOB = """
job:
  model:
    layers:
      - flatten
      - {linear: {features: 64}}
      - {relu: {}, name: first_end}
      - {linear: {features: 512}}
      - relu
      - {linear: {features: 10}}
  data: {train: {digits: {count: 2000}}}
  parallel: {parts: [{until: first_end, ranks: 1}, {ranks: 2}]}
  batch_size: 64
  micro_batches: 8
  balance: equal
  steps: 1000000
  evaluate: never
  threads: 1
"""


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        job = root / "job.yaml"
        job.write_text(JOB)
        rules = root / "rules.yaml"
        rules.write_text(RULES.read_text().replace("[1m]", "[10s]"))
        cls.training = Training(root / "run", len(PART_OF_RANK), str(job), f"telemetry.prometheus.port={free_port()}")
        cls.addClassCleanup(cls.training.abandon)
        cls.training.targets()
        cls.prometheus = Prometheus(root / "prometheus", root / "run/metrics/targets.json", rules)
        cls.addClassCleanup(cls.prometheus.stop)
        wait_until(lambda: len(cls.prometheus.query("rate(lockstep_worker_seconds_total{activity='compute'}[10s]) > 0"))
                   == len(PART_OF_RANK), "two scrapes of each rank")
        wait_until(lambda: len(cls.prometheus.query("part:lockstep_worker:ratio1m{activity='compute'}")) == 2, "the rules")

    def value(self, expression):
        found = self.prometheus.query(expression)
        self.assertEqual(len(found), 1, expression)
        return float(found[0]["value"][1])

    def test_every_query_by_part_has_data_of_each_rank(self):
        titles = set()
        for panel in json.loads(BOARD.read_text())["panels"]:
            for target in panel["targets"]:
                if "lockstep_part_info" not in target["expr"]:
                    continue
                titles.add(panel["title"])
                expression = as_asked(target["expr"])
                data = [series["metric"] for series in self.prometheus.query(expression)]
                if any("rank" in labels for labels in data):
                    self.assertEqual({labels["rank"]: labels["part"] for labels in data}, PART_OF_RANK, expression)
                else:
                    self.assertEqual({labels["part"] for labels in data}, {"0", "1"}, expression)
        self.assertEqual(titles, BY_PART)

    def test_shares_add_up(self):
        for part in ("0", "1"):
            self.assertAlmostEqual(self.value(f'sum(part:lockstep_worker:ratio1m{{part="{part}"}})'), 1, places=6)
            self.assertGreater(self.value(f'sum(part:lockstep_worker:ratio1m{{part="{part}",{WAITS}}})'), 0)
        self.assertEqual(self.value('part:lockstep_worker:ratio1m{part="0",activity="activation_wait"}'), 0)
        self.assertEqual(self.value('part:lockstep_worker:ratio1m{part="1",activity="gradient_wait"}'), 0)

    def test_what_is_added_up_over_ranks_is_the_jobs(self):
        """Only the ranks that compute the loss count samples: 32 of each step's 64."""
        for rank in PART_OF_RANK:
            samples = self.value(f'lockstep_samples_total{{rank="{rank}"}} / lockstep_steps_total{{rank="{rank}"}}')
            self.assertAlmostEqual(samples, 0 if rank == "0" else 32)

    def test_ranks_of_other_parts_are_not_slow(self):
        medians = {series["metric"]["part"]: float(series["value"][1])
                   for series in self.prometheus.query("part:lockstep_micro_batch_compute_seconds:median1m")}
        self.assertEqual(set(medians), {"0", "1"})
        for rank, part in PART_OF_RANK.items():
            self.assertEqual(len(self.prometheus.query(
                f'rank:lockstep_micro_batch_compute_seconds:mean1m{{rank="{rank}",part="{part}"}}')), 1)

    def test_rules_are_healthy(self):
        for group in self.prometheus.ask("rules")["groups"]:
            for rule in group["rules"]:
                self.assertEqual(rule["health"], "ok", rule)

    def test_the_event_tells_the_same(self):
        told = {rank: str(event["part"]) for event in self.training.events("part") for rank in event["ranks"].split()}
        self.assertEqual(told, PART_OF_RANK)
        series = {labels["metric"]["rank"]: labels["metric"] for labels in self.prometheus.query("lockstep_part_info")}
        for event in self.training.events("part"):
            for rank in event["ranks"].split():
                self.assertEqual((series[rank]["first"], series[rank]["last"]), (event["first"], event["last"]))

    def test_z_at_the_end(self):
        self.training.end(75)


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
