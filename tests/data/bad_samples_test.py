#!/usr/bin/env python3
"""An image that is damaged in the middle, found during training: the run ends, and continues from its checkpoint
without it.

Sets above 64 MiB are not decoded when they are indexed; this one is not, either.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from free_ports import free_port  # noqa: E402  pylint: disable=wrong-import-position
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
COUNT, SIZE = 160, 400
REASON = "damaged PNG (IDAT: incorrect data check)"
BAD = (37, 38, 90)
NAMES = [f"{'cat' if i < COUNT // 2 else 'dog'}/{i:03}.png" for i in range(COUNT)]


def png(value, damaged):
    """Not compressed, so it is large. Damaged: a byte of a row does not match the checksum."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + bytes((value + x) % 256 for x in range(3 * SIZE))
    rows = bytearray(chunk(b"IDAT", zlib.compress(row * SIZE, 0)))
    if damaged:
        rows[len(rows) // 2] ^= 1
    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + bytes(rows) + chunk(b"IEND", b"")


class BadSamples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        for i, name in enumerate(NAMES):
            path = cls.folder / "images" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(i, i in BAD))
        (cls.folder / "job.yaml").write_text(
            "job: {model: {mlp: {hidden: [8]}}, data: {train: {images: images}, prepare: [{resize: 8}], normalize: never, "
            "cache: none}, batch_size: 8, micro_batches: 4, epochs: 2, learning_rate: 0.01, "
            "evaluate: never, checkpoint: {every: 1 steps, keep: 100}}\n")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_it(self, command, *words, code=0):
        done = subprocess.run([PROGRAM, command, *words], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              check=False, env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def events(self, run, name):
        return events_of(self.folder / run, name)

    def hash_of(self, run):
        return self.events(run, "end")[-1]["parameters_sha256"]

    def reported(self, run):
        """From the last start."""
        events = events_of(self.folder / run)
        begin = max(i for i, event in enumerate(events) if event["event"] == "start")
        return [event for event in events[begin:] if event["event"] == "bad_sample"]

    def test_the_run_ends_and_goes_on_without_the_sample(self):
        done = self.run_it("train", "job.yaml", "run_directory=stopped", "checkpoint.every=1 steps", code=65)
        texts = [f"lockstep: train: images: {NAMES[i]}: {REASON}; repair it, or add data.bad_samples=replace: the run then "
                 "goes on from its newest checkpoint with the next sample in its place" for i in BAD]
        self.assertIn(done.stderr.splitlines()[-1], texts)
        reached = max(int(path.name.split("-")[-1]) for path in (self.folder / "stopped" / "checkpoints").glob("step-*"))
        self.assertGreater(reached, 0)

        done = self.run_it("train", "job.yaml", "run_directory=stopped", "data.bad_samples=replace", "--ranks", "2")
        self.assertEqual(self.events("stopped", "restart")[0]["step"], reached)
        for run, words in (("alone", ["threads=1"]), ("three", ["--ranks", "3"])):
            self.run_it("train", "job.yaml", f"run_directory={run}", "data.bad_samples=replace", *words)
            self.assertEqual(self.hash_of(run), self.hash_of("stopped"), run)
            reported = self.reported(run)
            self.assertEqual({event["sample"] for event in reported}, set(BAD))
            self.assertEqual(len(reported), len(BAD))
            for event in reported:
                by = {37: 39, 38: 39, 90: 91}[event["sample"]]
                self.assertEqual((event["set"], event["name"], event["replaced_by"], event["replaced_by_name"]),
                                 ("train", NAMES[event["sample"]], by, NAMES[by]))
                self.assertEqual(event["message"],
                                 f"train: sample {event['sample']} is bad: images: {NAMES[event['sample']]}: {REASON}; "
                                 f"sample {by} ({NAMES[by]}) takes its place")
        self.assertTrue({event["sample"] for event in self.reported("stopped")} <= set(BAD))
        self.assertIn(f"warning: {self.reported('alone')[0]['message']}\n",
                      self.run_it("train", "job.yaml", "run_directory=again", "data.bad_samples=replace").stderr)

        done = self.run_it("eval", "alone", "data.bad_samples=replace", "--set", "train", "--ranks", "2")
        self.assertEqual(sorted(done.stderr.splitlines()),
                         sorted(f"warning: {event['message']}" for event in self.reported("alone")))

    def test_validation_and_normalisation_are_the_same_on_any_ranks(self):
        words = ["data.bad_samples=replace", "data.validation={fraction: 0.4}", "data.normalize=auto", "data.augment=[flip]",
                 "data.cache=memory", "evaluate.every=4 steps"]
        for ranks in ("1", "2"):
            self.run_it("train", "job.yaml", f"run_directory=validated{ranks}", *words, "--ranks", ranks)
            reported = self.reported(f"validated{ranks}")
            self.assertEqual(sorted(event["name"] for event in reported), sorted(NAMES[i] for i in BAD))
            self.assertEqual({event["set"] for event in reported}, {"train", "validation"})
        self.assertEqual(self.hash_of("validated1"), self.hash_of("validated2"))
        self.assertEqual([event["loss"] for event in self.events("validated1", "eval")],
                         [event["loss"] for event in self.events("validated2", "eval")])

    def test_it_is_counted(self):
        self.run_it("train", "job.yaml", "run_directory=counted", "data.bad_samples=replace",
                    f"telemetry.prometheus.port={free_port()}")
        text = (self.folder / "counted" / "metrics" / "final.prom").read_text()
        lines = [line for line in text.splitlines() if line.startswith("lockstep_bad_samples_total")]
        self.assertEqual([line.split()[-1] for line in lines], [str(len(BAD))])


if __name__ == "__main__":
    unittest.main()
