#!/usr/bin/env python3
"""`--profile` and `lockstep trace merge`: the contents of the files of a real run on two pretended hosts, and the
messages if something is missing."""
import collections
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from traced import PROGRAM, merge, train

JOB = ["model=lenet", "data.train.digits.count=640", "data.validation.digits.count=64", "batch_size=64", "micro_batches=8",
       "steps=12", "threads=2", "evaluate.every=3 steps", "checkpoint.every=2 steps", "bucket_bytes=65536"]
FIRST, LAST, RANKS, MICRO_BATCHES = 4, 9, 2, 8
PHASES, REDUCTION, CHECKPOINT = 10000, 11000, 11100  # thread ids in the merged file
WORKERS = range(10001, 11000)
PREFETCH = range(11101, 12000)


class Merged(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.run_directory = pathlib.Path(cls.folder.name) / "traced"
        cls.events = train(cls.run_directory, RANKS, "--profile", f"{FIRST}-{LAST}", *JOB, hosts=True)
        cls.lines, cls.merged = merge(cls.run_directory)
        cls.spans = [event for event in cls.merged["traceEvents"] if event["ph"] == "X"]
        cls.of_ranks = [span for span in cls.spans if span["pid"] < RANKS]

    def named(self, name, **arguments):
        return [span for span in self.of_ranks if span["name"] == name
                and all(span["args"].get(key) == value for key, value in arguments.items())]

    def test_what_it_says(self):
        found = re.fullmatch(r"(.*): 6 steps of 2 ranks, clocks within (\d+) us", self.lines[0])
        self.assertEqual(found[1], f"{self.run_directory}/trace/merged.json")
        self.assertGreater(int(found[2]), 0)
        self.assertRegex(self.lines[1], r"^(compute|input|communication|launch)-bound: |^imbalanced: ")
        self.assertEqual(self.merged["otherData"]["diagnosis"], self.lines[1])
        self.assertEqual((self.run_directory / "trace/diagnosis.txt").read_text(), self.lines[1] + "\n")
        parts = [int(part) for part in re.findall(r"(\d+) %", self.lines[1])]
        self.assertEqual(len(parts), 6)
        self.assertAlmostEqual(sum(parts), 100, delta=3)  # each part is rounded

    def test_each_step_has_its_phases_and_all_its_micro_batches(self):
        for step in range(FIRST, LAST + 1):
            for name in ("compute", "reduce", "update"):
                self.assertEqual([span["pid"] for span in self.named(name, step=step)], list(range(RANKS)), name)
            for name in ("micro_batch", "data wait"):
                micro_batches = sorted(span["args"]["micro_batch"] for span in self.named(name, step=step))
                self.assertEqual(micro_batches, list(range(MICRO_BATCHES)), name)
        steps = {span["args"]["step"] for span in self.spans if span["tid"] not in PREFETCH}
        self.assertEqual(steps, set(range(FIRST, LAST + 1)))
        self.assertEqual({span["args"]["step"] for span in self.named("evaluate")}, {6, 9})
        self.assertEqual({span["args"]["step"] for span in self.named("checkpoint")}, {4, 6, 8})

    def test_what_goes_on_beside_the_steps(self):
        loads = self.named("load")
        self.assertTrue(all(span["tid"] in PREFETCH for span in loads))
        self.assertEqual({span["pid"] for span in loads}, set(range(RANKS)))
        for span in loads:  # prefetched: also for steps that are not traced
            self.assertIn(span["args"]["step"], range(FIRST, 13))
            self.assertIn(span["args"]["micro_batch"], range(MICRO_BATCHES))
        for name, ranks in (("write", [0, 1]), ("commit", [0])):  # finished before the next checkpoint begins
            spans = self.named(name, step=6)
            self.assertEqual(sorted(span["pid"] for span in spans), ranks)
            self.assertTrue(all(span["tid"] == CHECKPOINT for span in spans))
        write, = self.named("write", step=6)[:1]
        begun = next(span for span in self.named("checkpoint", step=6) if span["pid"] == write["pid"])
        self.assertGreaterEqual(write["ts"], begun["ts"])
        path = [span["name"] for span in self.spans if span["pid"] == RANKS]
        self.assertFalse([name for name in path if name.split(" of ")[0] in ("load", "write", "commit")], path)

    def test_kernels_are_a_part_of_a_micro_batch(self):
        for span in self.named("micro_batch"):
            self.assertGreater(span["args"]["kernel_seconds"], 0)
            self.assertLessEqual(span["args"]["kernel_seconds"], span["args"]["seconds"])

    def test_every_bucket_is_under_way_once_a_step(self):
        begun, ended = collections.Counter(), collections.Counter()
        for event in self.merged["traceEvents"]:
            if event["ph"] in "be":
                self.assertEqual(event["cat"], "reduce")
                (begun if event["ph"] == "b" else ended)[event["pid"], event["id2"]["local"], event["name"]] += 1
        self.assertEqual(begun, ended)
        self.assertEqual(set(begun.values()), {1})
        buckets = {name for _, _, name in begun}
        self.assertGreater(len(buckets), 1)
        self.assertEqual(len(begun), RANKS * (LAST - FIRST + 1) * len(buckets))
        handed_over = self.named("hand over")
        self.assertEqual(len(handed_over), MICRO_BATCHES * (LAST - FIRST + 1) * len(buckets))
        self.assertTrue(all(span["tid"] in WORKERS for span in handed_over))
        self.assertTrue(all(span["tid"] == REDUCTION for span in self.named("add")))

    def test_spans_of_a_thread_nest(self):
        """Perfetto drops spans that overlap partially."""
        threads = collections.defaultdict(list)
        for span in self.spans:
            threads[span["pid"], span["tid"]].append((span["ts"], span["ts"] + span["dur"], span["name"]))
        for thread, spans in threads.items():
            open_spans = []
            for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
                while open_spans and open_spans[-1] <= start + 1e-3:
                    open_spans.pop()
                if open_spans:
                    self.assertLessEqual(end, open_spans[-1] + 1e-3, (thread, name))
                open_spans.append(end)

    def test_names_of_processes_and_threads(self):
        names = {(event["name"], event["pid"], event["tid"]): event["args"]["name"]
                 for event in self.merged["traceEvents"] if event["ph"] == "M"}
        for rank in range(RANKS):
            self.assertTrue(names["process_name", rank, PHASES].startswith(f"rank {rank} on "))
            self.assertEqual(names["thread_name", rank, PHASES], "phases")
            self.assertEqual(names["thread_name", rank, REDUCTION], "reduction")
            self.assertEqual(names["thread_name", rank, CHECKPOINT], "checkpoint writer")
            for thread in {span["tid"] for span in self.named("load") if span["pid"] == rank}:
                self.assertEqual(names["thread_name", rank, thread], f"prefetch {thread - PREFETCH[0]}")
            workers = {span["tid"] for span in self.named("micro_batch") if span["pid"] == rank}  # chance gives them work
            self.assertLessEqual(workers, set(WORKERS[:2]))
            for worker in workers:
                self.assertEqual(names["thread_name", rank, worker], f"worker {worker - WORKERS[0]}")
        self.assertEqual(names["process_name", RANKS, PHASES], "critical path")
        self.assertEqual({event["ph"] for event in self.merged["traceEvents"]}, {"X", "M", "b", "e"})
        self.assertLess(min(event["ts"] for event in self.merged["traceEvents"] if event["ph"] in "Xb"), 1e-3)

    def test_the_ranks_are_on_one_clock(self):
        """No rank's reduction ends before the other's begins, up to the error of the clocks."""
        limit = int(re.search(r"within (\d+) us", self.lines[0])[1]) + 1
        for step in range(FIRST, LAST + 1):
            one, other = self.named("reduce", step=step)
            for first, second in ((one, other), (other, one)):
                self.assertGreater(first["ts"] + first["dur"], second["ts"] - limit)
        for rank in range(RANKS):
            clocks = json.loads((self.run_directory / f"trace/rank-{rank}.json").read_text())["otherData"]["clocks"]
            self.assertEqual(len(clocks), 2)
            self.assertGreater(clocks[1]["at"], clocks[0]["at"])
            for clock in clocks:  # on one machine: there is no difference between its clocks
                self.assertLessEqual(abs(clock["offset"]), clock["error"] + 1e-9)
                self.assertEqual(clock["error"] > 0, rank > 0)

    def test_the_critical_path_is_one_way(self):
        path = sorted((span for span in self.spans if span["pid"] == RANKS), key=lambda span: span["ts"])
        for one, following in zip(path, path[1:]):
            self.assertLessEqual(one["ts"] + one["dur"], following["ts"] + 1e-3)
        for step in range(FIRST, LAST + 1):
            names = [span["name"] for span in path if span["args"]["step"] == step]
            self.assertEqual(len({name.split(" of ")[1] for name in names}), 1)
            self.assertTrue(names[-2].startswith("reduce of rank"), names)
            self.assertTrue(names[-1].startswith("update of rank"), names)

    def test_no_bit_is_another(self):
        quiet = pathlib.Path(self.folder.name) / "quiet"
        events = train(quiet, 1, *JOB)
        self.assertEqual(events[-1]["parameters_sha256"], self.events[-1]["parameters_sha256"])
        self.assertFalse((quiet / "trace").exists())


class Messages(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.run_directory = pathlib.Path(temporary.name) / "run"
        self.folder = self.run_directory / "trace"

    def traced(self, ranks=1, profile="2-3"):
        train(self.run_directory, ranks, "--profile", profile, *JOB)

    def fails(self, message):
        done = subprocess.run([PROGRAM, "trace", "merge", str(self.run_directory)], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (64, "", f"lockstep: {message}\n"))

    def test_steps_that_are_done(self):
        self.traced()
        before = (self.folder / "rank-0.json").read_bytes()
        done = subprocess.run([PROGRAM, "train", "--profile", "2-12", *JOB, f"run_directory={self.run_directory}"],
                              capture_output=True, text=True, check=True)
        self.assertIn("--profile: nothing to trace: step 12 is done already", done.stderr)
        self.assertEqual((self.folder / "rank-0.json").read_bytes(), before)

    def test_a_run_that_ends_early_writes_what_there_is(self):
        self.traced(profile="11-60")
        lines, _ = merge(self.run_directory)
        self.assertEqual(lines[0], f"{self.folder}/merged.json: 2 steps of 1 rank, clocks within 0 us")

    def test_a_rank_is_missing(self):
        self.traced(ranks=2)
        (self.folder / "rank-1.json").unlink()
        self.fails(f"{self.folder}/rank-1.json: expected the timeline of rank 1, found no such file; train with "
                   "--profile, and copy the files of hosts that do not share the run directory")

    def test_not_a_timeline(self):
        self.folder.mkdir(parents=True)
        (self.folder / "rank-0.json").write_text("{}")
        self.fails(f"{self.folder}/rank-0.json: expected the timeline of a rank, found something else; trace again")

    def test_of_another_start(self):
        self.traced(ranks=2)
        file = json.loads((self.folder / "rank-1.json").read_text())
        file["otherData"]["run"] += 1
        (self.folder / "rank-1.json").write_text(json.dumps(file))
        self.fails(f"{self.folder}/rank-1.json: expected a timeline of the same start as rank 0's, found another; trace "
                   "again")

    def test_no_whole_step(self):
        self.traced()
        file = json.loads((self.folder / "rank-0.json").read_text())
        file["traceEvents"] = [event for event in file["traceEvents"] if event["name"] != "update"]
        (self.folder / "rank-0.json").write_text(json.dumps(file))
        self.fails(f"{self.folder}: expected steps that every rank has traced completely, found none; trace again, with steps that "
                   "the run reaches")


if __name__ == "__main__":
    unittest.main(verbosity=2)
