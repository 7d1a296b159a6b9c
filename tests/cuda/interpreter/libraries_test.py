"""With libraries in the place of cuBLASLt and cuDNN that compute: the module's calls of them, with layouts, epilogues,
workspaces and low-precision operands. Every case of every op that multiplies is within its tolerance of the CPU; jobs
are near those of our own kernels, and end with one hash on any number of ranks, also where the libraries of two ranks
propose their algorithms in another order.
"""
import ranks_test
from interpreted import Interpreted, main

BY_LIBRARIES = "conv,linear,linear_gelu,gelu_linear"
# What older GPUs and versions have no algorithm for, so that our own kernels go on behind a plainer one; and of which ops.
LINEAR = "linear,linear_gelu,gelu_linear"
LACKS = (("bias,sums", LINEAR), ("gelu,gelu_gradient", "linear_gelu,gelu_linear"), ("relu", "conv"))


class Ops(Interpreted):
    def run_ops(self, test, ops=BY_LIBRARIES, **settings):
        self.run_ops_test(test, libraries=True, LOCKSTEP_TEST_OPS=ops, LOCKSTEP_TEST_LIBRARY=ops, **settings)

    def test_every_case(self):
        self.run_ops("OpsOnGpu.ComputeWhatTheyDoOnTheCpu", INTERPRETED_GPU_SEED="4")

    def test_every_case_in_two_bytes(self):
        """Of attention, too, which in fp32 is left to our own kernels."""
        self.run_ops("OpsOnGpu.ComputeWhatTheyDoOnTheCpuInTwoBytes", f"{BY_LIBRARIES},attention", INTERPRETED_GPU_SEED="5")

    def test_what_libraries_lack(self):
        for lacks, ops in LACKS:
            with self.subTest(lacks=lacks):
                self.run_ops("OpsOnGpu.ComputeWhatTheyDoOnTheCpu:OpsOnGpu.ComputeWhatTheyDoOnTheCpuInTwoBytes", ops,
                             INTERPRETED_LIBRARIES_LACK=lacks, INTERPRETED_GPU_SEED="6")


class Jobs(ranks_test.Ranks):
    """By libraries an end has no bits of our own kernels: it is near theirs."""
    SIZES = "1,8"  # of a micro-batch: an image; the tokens of a text

    def near(self, job, precision, tolerance, *more):
        words = (f"precision={precision}", *more)
        own = self.end_with_grids(job, *words)
        ends = [self.train(ranks, job, *words, libraries=True, INTERPRETED_LIBRARIES_DISAGREE=self.SIZES,
                           INTERPRETED_GPU_SEED=str(ranks))["end"] for ranks in (1, 3)]
        self.assertEqual(ends[0]["parameters_sha256"], ends[1]["parameters_sha256"])
        if precision == "fp32":  # a rounding to fewer bits may hide another order of additions
            self.assertNotEqual(ends[0]["parameters_sha256"], own["parameters_sha256"])
        self.assertAlmostEqual(ends[0]["loss"], own["loss"], delta=tolerance)

    def test_a_transformer(self):
        for precision, tolerance in (("fp32", 1e-5), ("bf16", 0.02), ("fp16", 0.005)):
            with self.subTest(precision=precision):
                self.near("gpt", precision, tolerance)

    def test_which_attention(self):
        """cuDNN's computes it in two bytes, with an engine that the module may take, where there are its output and its
        gradients; else our own kernels compute both. Through graphs or not, the bits are the same."""
        engine = r"cuDNN eng[23]"
        for precision, lacks, by_library in (("bf16", "", True), ("fp16", "", True), ("fp32", "", False),
                                             ("bf16", "attention", False), ("fp16", "attention_gradients", False)):
            with self.subTest(precision=precision, lacks=lacks):
                words = (f"precision={precision}", "steps=2")
                run = self.train(1, "gpt", *words, libraries=True, INTERPRETED_LIBRARIES_LACK=lacks)
                lines = run["start"]["algorithms"].splitlines()
                chosen = "".join(line for line in lines if line.startswith("attention "))
                if not by_library:
                    self.assertNotIn("cuDNN", chosen)
                    continue
                self.assertRegex(chosen, f"^attention '[^']+': output: {engine}; input's gradient: {engine}$")
                again = self.hash(1, "gpt", *words, "cuda_graphs=false", libraries=True)
                self.assertEqual(run["end"]["parameters_sha256"], again)

    def test_convolutions(self):
        for precision, tolerance in (("fp32", 1e-5), ("bf16", 0.02), ("fp16", 0.005)):
            with self.subTest(precision=precision):
                self.near("convolutions", precision, tolerance)

    def test_frozen_layers(self):
        for precision, tolerance in (("fp32", 1e-5), ("bf16", 0.02)):
            with self.subTest(precision=precision):
                self.near("convolutions", precision, tolerance, "model.freeze=['conv1.*', 'batch_norm1.weight']")

    def test_evaluations(self):
        """They compute by the algorithms of rank 0, for their own sizes, too: ranks whose libraries disagree find the numbers
        of one rank."""
        words = ("data.validation={digits: {count: 20, first: 100000}}", "evaluate={every: 2 steps}", "metrics=[accuracy]")
        found = [[(event["loss"], event["metrics"]) for event in
                  self.events(ranks, "convolutions", *words, libraries=True, INTERPRETED_LIBRARIES_DISAGREE=self.SIZES)
                  if event["event"] == "eval"] for ranks in (1, 3)]
        self.assertEqual(len(found[0]), 2)
        self.assertEqual(found[0], found[1])

    def test_libraries_that_disagree_on_what_a_fingerprint_is_taken_of(self):
        """The fingerprint's own kernels aren't told what to take: ranks whose libraries disagree there don't start."""
        done = self.run_ranks(2, "train", "gpt.yaml", libraries=True, code=64, INTERPRETED_LIBRARIES_DISAGREE="4")
        self.assertRegex(done.stderr, "rank [01] on .*: its fingerprint differs: expected kernels .*, found kernels ")


if __name__ == "__main__":
    main()
