"""Models whose parts are on different GPUs end with the bits of one rank, on stand-ins for the driver and the CUDA
module. Arguments: see gpu_jobs.py.
"""
from gpu_jobs import CHECKED, GRIDS, JOB, Place, main
from pretended_hosts import TWO_HOSTS

TOWERS = JOB.with_name("two-towers.yaml")


class Parts(Place):
    STEPS = ("steps=3", "evaluate.every=2 steps", "data.train.digits.count=400")

    def gpt(self, *words, **options):
        self.write_gpt()
        return self.hash(*words, job="job.yaml", **options)

    def test_parts_change_no_bit(self):
        """On fakes that know what orders each access; expects the CPU's hash, with an evaluation during training."""
        expected = self.hash(*self.STEPS)
        for ranks, parts, more in ((2, 2, ()), (3, 3, ("threads=1",)), (3, 2, ("parallel.in_flight=1",)),
                                   (3, 2, ("parallel.sharding=gradients", "bucket_bytes=1000")),
                                   (3, "[{until: start, ranks: 2}, {ranks: 1}]", ("clip_norm=1.0",))):
            with self.subTest(ranks=ranks, parts=parts):
                self.assertEqual(self.hash(*self.STEPS, "device=cuda", f"parallel.parts={parts}", *more,
                                           "--ranks", str(ranks), module=CHECKED), expected)

    def test_a_tied_weight_that_two_parts_have(self):
        expected = self.gpt("device=cpu")
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.assertEqual(self.gpt("parallel.parts=2", "--ranks", str(ranks),
                                          module=CHECKED), expected)

    def test_skipped_updates_of_float16(self):
        """Gradients of one part overflow: every part skips the update."""
        words = ("steps=6", "precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "evaluate=never",
                 "data.train.digits.count=400")
        events = self.run_program("train", str(JOB), "--log", "json", *words, "device=cuda").stdout
        self.assertIn('"skipped":true', events)
        self.assertIn('"skipped":false', events)
        for clip in ("1.0", "never"):
            expected = self.hash(*words, f"clip_norm={clip}")
            with self.subTest(clip=clip):
                self.assertEqual(self.hash(*words, f"clip_norm={clip}", "device=cuda", "parallel.parts=2", "--ranks", "3",
                                           module=CHECKED), expected)

    def test_a_part_without_products_in_float16(self):
        """Such as one of LSTMs: it passes on gradients that the loss's part has scaled."""
        words = ("model={lstm: {layers: 2, width: 16}}", "precision={fp16: {initial_scale: 1024}}")
        expected = self.gpt("device=cpu", *words)
        self.assertEqual(self.gpt(*words, "parallel.parts=3", "--ranks", "3", module=CHECKED), expected)

    def test_branches(self):
        (self.folder / "job.yaml").write_text(TOWERS.read_text().replace("epochs: 3", "steps: 2"))
        words = ("data.train.digits.count=128", "evaluate=never", "checkpoint=never")
        expected = self.hash(*words, job="job.yaml")
        self.assertEqual(self.hash(*words, "device=cuda", "parallel.parts={branches: auto}", "--ranks", "3", job="job.yaml",
                                   module=CHECKED), expected)

    def test_kernels_made_for_gpus(self):
        """A GPT in bfloat16, whose low-precision activations go from part to part."""
        for precision in ("fp32", "bf16"):
            hashes = {self.gpt(f"precision={precision}", *words, module=GRIDS)
                      for words in ((), ("parallel.parts=2", "--ranks", "2"), ("parallel.parts=2", "--ranks", "3"))}
            with self.subTest(precision=precision):
                self.assertEqual(len(hashes), 1)

    def test_two_hosts_recomputation_and_resumes_at_another_placement(self):
        words = (*self.STEPS, "steps=4", "recompute=cheap", "checkpoint.every=1 step")
        expected = self.hash(*words, "run_directory=cpu")
        words = (*words, "device=cuda", "run_directory=gpu")
        self.run_program("train", str(JOB), *words, "--stop-at", "2", "parallel.parts=2", module=CHECKED, prefix=TWO_HOSTS,
                         code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "3", "--ranks", "2", module=CHECKED, code=75)
        self.assertEqual(self.hash(*words, "parallel.parts=3", "--ranks", "3", module=CHECKED), expected)

    def test_what_does_not_fit(self):
        """Each rank says what it would store for its part; which of them is heard first is not certain."""
        done = self.run_program("train", str(JOB), *self.STEPS, "device=cuda", "parallel.parts=2", "--ranks", "2",
                                STAND_IN_FREE="3000000", code=78)
        self.assertRegex(done.stderr, r"^lockstep: \S+, rank \d, GPU \d \(Stand-in, \S+\): expected 19.[12] MiB of free memory, "
                         r"found 2.9 MiB; try parallel.in_flight: less, or more micro-batches \(one has 4 samples now\), or "
                         r"threads: 1\n")
        self.assertRegex(done.stderr, r"\n  activations +9.[34] MiB   8 x 1.2 MiB\n")
        self.assertRegex(done.stderr, r"\n  activations of evaluations +9.[34] MiB   8 x 1.2 MiB\n")


if __name__ == "__main__":
    main()
