"""Ranks on GPUs that divide the optimizer's states and updates, and parameters, end with the bits of one rank, on
stand-ins for the driver and the CUDA module that know what orders each access. Arguments: see gpu_jobs.py.
"""
import json
import re

from gpu_jobs import CHECKED, GRIDS, HOST, JOB, Place, main
from pretended_hosts import TWO_HOSTS

OPTIMIZER, GRADIENTS, PARAMETERS = (f"parallel.sharding={what}" for what in ("optimizer", "gradients", "parameters"))


class Sharding(Place):
    STEPS = ("steps=3", "evaluate.every=2 steps", "data.train.digits.count=400")

    def gpt(self, *words, **options):
        self.write_gpt()
        return self.hash(*words, job="job.yaml", **options)

    def test_sharding_changes_no_bit(self):
        """With and without clipping, for which the host waits: without it more work is in flight."""
        for norm in ("1.0", "never"):
            expected = self.hash(*self.STEPS, f"clip_norm={norm}")
            for ranks, sharding in ((2, OPTIMIZER), (3, GRADIENTS), (1, PARAMETERS), (2, PARAMETERS), (3, PARAMETERS)):
                with self.subTest(norm=norm, ranks=ranks, sharding=sharding):
                    end = self.train(*self.STEPS, f"clip_norm={norm}", "device=cuda", sharding, "--ranks", str(ranks),
                                     module=CHECKED)["end"]
                    self.assertEqual(end["parameters_sha256"], expected)
                    self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])

    def test_two_hosts(self):
        expected = self.hash(*self.STEPS)
        for sharding in (OPTIMIZER, GRADIENTS, PARAMETERS):
            end = self.train(*self.STEPS, "device=cuda", sharding, module=CHECKED, prefix=TWO_HOSTS)["end"]
            self.assertEqual(end["parameters_sha256"], expected)
            self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])

    def test_parameters_in_waves(self):
        """Units of about one parameter, and one unit of all; one worker and more, so that ranks with 6, 5 and 5 micro-batches make
        unequally many waves; kernels in graphs and one by one."""
        expected = self.hash(*self.STEPS)
        for words in (("threads=5", "bucket_bytes=1000"), ("threads=1", "cuda_graphs=false"), ("bucket_bytes=1000000",)):
            with self.subTest(words=words):
                self.assertEqual(self.hash(*self.STEPS, *words, "device=cuda", PARAMETERS, "--ranks", "3", module=CHECKED),
                                 expected)

    def test_gradients_in_waves(self):
        """Many small buckets and one of all; one worker and more, so that ranks have unequally many micro-batches in a wave;
        kernels in graphs and one by one; buckets of more than the 8 MiB that wait in a ring."""
        expected = self.hash(*self.STEPS)
        for words in (("threads=5", "bucket_bytes=1000"), ("threads=1", "cuda_graphs=false"), ("bucket_bytes=1000000",)):
            with self.subTest(words=words):
                end = self.train(*self.STEPS, *words, "device=cuda", GRADIENTS, "--ranks", "3", module=CHECKED)["end"]
                self.assertEqual(end["parameters_sha256"], expected)
                self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])
        self.write_gpt()
        wide = ("model={gpt: {layers: 2, heads: 2, width: 512}}", "bucket_bytes=100000")
        expected = self.hash("device=cpu", *wide, job="job.yaml")
        for sharding in (GRADIENTS, PARAMETERS):
            self.assertEqual(self.hash(*wide, sharding, "--ranks", "2", job="job.yaml", module=CHECKED), expected)

    def test_unequal_shares(self):
        """A rank with few micro-batches exchanges and gathers for the others, in training and in evaluations."""
        expected = self.hash(*self.STEPS, "steps=4")
        for sharding in (GRADIENTS, PARAMETERS):
            run = f"run_directory={sharding}"
            words = (*self.STEPS, "steps=4", "checkpoint.every=1 step", "balance=auto", run, "device=cuda", sharding, "--ranks",
                     "3")
            self.train(*words, "--stop-at", "1", module=CHECKED, code=75)
            record = self.folder / sharding / "balance.json"
            record.write_text(json.dumps({**json.loads(record.read_text()), "seconds_per_micro_batch": [1, 0.1, 0.3]}))
            events = self.train(*words, module=CHECKED)
            shares = events["balance"]["shares_by_rank"]
            self.assertGreater(shares["1"], 3 * shares["0"])
            self.assertEqual(events["end"]["parameters_sha256"], expected)

    def test_a_tied_weight_and_frozen_ones(self):
        for words in ((), ("model.freeze=['positions*', 'block1.*']",)):
            expected = self.gpt("device=cpu", *words)
            for more in ((OPTIMIZER,), (OPTIMIZER, "parallel.parts=2"), (GRADIENTS, "bucket_bytes=4096"),
                         (GRADIENTS, "parallel.parts=2"), (PARAMETERS,), (PARAMETERS, "bucket_bytes=4096"),
                         (PARAMETERS, "parallel.parts=2", "bucket_bytes=4096")):
                with self.subTest(words=words, more=more):
                    self.assertEqual(self.gpt(*words, *more, "--ranks", "3", module=CHECKED), expected)

    def test_steps_of_whole_matrices(self):
        """Of which ranks divide some; with updates that are skipped, and one before any is made. Moments of rows and columns
        are on every rank."""
        skips = ("precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "steps=6")
        ways = ((), ("--ranks", "2"), (OPTIMIZER, "bucket_bytes=4096", "--ranks", "3"),
                (OPTIMIZER, "parallel.parts=2", "--ranks", "3"), (PARAMETERS, "bucket_bytes=4096", "--ranks", "3"))
        for name in ("muon", "adafactor"):
            optimizer = f"optimizer={{{name}: {{weight_decay: 0.1}}}}"
            expected = self.hash(*self.STEPS, optimizer, *skips)
            expected_of_text = self.gpt("device=cpu", optimizer)
            for way in ways:
                with self.subTest(optimizer=name, way=way):
                    self.assertEqual(self.hash(*self.STEPS, optimizer, *skips, "device=cuda", *way, module=CHECKED), expected)
                    self.assertEqual(self.gpt(optimizer, *way, module=CHECKED), expected_of_text)

    def test_skipped_updates_of_float16(self):
        words = ("steps=6", "precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "evaluate=never",
                 "data.train.digits.count=400")
        for clip in ("1.0", "never"):
            expected = self.hash(*words, f"clip_norm={clip}")
            for more in ((OPTIMIZER,), (OPTIMIZER, "parallel.parts=2"), (GRADIENTS,), (GRADIENTS, "parallel.parts=2"),
                         (PARAMETERS,), (PARAMETERS, "parallel.parts=2")):
                with self.subTest(clip=clip, more=more):
                    self.assertEqual(self.hash(*words, f"clip_norm={clip}", "device=cuda", *more, "--ranks", "3",
                                               module=CHECKED), expected)

    def test_kernels_made_for_gpus(self):
        """In bfloat16, each rank casts the weights that it has received, or what is gathered is cast already."""
        for precision in ("fp32", "bf16"):
            hashes = {self.gpt(f"precision={precision}", *words, module=GRIDS)
                      for words in ((), (OPTIMIZER, "--ranks", "2"), (OPTIMIZER, "--ranks", "3"), (GRADIENTS, "--ranks", "3"),
                                    (PARAMETERS, "--ranks", "2"), (PARAMETERS, "bucket_bytes=1000", "--ranks", "3"),
                                    (PARAMETERS, "parallel.parts=2", "--ranks", "3"))}
            with self.subTest(precision=precision):
                self.assertEqual(len(hashes), 1)

    def test_checkpoints_are_of_the_whole_model(self):
        """Stopped and resumed with another sharding, on other ranks; and so is the checkpoint itself."""
        words = (*self.STEPS, "steps=6", "checkpoint={every: 1 step, keep: 10}")
        expected = self.hash(*words, "run_directory=cpu")
        words = (*words, "device=cuda", "run_directory=gpu")
        self.run_program("train", str(JOB), *words, "--stop-at", "1", OPTIMIZER, "--ranks", "3", module=CHECKED, code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "2", module=CHECKED, code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "3", GRADIENTS, "--ranks", "2", module=CHECKED, code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "4", PARAMETERS, "--ranks", "3", module=CHECKED, code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "5", PARAMETERS, "--ranks", "3", "parallel.parts=2",
                         module=CHECKED, code=75)
        self.assertEqual(self.hash(*words, OPTIMIZER, "--ranks", "3", "parallel.parts=2", module=CHECKED), expected)

    def test_checkpoints_of_moments_of_rows_and_columns(self):
        """Written by ranks that divide the model, or not, and read by others."""
        words = (*self.STEPS, "steps=5", "checkpoint={every: 1 step, keep: 10}", "optimizer={adafactor: {weight_decay: 0.1}}")
        expected = self.hash(*words, "run_directory=cpu")
        words = (*words, "device=cuda", "run_directory=gpu")
        for stop, *way in ((1,), (2, OPTIMIZER, "--ranks", "3"), (3, "--ranks", "2"),
                           (4, PARAMETERS, "--ranks", "3", "parallel.parts=2")):
            self.run_program("train", str(JOB), *words, *way, "--stop-at", str(stop), module=CHECKED, code=75)
        self.assertEqual(self.hash(*words, module=CHECKED), expected)

    def test_memory_is_that_of_the_slices(self):
        """What a rank says that it would store, if it does not fit: of the optimizer a third, and of the parameters, if they
        are divided, too; then some of others besides, the largest of which is the vocabulary's."""
        self.write_gpt()

        def needs(*words):
            done = self.run_program("train", "job.yaml", "model={gpt: {layers: 8, heads: 2, width: 256}}", *words, "--ranks",
                                    "3", STAND_IN_FREE="16000000", code=78)
            return {what: float(size) for what, size in re.findall(r"\n  ([a-z 0-9-]+[a-z]) +([0-9.]+) MiB", done.stderr)}
        none, optimizer, parameters = needs(), needs(OPTIMIZER), needs(PARAMETERS, "bucket_bytes=100000")
        gradients = needs(GRADIENTS, "bucket_bytes=100000")
        for what in ("gradient", "optimizer"):
            self.assertLess(optimizer[what], 0.5 * none[what])
        for divided in (gradients, parameters):
            self.assertLess(divided["all-reduce of gradients"], 0.7 * optimizer["all-reduce of gradients"])
        everything = none["parameters and states"]
        self.assertEqual(optimizer["parameters and states"], everything)
        self.assertLess(parameters["parameters and states"], 0.36 * everything)
        self.assertLess(parameters["gathered parameters"], 0.2 * everything)

    def test_gradients_in_parts(self):
        """Ranks of a part exchange the gradients of a wave of backwards. Statistics are finished in a forward, several of
        which a worker makes before a backward."""
        expected = self.hash(*self.STEPS)
        for ranks, parts, *more in ((3, "2"), (4, "2", "threads=1", "bucket_bytes=1000"),
                                    (4, "[{until: start, ranks: 1}, {ranks: 3}]", "threads=3", "bucket_bytes=1000"),
                                    (4, "[{until: start, ranks: 3}, {ranks: 1}]", "parallel.in_flight=1")):
            with self.subTest(ranks=ranks, parts=parts, more=more):
                self.assertEqual(self.hash(*self.STEPS, "device=cuda", GRADIENTS, f"parallel.parts={parts}", *more, "--ranks",
                                           str(ranks), module=CHECKED, STAND_IN_GPUS="4"), expected)

    def test_parameters_in_parts(self):
        """Ranks of a part gather together, each of which computes forwards and backwards in an order of its own: one rank
        with all micro-batches beside two that share them, two beside two; one worker and several, one micro-batch in flight and more;
        units of about one parameter, and one unit of all."""
        expected = self.hash(*self.STEPS)
        for ranks, parts, *more in ((3, "2"), (4, "2", "threads=1", "bucket_bytes=1000"),
                                    (4, "[{until: start, ranks: 1}, {ranks: 3}]", "threads=3", "bucket_bytes=1000"),
                                    (4, "[{until: start, ranks: 3}, {ranks: 1}]", "parallel.in_flight=1"),
                                    (4, "3", "threads=1", "bucket_bytes=1000000")):
            with self.subTest(ranks=ranks, parts=parts, more=more):
                self.assertEqual(self.hash(*self.STEPS, "device=cuda", PARAMETERS, f"parallel.parts={parts}", *more, "--ranks",
                                           str(ranks), module=CHECKED, STAND_IN_GPUS="4"), expected)

    def test_parameters_in_parts_with_unequal_shares(self):
        """On two hosts: a part has two ranks of one, and a slower rank of the other."""
        expected = self.hash(*self.STEPS)
        end = self.train(*self.STEPS, "device=cuda", PARAMETERS, "parallel.parts=[{until: start, ranks: 3}, {ranks: 1}]",
                         "balance={weights: {h0: 3, h1: 1}}", module=CHECKED, prefix=TWO_HOSTS)["end"]
        self.assertEqual(end["micro_batches_by_rank"], {"0": 7, "1": 7, "2": 2, "3": 16})
        self.assertEqual(end["parameters_sha256"], expected)

    def test_parameters_of_branches(self):
        (self.folder / "job.yaml").write_text(JOB.with_name("two-towers.yaml").read_text().replace("epochs: 3", "steps: 2"))
        words = ("data.train.digits.count=128", "evaluate=never", "checkpoint=never")
        expected = self.hash(*words, job="job.yaml")
        self.assertEqual(self.hash(*words, "device=cuda", PARAMETERS, "parallel.parts={branches: auto}", "--ranks", "5",
                                   job="job.yaml", module=CHECKED, STAND_IN_GPUS="5"), expected)

    def test_a_rank_that_hangs(self):
        """The others do not wait for ever for the parameters that it owns."""
        for words in ((OPTIMIZER, "--ranks", "2"), (GRADIENTS, "--ranks", "2"), (PARAMETERS, "--ranks", "2"),
                      (PARAMETERS, "parallel.parts=2", "--ranks", "3")):
            with self.subTest(words=words):
                done = self.run_program("train", str(JOB), *self.STEPS, "device=cuda", *words, "timeout=3",
                                        STAND_IN_HANGS="1:1", code=1)
                self.assertRegex(done.stderr, r"waited [0-9.]+ s for (rank 1 \(host \S+\)|the other ranks) in "
                                 r"'[A-Za-z -]+' of step 1")

    def test_messages_that_fail(self):
        """While workers wait for parameters, or for room for gradients, some of which are still on their way: nothing of them
        is in use any more when their memory is freed."""
        for sharding, step, *words in (
                (PARAMETERS, 1, "--ranks", "2"), (PARAMETERS, 2, "--ranks", "2"),
                (PARAMETERS, 1, "--ranks", "3", "parallel.parts=[{until: start, ranks: 2}, {ranks: 1}]"),
                (GRADIENTS, 1, "--ranks", "2"),
                (GRADIENTS, 1, "--ranks", "3", "parallel.parts=[{until: start, ranks: 2}, {ranks: 1}]")):
            done = self.run_program("train", str(JOB), *self.STEPS, "device=cuda", sharding, *words, "timeout=100",
                                    module=CHECKED, STAND_IN_FAILS=f"0:{step}", code=1)
            self.assertRegex(done.stderr, rf"(?m)^lockstep: {HOST}, rank 0, GPU 0 \(Stand-in, \S+\): the messages of step "
                             rf"{step} failed$")


if __name__ == "__main__":
    main()
