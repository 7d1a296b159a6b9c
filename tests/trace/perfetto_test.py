#!/usr/bin/env python3
"""Perfetto itself reads the merged timeline of a real run: nothing is dropped, and each rank's threads have the spans
that were written."""
import collections
import pathlib
import tempfile
import unittest

from trace_processor import TraceProcessor
from traced import merge, train

JOB = ["model=lenet", "data.train.digits.count=640", "data.validation.digits.count=64", "batch_size=64", "micro_batches=8",
       "steps=12", "threads=2", "evaluate.every=3 steps", "checkpoint.every=2 steps", "bucket_bytes=65536"]
RANKS = 2
OF_THREADS = """
select process.name as process, thread.name as thread, slice.name as name, count(*) as spans, sum(slice.dur) as nanoseconds
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
group by 1, 2, 3"""
OF_PROCESSES = """
select process.name as process, slice.name as name, count(*) as spans
from slice join process_track on slice.track_id = process_track.id join process using (upid) group by 1, 2"""
COMPLAINTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


class Perfetto(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        processor = TraceProcessor()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        run = pathlib.Path(folder.name) / "run"
        train(run, RANKS, "--profile", "4-9", *JOB, hosts=True)
        cls.events = merge(run)[1]["traceEvents"]
        cls.threads, cls.processes, cls.complaints = processor.query(run / "trace/merged.json", OF_THREADS, OF_PROCESSES,
                                                                     COMPLAINTS)
        named = [event for event in cls.events if event["ph"] == "M"]
        cls.process = {event["pid"]: event["args"]["name"] for event in named if event["name"] == "process_name"}
        cls.thread = {(event["pid"], event["tid"]): event["args"]["name"] for event in named
                      if event["name"] == "thread_name"}

    def test_it_has_nothing_to_complain_of(self):
        self.assertEqual(self.complaints, [])

    def test_spans_of_threads(self):
        spans, seconds = collections.Counter(), collections.Counter()
        for event in self.events:
            if event["ph"] == "X":
                key = self.process[event["pid"]], self.thread[event["pid"], event["tid"]], event["name"]
                spans[key] += 1
                seconds[key] += event["dur"] * 1e-6
        found = {(row["process"], row["thread"], row["name"]): row for row in self.threads}
        self.assertEqual({key: row["spans"] for key, row in found.items()}, dict(spans))
        for key, row in found.items():
            self.assertAlmostEqual(row["nanoseconds"] * 1e-9, seconds[key], delta=1e-6 * row["spans"])
        ranks = {process for process, thread, name in found if name == "compute"}
        self.assertEqual({rank.split(" on ")[0] for rank in ranks}, {f"rank {rank}" for rank in range(RANKS)})

    def test_buckets_under_way(self):
        begun = collections.Counter((self.process[event["pid"]], event["name"]) for event in self.events
                                    if event["ph"] == "b")
        self.assertEqual({(row["process"], row["name"]): row["spans"] for row in self.processes}, dict(begun))


if __name__ == "__main__":
    unittest.main(verbosity=2)
