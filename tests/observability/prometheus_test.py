#!/usr/bin/env python3
"""A real Prometheus scrapes four ranks of a running job, one of them slowed down. Its rules and every query of the
dashboards return data, and the straggler alert names the rank."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from servers import (DASHBOARDS, RULES, DcgmExporter, Prometheus, SlowedDown, Training, as_asked, file_targets, free_port,
                     skip_without_prometheus, wait_until)

RANKS, SLOW = 4, 2
GPUS = 2  # from the stand-in: the other ranks have none
MOST_SERIES = 150
MOST_CPU = 0.001  # fraction of the run's time, with a scrape every 5 s
STAND_IN = sys.argv.pop(1)
MOVED = " - ".join(f"{extreme}_over_time(lockstep_balancer_moves_total[10m])" for extreme in ("max", "min")) + " > 0"
JOB = """
job:
  name: characters
  model: {gpt: {layers: 1, heads: 2, width: 32}}
  data:
    train: {text: {path: TEXT, context: 32}}
    validation: {fraction: 0.1}
  batch_size: 64
  micro_batches: 16
  steps: 1000000
  metrics: [perplexity]
  optimizer: adam
  learning_rate: 0.001
  clip_norm: 1.0
  evaluate: {every: 50 steps}
  checkpoint: {every: 50 steps}
  balance: equal  # the slow rank keeps its micro-batches, and stays slow
  threads: 1
