#!/usr/bin/env python3
"""The first shares of a run are by what a real Prometheus has scraped of a real earlier run, one of whose ranks was
slow; and where no server answers, or it knows nothing, the run says so and tries some shards."""
import pathlib
import signal
import socket
import tempfile
import unittest

from servers import Prometheus, SlowedDown, Training, free_port, skip_without_prometheus, wait_until

JOB = ["data.train.digits.count=512", "data.validation.digits.count=64", "batch_size=64", "shards=16", "threads=1",
       "evaluate=never", "checkpoint=never"]
LONG = "steps=1000000"


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

    def is_known_as_slow(self, run):
        """Whether the server has seen rank 1 need far more for a shard than rank 0."""
        of = f'lockstep_device_shard_seconds{{run="{run}",rank="%d"}}'
        return self.prometheus.query(f"{of % 1} > ignoring (rank, host, instance) 1.5 * {of % 0}")

    def short(self, name, url, *words):
        """A run of some steps that asks there; the event of its first shares, or None, and what it warns of them."""
        training = self.train(name, "steps=2", f"balance={{prometheus: {url}}}", *words)
        training.end(0, number=None)
        moves = [event for event in training.events("balance") if event["step"] == 0]
        return moves[0] if moves else None, [event["message"] for event in training.events("warning")
                                               if event["message"].startswith("balance: ")]

    def test_by_an_earlier_run(self):
        earlier = self.train("earlier", LONG, "balance=equal")
        earlier.targets()
        with SlowedDown(earlier.process_of_rank(1), stopped=0.3, running=0.03):
            wait_until(lambda: self.is_known_as_slow("earlier"), "rank 1 to be known as slow")
        earlier.end(1, number=signal.SIGUSR1)
        move, warnings = self.short("later", self.prometheus.url)
        self.assertEqual(warnings, [])
        self.assertEqual(move["evidence"], f"earlier runs, from {self.prometheus.url}: by host and device for ranks 0 1")
        self.assertEqual(move["reason"], move["evidence"])
        self.assertGreater(move["shares_by_rank"]["0"], move["shares_by_rank"]["1"])
        ratio = move["shard_seconds_by_rank"]["1"] / move["shard_seconds_by_rank"]["0"]
        self.assertGreater(ratio, 1.2)

    def test_nothing_is_known_of_other_work(self):
        _, warnings = self.short("other", self.prometheus.url + "/", "batch_size=32")
        self.assertEqual(warnings, [f"balance: {self.prometheus.url}/ knows no rank's shards; the first shares are by "
                                    "a probe"])

    def test_no_server(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
            _, warnings = self.short("alone", url)
        self.assertEqual(len(warnings), 1)
        self.assertTrue(warnings[0].startswith(f"balance: {url} does not answer: Failed to connect"), warnings)
        self.assertTrue(warnings[0].endswith("; the first shares are by a probe"), warnings)


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
