"""Whole jobs with device: cuda on several ranks, by the real program and the real module: each rank has an interpreted
GPU, and libnccl.so.2 is a stand-in. They end with the hash of one rank, which is that of the same kernels compiled for
the CPU.
"""
import json
import pathlib
import socket
import subprocess
import sys

from interpreted import DRIVER, GRIDS, LOCKSTEP, REPORTS, Interpreted, environment, main, problems

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gpt_job import write_gpt  # noqa: E402  pylint: disable=wrong-import-position
from pretended_hosts import two_hosts  # noqa: E402  pylint: disable=wrong-import-position

HOST = socket.gethostname()
CONVOLUTIONS = """
job:
  model:
    layers:
      - conv: {filters: 4, kernel: 3, stride: 4, padding: same}
      - batch_norm
      - relu
      - global_pool
      - dropout: 0.2
      - linear: {features: 10}
  data: {train: {digits: {count: 64}}}
  batch_size: 6
  micro_batches: 6
  steps: 4
  seed: 3
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.01
  device: cuda
  evaluate: never
  checkpoint: never
"""


class Ranks(Interpreted):
    def setUp(self):
        super().setUp()
        write_gpt(self.folder, "gpt.yaml", micro_batches=6, clip_norm=0.5)
        (self.folder / "convolutions.yaml").write_text(CONVOLUTIONS, encoding="utf-8")

    def run_ranks(self, ranks, *words, code=0, hosts=1, **settings):
        """If the run ends as it should, each rank leaves a report; none of them has a problem."""
        before = len(list(REPORTS.glob("*.report")))
        command = (LOCKSTEP, *words, "--ranks", str(ranks)) if hosts == 1 else (*two_hosts(ranks), LOCKSTEP, *words)
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env=environment(**{"STAND_IN_GPUS": "3", **settings}), timeout=200)
        self.assertEqual(done.returncode, code, done.stdout[-4000:] + done.stderr[-4000:])
        self.assertEqual(problems(), [])
        self.assertNotIn("interpreted GPU: ", done.stderr)
        if code not in (1, 64):
            self.assertEqual(len(list(REPORTS.glob("*.report"))), before + ranks)
        return done

    def events(self, ranks, job, *words, **options):
        done = self.run_ranks(ranks, "train", f"{job}.yaml", "--log", "json", *words, **options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def train(self, *words, **options):
        return {event["event"]: event for event in self.events(*words, **options)}

    def hash(self, *words, **options):
        return self.train(*words, **options)["end"]["parameters_sha256"]

    def events_with_grids(self, job, *words):
        done = subprocess.run((LOCKSTEP, "train", f"{job}.yaml", "--log", "json", *words), cwd=self.folder,
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=100,
                              env=environment(LD_LIBRARY_PATH=DRIVER, LOCKSTEP_CUDA_MODULE=GRIDS))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def end_with_grids(self, *words):
        return self.events_with_grids(*words)[-1]


class Bits(Ranks):
    def test_a_transformer(self):
        """With dropout and clipping."""
        expected = self.end_with_grids("gpt")["parameters_sha256"]
        for seed, (ranks, hosts) in enumerate(((2, 1), (3, 1), (3, 2)), start=1):
            with self.subTest(ranks=ranks, hosts=hosts):
                self.assertEqual(self.hash(ranks, "gpt", hosts=hosts, INTERPRETED_GPU_SEED=str(seed)), expected)

    def test_batch_norm(self):
        expected = self.end_with_grids("convolutions")["parameters_sha256"]
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                self.assertEqual(self.hash(ranks, "convolutions"), expected)

    def test_updates_of_float16_that_are_skipped(self):
        words = ("precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "steps=8")
        expected = self.events_with_grids("convolutions", *words)
        found = self.events(3, "convolutions", *words, hosts=2)
        scales, expected_scales = ([(event["loss_scale"], event["skipped"]) for event in events if event["event"] == "step"]
                                   for events in (found, expected))
        self.assertEqual(scales, expected_scales)
        self.assertEqual({skipped for _, skipped in scales}, {True, False})
        self.assertEqual(found[-1]["parameters_sha256"], expected[-1]["parameters_sha256"])

    def test_resumed_at_other_sizes_while_shares_move(self):
        """The run fails in a step, continues with fewer ranks, one of which is said to be faster, and then with one."""
        expected = self.end_with_grids("convolutions")["parameters_sha256"]
        words = ("checkpoint.every=1 step", "balance=auto", "run_directory=run")
        self.train(3, "convolutions", *words, "timeout=100", code=1, INTERPRETED_NCCL_FAILS="1:3")
        events = self.train(2, "convolutions", *words, "--stop-at", "2", code=75)
        self.assertEqual(events["restart"]["step"], 1)
        record = self.folder / "run/balance.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "seconds_per_micro_batch": [1, 0.5]}))
        events = self.train(2, "convolutions", *words, "--stop-at", "3", code=75)
        self.assertEqual(events["balance"]["shares_by_rank"], {"0": 2, "1": 4})
        self.assertEqual(self.hash(1, "convolutions", *words), expected)

    def test_parts_of_a_model(self):
        """Two of three ranks compute the same part. The GPT's head is tied to a weight of its first part, and the norm
        is over both."""
        expected = self.end_with_grids("gpt")["parameters_sha256"]
        self.assertEqual(self.hash(3, "gpt", "parallel.parts=2"), expected)
        words = ("precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "steps=6", "clip_norm=1")
        expected = self.end_with_grids("convolutions", *words)["parameters_sha256"]
        self.assertEqual(self.hash(3, "convolutions", *words, "parallel.parts=2", hosts=2), expected)

    def test_divided_state(self):
        """Of the GPT and of convolutions, whose weights are in another order on GPUs; with two hosts, with float16's skipped
        updates, and beside parts; and divided parameters, which kernels in graphs read from slots."""
        expected = self.end_with_grids("gpt")["parameters_sha256"]
        self.assertEqual(self.hash(2, "gpt", "parallel.sharding=optimizer"), expected)
        end = self.train(3, "gpt", "parallel.sharding=gradients", hosts=2)["end"]
        self.assertEqual(end["parameters_sha256"], expected)
        self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])
        self.assertEqual(self.hash(3, "gpt", "parallel={parts: 2, sharding: optimizer}"), expected)
        self.assertEqual(self.hash(3, "gpt", "parallel={parts: 2, sharding: parameters}", "bucket_bytes=4096"), expected)
        for ranks, words in ((2, ("bucket_bytes=4096",)), (3, ("threads=1",))):
            self.assertEqual(self.hash(ranks, "gpt", "parallel.sharding=parameters", *words), expected)
        words = ("precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "steps=6", "clip_norm=1")
        expected = self.end_with_grids("convolutions", *words)["parameters_sha256"]
        for sharding in ("optimizer", "parameters"):
            self.assertEqual(self.hash(3, "convolutions", *words, f"parallel.sharding={sharding}"), expected)

    def test_matrices(self):
        """Whose steps need all of them: of ranks that have all of a model, or a part, or divide it."""
        for optimizer in ("optimizer={muon: {steps: 2}}", "optimizer=adafactor"):
            expected = self.end_with_grids("gpt", optimizer)["parameters_sha256"]
            for ranks, hosts, words in ((1, 1, ()), (2, 1, ()), (2, 1, ("parallel.sharding=optimizer", "bucket_bytes=1024")),
                                        (3, 2, ("parallel={parts: 2, sharding: optimizer}",)),
                                        (3, 1, ("parallel.sharding=parameters", "bucket_bytes=4096"))):
                with self.subTest(optimizer=optimizer, ranks=ranks, hosts=hosts, words=words):
                    self.assertEqual(self.hash(ranks, "gpt", optimizer, *words, hosts=hosts), expected)

    def test_sums_that_are_not_exact(self):
        end = self.train(2, "convolutions", "exact=never", "steps=1")["end"]
        expected = self.end_with_grids("convolutions", "steps=1")
        self.assertNotEqual(end["parameters_sha256"], expected["parameters_sha256"])
        self.assertAlmostEqual(end["loss"], expected["loss"], delta=0.001)


class Faults(Ranks):
    PLACE = rf"{HOST}, rank {{0}}, GPU {{0}} \(Stand-in, \S+\)"
    SAYS = r"unhandled system error \(run with NCCL_DEBUG=INFO for details\) \(as INTERPRETED_NCCL_FAILS says\)"

    def expect(self, said, *words, **settings):
        done = self.run_ranks(2, "train", "gpt.yaml", *words, code=1, **settings)
        self.assertRegex(done.stderr, f"(?m)^lockstep: {said}$")

    def test_a_start_that_fails_on_a_rank(self):
        self.expect(f"{self.PLACE.format(0)}: expected NCCL to start on all ranks, found that it failed on rank 1: "
                    f"{self.PLACE.format(1)}: ncclCommInitRankConfig failed with 2: {self.SAYS}", "timeout=100",
                    INTERPRETED_NCCL_FAILS="1:0")

    def test_a_start_that_hangs_on_a_rank(self):
        self.expect(f"{self.PLACE.format(0)}: ncclCommInitRankConfig is not done after 3 s; a rank is gone or late, or "
                    r"NCCL's network settings do not fit \(NCCL_DEBUG=INFO tells more\)", "timeout=3",
                    INTERPRETED_NCCL_HANGS="1:0")

    def test_a_step_in_which_it_fails(self):
        """The other rank may hear that this one has gone, and then be the first to report it."""
        place = self.PLACE.format(1)
        self.expect(f"{place}, step 1: the all-reduce of slices failed with 2: {self.SAYS}", "timeout=100",
                    INTERPRETED_NCCL_FAILS="1:3", INTERPRETED_NCCL_DEAF="1")
        gone = (r"[A-Za-z -]+ failed with 6: remote process exited or there was a network error \(rank 1 has closed its "
                r"connection\)")
        self.expect(f"({place}, step 1: ncclGroupEnd failed with 2: {self.SAYS}|{self.PLACE.format(0)}, step 1: {gone})",
                    "timeout=100", INTERPRETED_NCCL_FAILS="1:4")

    def test_a_step_in_which_it_hangs(self):
        self.expect(rf"rank [01] on host {HOST}: waited [0-9.]+ s for the other ranks in 'reduce' of step 0: slices of "
                    r"gradients have not come to its GPU; look at that rank's log: it ended, hangs or is much slower than "
                    r"this one \(then raise job\.timeout\)", "timeout=3", INTERPRETED_NCCL_HANGS="1:2",
                    INTERPRETED_NCCL_DEAF="1")


class Bench(Ranks):
    def test_all_reduce(self):
        """Every sum is checked by the bench itself."""
        done = self.run_ranks(2, "bench", "all-reduce", "--device", "cuda", "--sizes", "4KiB,64KiB", "--micro-batches-a-rank", "3",
                              "--rounds", "1", "--log", "json")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(line["way"], line["bytes"], line["ranks"]) for line in lines],
                         [(way, size, 2) for size in (4 << 10, 64 << 10) for way in ("exact", "plain", "library", "mpi")])


if __name__ == "__main__":
    main()
