#!/usr/bin/env python3
"""Timelines of ranks on GPUs, with stand-ins for the driver and the module: the profiler's rows lie within their steps
although its clock is a different one, and a run without a profiler continues.

    gpu_trace_test.py MODULE DRIVER_FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP = os.environ["LOCKSTEP"]
MODULE, DRIVER = sys.argv[1:3]
JOB = pathlib.Path(__file__).resolve().parents[2] / "examples" / "same-bits.yaml"
RANKS, FIRST, LAST = 2, 3, 5
SLACK = 50  # microseconds, for reading two clocks twice


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_directory = pathlib.Path(folder.name) / "run"

    def train(self, **settings):
        environment = {**os.environ, "LD_LIBRARY_PATH": DRIVER, "LOCKSTEP_CUDA_MODULE": MODULE, "STAND_IN_GPUS": "3",
                       "STAND_IN_SAME": "1", **settings}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        done = subprocess.run(
            [LOCKSTEP, "train", JOB, "steps=6", "evaluate=never", "device=cuda", "--ranks", str(RANKS), "--profile",
             f"{FIRST}-{LAST}", f"run_directory={self.run_directory}", "--log", "json"], capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, env=environment, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def merged(self):
        subprocess.run([LOCKSTEP, "trace", "merge", self.run_directory], check=True, stdout=subprocess.DEVNULL)
        return json.loads((self.run_directory / "trace/merged.json").read_text())["traceEvents"]

    def test_what_the_gpu_did_lies_in_its_steps(self):
        self.train()
        events = self.merged()
        for rank in range(RANKS):
            rows = {event["tid"]: event["args"]["name"] for event in events
                    if event["name"] == "thread_name" and event["pid"] == rank}
            self.assertIn("GPU stream 0", rows.values())
            spans = [event for event in events if event["ph"] == "X" and event["pid"] == rank]
            steps = {event["args"]["step"]: event for event in spans if event["name"] == "compute"}
            self.assertEqual(sorted(steps), list(range(FIRST, LAST + 1)))
            ops = [event for event in spans if rows[event["tid"]].startswith("GPU")]
            self.assertEqual({event["args"]["step"] for event in ops}, set(steps))
            self.assertTrue(all(" '" in event["name"] for event in ops))
            for event in ops:
                step = steps[event["args"]["step"]]
                self.assertGreaterEqual(event["ts"], step["ts"] - SLACK)
                self.assertLessEqual(event["ts"] + event["dur"], step["ts"] + step["dur"] + SLACK)
            micro_batches = [event for event in spans if event["name"] == "micro_batch"]
            for event in micro_batches:  # each contains ops, on the GPU's row
                inside = [op for op in ops if event["ts"] - SLACK <= op["ts"] <= event["ts"] + event["dur"] + SLACK]
                self.assertGreater(len(inside), 5)

    def test_without_a_profiler_a_run_goes_on(self):
        events = self.train(STAND_IN_PROFILER="missing")
        said = [event["message"] for event in events if event["event"] == "warning" and "timeline" in event["message"]]
        self.assertEqual(said, ["the timeline lacks rows of the GPU: libcupti.so.13: cannot be opened"])
        names = {event["args"]["name"] for event in self.merged() if event["name"] == "thread_name"}
        self.assertFalse([name for name in names if name.startswith("GPU")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
