#!/usr/bin/env python3
"""`balance: {prometheus: URL}` where a real Prometheus knows nothing, and where no server answers: the run says so and
tries some shards."""
import pathlib
import socket
import tempfile
import unittest

from servers import Prometheus, Training, free_port, skip_without_prometheus

JOB = ["data.train.digits.count=512", "data.validation.digits.count=64", "batch_size=64", "shards=16", "threads=1",
       "evaluate=never", "checkpoint=never"]


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

    def short(self, name, url, *words):
        """What a run of some steps that asks there warns of."""
        training = self.train(name, "steps=2", f"balance={{prometheus: {url}}}", *words)
        training.end(0, number=None)
        return [event["message"] for event in training.events("warning")
                if event["message"].startswith("balance: ")]

    def test_nothing_is_known_of_other_work(self):
        warnings = self.short("other", self.prometheus.url + "/", "batch_size=32")
        self.assertEqual(warnings, [f"balance: {self.prometheus.url}/ knows no rank's shards; the first shares are by "
                                    "a probe"])

    def test_no_server(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
            warnings = self.short("alone", url)
        self.assertEqual(len(warnings), 1)
        self.assertTrue(warnings[0].startswith(f"balance: {url} does not answer: Failed to connect"), warnings)
        self.assertTrue(warnings[0].endswith("; the first shares are by a probe"), warnings)


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