"""


def names_in(text):
    """Our metrics that an expression uses; histograms with their suffixes."""
    return set(re.findall(r"\blockstep_\w+", text))


def promtool(*words, text=None):
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Live(unittest.TestCase):
    """All tests use one run, since starting it takes longest."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        text = folder / "text.txt"
        text.write_text("".join(f"{i} plus {i * 7 % 13} is {i + i * 7 % 13}.\n" for i in range(2000)))
        job = folder / "job.yaml"
        job.write_text(JOB.replace("TEXT", str(text)))
        cls.training = Training(folder / "run", RANKS, str(job), f"telemetry.prometheus.port={free_port()}",
                                environment={"LOCKSTEP_NVML": STAND_IN, "NVML_STAND_IN": "busy"})
        cls.addClassCleanup(cls.training.abandon)
        # The rules' own windows are meant for scrapes every 5 to 15 s; promtool tests them unchanged.
        rules = folder / "rules.yaml"
        rules.write_text(RULES.read_text().replace("[1m]", "[10s]").replace("for: 2m", "for: 2s"))
        cls.training.targets()
        dcgm = DcgmExporter(cls.training)
        cls.addClassCleanup(dcgm.stop)
        cls.prometheus = Prometheus(folder / "prometheus", rules=rules,
                                    scrape=[*file_targets(folder / "run/metrics/targets.json"), *dcgm.scrape()])
        cls.addClassCleanup(cls.prometheus.stop)
        with SlowedDown(cls.training.process_of_rank(SLOW)):
            # On a busy machine another rank may be slow, too, and be named correctly.
            cls.straggler = wait_until(cls.slowest, f"an alert that names rank {SLOW} as the slowest")
        wait_until(lambda: cls.prometheus.query("lockstep_checkpoints_total > 1"), "two checkpoints")
        wait_until(lambda: cls.prometheus.query("lockstep_evaluations_total > 1"), "two evaluations")
        cls.scrapes = cls.training.scrapes()

    @classmethod
    def slowest(cls):
        alerts = cls.prometheus.firing("LockstepStraggler")
        return alerts[0] if alerts and alerts[0]["rank"] == str(SLOW) else None

    def test_the_alert_names_the_straggler(self):
        self.assertEqual((self.straggler["job"], self.straggler["run"]), ("characters", "run"))

    def test_scrapes_are_clean_and_small(self):
        for scrape in self.scrapes:
            code, output = promtool("check", "metrics", text=scrape)
            self.assertEqual((code, output), (0, ""))
            series = [line for line in scrape.splitlines() if line and not line.startswith("#")]
            self.assertLessEqual(len(series), MOST_SERIES)
            self.assertGreater(len(series), 60)

    def test_every_metric_that_is_asked_for_is_there(self):
        there = {name for scrape in self.scrapes for name in names_in(scrape)}
        for file in [RULES, *DASHBOARDS]:
            asked = set()
            for line in file.read_text().splitlines():
                if re.search(r'\b(expr|query|definition)"?:', line):
                    asked |= {name for name in names_in(line) if f":{name}" not in line}
            self.assertGreater(len(asked), 5, file)
            self.assertEqual(asked - there, set(), file)

    def test_recording_rules_have_data(self):
        names = re.findall(r"record: (\S+)", RULES.read_text())
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            self.assertTrue(self.prometheus.query(name), name)
        shares = self.prometheus.query("sum by (rank) (rank:lockstep_phase:ratio1m)")
        self.assertEqual(len(shares), RANKS)
        for share in shares:
            self.assertAlmostEqual(float(share["value"][1]), 1, places=6)
        for rule in self.prometheus.ask("rules")["groups"]:
            for one in rule["rules"]:
                self.assertEqual(one["health"], "ok", one)

    def test_every_query_of_the_dashboards_has_data(self):
        asked = 0
        for file in DASHBOARDS:
            board = json.loads(file.read_text())
            queries = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]
            queries += [(note["name"], note["expr"]) for note in board["annotations"]["list"] if "expr" in note]
            for title, expression in queries:
                expression = as_asked(expression).replace("$__range", "60s")
                expression = expression.replace(":1m]", ":1s]")  # the run is shorter than a minute
                self.assertNotIn("$", expression)
                data = self.prometheus.query_range(expression, 600)
                if title == "Shares moved" and not self.prometheus.query(MOVED):
                    continue
                self.assertTrue(data, f"{file.name}: {title}: {expression}")
                asked += 1
        self.assertGreater(asked, 50)

    def test_the_numbers_are_those_of_the_run(self):
        def value(expression):
            return float(self.prometheus.query(expression)[0]["value"][1])
        self.assertEqual(value("lockstep_world_size"), RANKS)
        self.assertEqual(value("sum(lockstep_micro_batches)"), 16)
        self.assertAlmostEqual(value("sum(lockstep_share_ratio)"), 1)
        # The run continues meanwhile: the scraped value lies between what it reported before and what it reports next.
        told = self.training.events("step")[-1]["step"]
        scraped = wait_until(lambda: (step := value("lockstep_step")) >= told and step, f"a scrape of step {told}")
        later = wait_until(lambda: [event["step"] for event in self.training.events("step") if event["step"] > told],
                           f"a step after {told}")
        self.assertLessEqual(scraped, later[-1] + (later[-1] - told))
        # From one scrape of each rank, whether or not after the same number of steps: a step is 64 samples of 32
        # characters.
        self.assertAlmostEqual(value("lockstep_tokens_total / lockstep_samples_total"), 32)
        self.assertEqual(value("count(lockstep_process_resident_memory_bytes > 1e6)"), RANKS)

    def test_a_busy_gpu_of_a_rank_on_the_cpu_has_another_tenant(self):
        def told():
            return [event["message"] for event in self.training.events("warning") if "co-tenant" in event["message"]]
        messages = wait_until(lambda: len(told()) == GPUS and told(), "a warning of each rank's GPU")
        for rank in range(GPUS):
            self.assertTrue(any(re.fullmatch(
                rf"the GPU of rank {rank} on \S+ has a co-tenant, as its utilization, power and clocks show; balance: "
                "auto would give it less to do", message) for message in messages), messages)
        wait_until(lambda: len(self.prometheus.query("lockstep_gpu_co_tenant == 1")) == GPUS, "the metric of each GPU")

    def test_exporting_costs_next_to_nothing(self):
        process = self.training.process_of_rank(0)

        def spent():
            seconds = 0.0
            for task in pathlib.Path(f"/proc/{process}/task").iterdir():
                if (task / "comm").read_text().startswith("civetweb"):
                    seconds += int((task / "schedstat").read_text().split()[0]) * 1e-9
            return seconds
        before, target = spent(), self.training.targets()[0]
        scrapes = 50
        for _ in range(scrapes):
            subprocess.run([sys.executable, "-c", f"import urllib.request as r; r.urlopen('http://{target}/metrics').read()"],
                           check=True)
        # Prometheus scraped meanwhile, too: this is an upper bound for one scrape.
        seconds = (spent() - before) / scrapes
        print(f"a scrape takes at most {1e3 * seconds:.3f} ms of processor time: {100 * seconds / 5:.4f} % at one in 5 s")
        self.assertGreater(seconds, 0)
        self.assertLessEqual(seconds / 5, MOST_CPU)

    def test_z_at_the_end_nobody_is_scraped_any_more(self):
        self.training.end(75)
        metrics = self.training.directory / "metrics"
        self.assertEqual(json.loads((metrics / "targets.json").read_text()), [])
        final = (metrics / "final.prom").read_text()
        self.assertEqual(promtool("check", "metrics", text=final), (0, ""))
        step = self.training.events("end")[-1]["steps"]
        self.assertIn('run="run"', final)
        self.assertRegex(final, rf'\nlockstep_step{{[^}}]*job="characters"[^}}]*}} {step}\n')


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
