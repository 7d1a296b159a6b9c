"""Ranks on GPUs that divide the optimizer's states and updates end with the bits of one rank, on stand-ins for the driver
and the CUDA module that know what orders each access. Arguments: see gpu_jobs.py.
"""
import re

from gpu_jobs import CHECKED, GPT, GRIDS, JOB, Place, main
from pretended_hosts import TWO_HOSTS

OPTIMIZER, GRADIENTS = "parallel.sharding=optimizer", "parallel.sharding=gradients"


class Sharding(Place):
    STEPS = ("steps=3", "evaluate.every=2 steps", "data.train.digits.count=400")

    def gpt(self, *words, **options):
        (self.folder / "text.txt").write_text("To be, or not to be, that is the question.\n" * 40)
        (self.folder / "job.yaml").write_text(GPT)
        return self.hash(*words, job="job.yaml", **options)

    def test_sharding_changes_no_bit(self):
        """With and without clipping, for which the host waits: without it more work is in flight."""
        for norm in ("1.0", "never"):
            expected = self.hash(*self.STEPS, f"clip_norm={norm}")
            for ranks, sharding in ((2, OPTIMIZER), (3, GRADIENTS)):
                with self.subTest(norm=norm, ranks=ranks, sharding=sharding):
                    end = self.train(*self.STEPS, f"clip_norm={norm}", "device=cuda", sharding, "--ranks", str(ranks),
                                     module=CHECKED)["end"]
                    self.assertEqual(end["parameters_sha256"], expected)
                    self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])

    def test_two_hosts(self):
        expected = self.hash(*self.STEPS)
        end = self.train(*self.STEPS, "device=cuda", OPTIMIZER, module=CHECKED, prefix=TWO_HOSTS)["end"]
        self.assertEqual(end["parameters_sha256"], expected)
        self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])

    def test_a_tied_weight_and_frozen_ones(self):
        for words in ((), ("model.freeze=['positions*', 'block1.*']",)):
            expected = self.gpt("device=cpu", *words)
            for more in ((), ("parallel.parts=2",)):
                with self.subTest(words=words, more=more):
                    self.assertEqual(self.gpt(OPTIMIZER, *words, *more, "--ranks", "3", module=CHECKED), expected)

    def test_skipped_updates_of_float16(self):
        words = ("steps=6", "precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "evaluate=never",
                 "data.train.digits.count=400")
        for clip in ("1.0", "never"):
            expected = self.hash(*words, f"clip_norm={clip}")
            for more in ((), ("parallel.parts=2",)):
                with self.subTest(clip=clip, more=more):
                    self.assertEqual(self.hash(*words, f"clip_norm={clip}", "device=cuda", OPTIMIZER, *more, "--ranks", "3",
                                               module=CHECKED), expected)

    def test_kernels_made_for_gpus(self):
        """In bfloat16, each rank casts the weights that it has received."""
        for precision in ("fp32", "bf16"):
            hashes = {self.gpt(f"precision={precision}", *words, module=GRIDS)
                      for words in ((), (OPTIMIZER, "--ranks", "2"), (OPTIMIZER, "--ranks", "3"))}
            with self.subTest(precision=precision):
                self.assertEqual(len(hashes), 1)

    def test_checkpoints_are_of_the_whole_model(self):
        """Stopped and resumed with another sharding, on other ranks; and so is the checkpoint itself."""
        words = (*self.STEPS, "steps=4", "checkpoint={every: 1 step, keep: 10}")
        expected = self.hash(*words, "run_directory=cpu")
        words = (*words, "device=cuda", "run_directory=gpu")
        self.run_program("train", str(JOB), *words, "--stop-at", "1", OPTIMIZER, "--ranks", "3", module=CHECKED, code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "2", module=CHECKED, code=75)
        self.run_program("train", str(JOB), *words, "--stop-at", "3", GRADIENTS, "--ranks", "2", module=CHECKED, code=75)
        self.assertEqual(self.hash(*words, OPTIMIZER, "--ranks", "3", "parallel.parts=2", module=CHECKED), expected)

    def test_memory_is_that_of_the_slices(self):
        """What a rank says that it would store, if it does not fit: of the optimizer a third."""
        (self.folder / "text.txt").write_text("To be, or not to be, that is the question.\n" * 40)
        (self.folder / "job.yaml").write_text(GPT)

        def needs(*words):
            done = self.run_program("train", "job.yaml", "model={gpt: {layers: 2, heads: 2, width: 256}}", *words, "--ranks",
                                    "3", STAND_IN_FREE="16000000", code=78)
            return [float(re.search(rf"\n  {what} +([0-9.]+) MiB", done.stderr).group(1))
                    for what in ("gradient", "optimizer")]
        for whole, of_slices in zip(needs(), needs(OPTIMIZER)):
            self.assertLess(of_slices, 0.5 * whole)

    def test_a_rank_that_hangs(self):
        """The others do not wait for ever for the parameters that it owns."""
        done = self.run_program("train", str(JOB), *self.STEPS, "device=cuda", OPTIMIZER, "--ranks", "2", "timeout=3",
                                STAND_IN_HANGS="1:1", code=1)
        self.assertRegex(done.stderr, r"waited [0-9.]+ s for rank 1 \(host \S+\) in '[a-z -]+' of step 1")


if __name__ == "__main__":
    main()
