#!/usr/bin/env python3
"""A run's first micro-batch assignment uses what a real Prometheus has scraped from a real earlier run, one of whose ranks
was slow; if no server answers, or it knows nothing, the run says so and tries some micro-batches."""
import pathlib
import signal
import socket
import tempfile
import unittest

from servers import Prometheus, SlowedDown, Training, free_port, skip_without_prometheus, wait_until

JOB = ["data.train.digits.count=512", "data.validation.digits.count=64", "batch_size=64", "micro_batches=16", "threads=1",
       "evaluate=never", "checkpoint=never"]
SLOWER = 1.5


class EarlierRuns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = cls.path = pathlib.Path(cls.folder.name)
        cls.prometheus = Prometheus(folder / "prometheus", folder / "targets/*.json")
        cls.addClassCleanup(cls.prometheus.stop)

    def train(self, name, *words):
        training = Training(self.path / name, 2, *JOB, f"telemetry.prometheus.port={free_port()}",
                            f"telemetry.prometheus.targets={self.path}/targets", *words, hosts=True)
        self.addCleanup(training.abandon)
        return training

    def known(self):
        """Seconds per micro-batch by host, over all runs that the server has scraped."""
        samples = self.prometheus.query("avg by (host) (last_over_time(lockstep_device_micro_batch_seconds[1h]))")
        return {sample["metric"]["host"]: float(sample["value"][1]) for sample in samples}

    def is_known_as_slow(self):
        known = self.known()
        return "h0" in known and known.get("h1", 0) > SLOWER * known["h0"]

    def short(self, name, url, *words):
        """Runs a few steps that query that server; returns the event of the first micro-batch assignment, or None, and the
        warnings about it."""
        training = self.train(name, "steps=2", f"balance={{prometheus: {url}}}", *words)
        training.end(0, number=None)
        moves = [event for event in training.events("balance") if event["step"] == 0]
        return moves[0] if moves else None, [event["message"] for event in training.events("warning")
                                               if event["message"].startswith("balance: ")]

    def test_by_an_earlier_run(self):
        earlier = self.train("earlier", "steps=1000000", "balance=equal")
        earlier.targets()
        # Slowed until its end: afterwards its mean since the start would fall. Stopped long enough to be slower even if
        # all cores are busy.
        with SlowedDown(earlier.process_of_rank(1), stopped=0.18):
            wait_until(self.is_known_as_slow, f"rank 1 to be known as {SLOWER} times as slow")
            earlier.end(1, number=signal.SIGUSR1)  # there is no checkpoint to resume from
        wait_until(lambda: not self.prometheus.ask("targets")["activeTargets"], "the last scrape of the earlier run")
        known = self.known()
        move, warnings = self.short("later", self.prometheus.url)
        self.assertEqual(warnings, [])
        self.assertEqual(move["evidence"], f"earlier runs, from {self.prometheus.url}: by host and device for ranks 0 1")
        self.assertEqual(move["reason"], move["evidence"])
        self.assertGreater(move["shares_by_rank"]["0"], move["shares_by_rank"]["1"])
        self.assertEqual(sum(move["shares_by_rank"].values()), 16)
        for rank in ("0", "1"):
            self.assertAlmostEqual(move["micro_batch_seconds_by_rank"][rank], known[f"h{rank}"], places=9)

    def test_nothing_is_known_of_other_work(self):
        _, warnings = self.short("other", self.prometheus.url + "/", "batch_size=32")
        self.assertEqual(warnings, [f"balance: {self.prometheus.url}/ knows no rank's micro-batches; the first micro-batch assignment is by "
                                    "a probe"])

    def test_no_server(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
            _, warnings = self.short("alone", url, "batch_size=16")
        self.assertEqual(len(warnings), 1)
        self.assertTrue(warnings[0].startswith(f"balance: {url} does not answer: Failed to connect"), warnings)
        self.assertTrue(warnings[0].endswith("; the first micro-batch assignment is by a probe"), warnings)


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
