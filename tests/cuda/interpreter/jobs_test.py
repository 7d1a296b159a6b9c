"""Whole jobs with device: cuda, by the real program and the real module, one rank, on the interpreted GPU: they end
with the hash of the same kernels compiled for the CPU, whose grids a stand-in module runs.
"""
import json
import pathlib
import subprocess
import sys

from interpreted import DRIVER, GRIDS, LOCKSTEP, REPORTS, Interpreted, environment, main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gpt_job import TEXT, gpt_job  # noqa: E402  pylint: disable=wrong-import-position

CONVOLUTIONS = """
job:
  model:
    layers:
      - conv: {filters: 4, kernel: 3, stride: 2, padding: same}
      - batch_norm
      - relu
      - global_pool
      - linear: {features: 10}
  data: {train: {digits: {count: 64}}}
  batch_size: 8
  micro_batches: 4
  steps: 3
  seed: 3
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.01
  device: cuda
  evaluate: never
  checkpoint: never
"""
# Steps of whole matrices, one of them in another order on the GPU; products longer than a block of fused terms.
MATRICES = CONVOLUTIONS.replace("- global_pool\n", """- conv: {filters: 6, kernel: 3, padding: same}
      - global_pool
      - {linear: {features: 300}}
""").replace("{sgd: {momentum: 0.9}}", "{muon: {steps: 2, weight_decay: 0.1}}")
# Moments of their rows and columns, of gradients that are read in both orders.
FACTORED = MATRICES.replace("{muon: {steps: 2, weight_decay: 0.1}}", "{adafactor: {weight_decay: 0.1}}\n  clip_norm: 0.1")
# Images that are moved on the GPU.
MOVES = CONVOLUTIONS.replace("data: {train: {digits: {count: 64}}}", """data:
    train: {digits: {count: 64}}
    augment: [flip, {crop: {padding: 4}}, {cutout: {size: 9}}]
    cache: device""")
# Tensors of more than 2,048 elements, so that threads of kernels over elements have all of theirs.
LAYERS = """
job:
  model:
    layers:
      - {conv: {filters: 8, kernel: 3}}
      - batch_norm
      - relu
      - {max_pool: {kernel: 2}}
      - {avg_pool: {kernel: 2}}
      - flatten
      - {linear: {features: 256}}
      - tanh
      - silu
      - sigmoid
      - gelu
      - {scale: 2}
      - layer_norm
      - {linear: {features: 256}}
      - {gelu: {approximate: none}}
      - rms_norm
      - {dropout: 0.2}
      - {linear: {features: 10}}
  data: {train: {digits: {count: 64}}}
  batch_size: 32
  micro_batches: 2
  steps: 1
  seed: 3
  optimizer: adam
  learning_rate: 0.01
  device: cuda
  evaluate: never
  checkpoint: never
"""
# Gradients that kernels add themselves: those of norms to those that go around them, and where a relu behind an addition
# has two of them.
RESIDUALS = """
job:
  model:
    layers:
      - conv: {filters: 8, kernel: 3, stride: 4, padding: same}
      - batch_norm
      - relu
      - conv: {filters: 8, kernel: 3, padding: same}
      - batch_norm
      - add: {inputs: [previous, relu1]}
      - relu
      - conv: {filters: 8, kernel: 3, padding: same}
      - add: {inputs: [previous, relu2]}
      - relu
      - flatten
      - {linear: {features: 515}}
      - layer_norm
      - add: {inputs: [previous, linear1]}
      - rms_norm
      - add: {inputs: [previous, add3]}
      - {linear: {features: 10}}
  data: {train: {digits: {count: 16}}}
  batch_size: 4
  micro_batches: 2
  steps: 2
  seed: 3
  optimizer: adam
  learning_rate: 0.01
  device: cuda
  evaluate: never
  checkpoint: never
"""

# The product whose left operand is a matrix's columns.
LINEAR_WEIGHT_GRADIENT = r"11MatrixLinesI(f|NS0_7ElementINS_\w+?EEE)Lb0EEES\d+_NS0_12StoreElement"


class Jobs(Interpreted):
    def setUp(self):
        super().setUp()
        (self.folder / "text.txt").write_text(TEXT, encoding="utf-8")

    def hash(self, job, *words, grids=False, **settings):
        """Of the parameters; and the norms of the gradient, which the host reads in each step."""
        (self.folder / "job.yaml").write_text(job, encoding="utf-8")
        command = (LOCKSTEP, "train", "job.yaml", "--log", "json", *words)
        if grids:
            said = self.run_with_grids(command)
        else:
            said = self.run_interpreted(*command, **settings)
        lines = [json.loads(line) for line in said.splitlines()]
        norms = [line["gradient_norm"] for line in lines if line.get("gradient_norm") is not None]
        return [line["parameters_sha256"] for line in lines if line["event"] == "end"], norms

    def run_with_grids(self, command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300,
                              env=environment(LD_LIBRARY_PATH=DRIVER, LOCKSTEP_CUDA_MODULE=GRIDS))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_transformer(self):
        expected = self.hash(gpt_job(), grids=True)
        for seed, words in enumerate(((), ("cuda_graphs=false",), ("threads=1",)), start=1):
            with self.subTest(words=words):
                self.assertEqual(self.hash(gpt_job(), *words, INTERPRETED_GPU_SEED=str(seed)), expected)

    def test_layers_of_many_elements(self):
        for precision in ("fp32", "bf16", "fp16"):
            with self.subTest(precision=precision):
                words = (f"precision={precision}",)
                self.assertEqual(self.hash(LAYERS, *words), self.hash(LAYERS, *words, grids=True))

    def test_residuals(self):
        for precision in ("fp32", "bf16", "fp16"):
            with self.subTest(precision=precision):
                words = (f"precision={precision}",)
                self.assertEqual(self.hash(RESIDUALS, *words), self.hash(RESIDUALS, *words, grids=True))

    def test_convolutions(self):
        for precision in ("fp32", "bf16", "fp16"):
            with self.subTest(precision=precision):
                words = (f"precision={precision}",)
                self.assertEqual(self.hash(CONVOLUTIONS, *words), self.hash(CONVOLUTIONS, *words, grids=True))

    def test_matrices(self):
        for precision in ("fp32", "bf16", "fp16"):
            with self.subTest(precision=precision):
                words = (f"precision={precision}",)
                self.assertEqual(self.hash(MATRICES, *words), self.hash(MATRICES, *words, grids=True))
                self.assertEqual(self.hash(FACTORED, *words), self.hash(FACTORED, *words, grids=True))

    def launches(self, *words):
        """Of a job, by kernel; its hash."""
        before = set(REPORTS.glob("*.report"))
        found = self.hash(CONVOLUTIONS, *words)
        [report] = set(REPORTS.glob("*.report")) - before
        lines = (line.split("\t") for line in report.read_text(encoding="utf-8").splitlines())
        return {words[4]: int(words[1]) for words in lines if words[0] == "kernel"}, found

    def test_frozen_layers(self):
        """No step launches a kernel for the gradient of a frozen weight, nor for what lies behind the last layer that learns;
        the fingerprint's kernels are launched once, in any job."""
        words = ("model.freeze=['conv1.*', 'batch_norm1.weight', 'linear1.weight']",)
        for precision in ("fp32", "bf16"):
            with self.subTest(precision=precision):
                few, _ = self.launches(*words, f"precision={precision}", "steps=1")
                more, found = self.launches(*words, f"precision={precision}")
                self.assertEqual(found, self.hash(CONVOLUTIONS, *words, f"precision={precision}", grids=True))
                grown = " ".join(kernel for kernel in more if more[kernel] > few.get(kernel, 0))
                self.assertIn("BlockGradientSumsFunctor", grown)  # for batch_norm's bias
                for left in ("StoreConvWeight", "WindowsOverPixels", "NormalizeGradientFunctor"):
                    self.assertNotIn(left, grown)
                self.assertNotRegex(grown, LINEAR_WEIGHT_GRADIENT)

    def details(self, run, grids):
        """Of an evaluation that keeps what is predicted: the loss, the metrics, and how each sample fared."""
        command = (LOCKSTEP, "eval", run, "--details", "--worst", "21", "--log", "json")
        said = self.run_with_grids(command) if grids else self.run_interpreted(*command)
        found = json.loads((self.folder / run / "evaluations/validation.json").read_text(encoding="utf-8"))
        return [json.loads(said)[key] for key in ("loss", "metrics")], found

    def test_an_evaluation_that_keeps_predictions(self):
        for precision in ("fp32", "bf16", "fp16"):
            with self.subTest(precision=precision):
                words = (f"precision={precision}", "data.validation={digits: {count: 21, first: 1000}}", "metrics=[accuracy]",
                         "checkpoint={every: 100 steps}", f"run_directory={precision}")
                self.hash(CONVOLUTIONS, *words, grids=True)
                metrics, found = self.details(precision, grids=False)
                self.assertEqual((metrics, found), self.details(precision, grids=True))
                losses = [sample["loss"] for sample in found["worst"]]
                self.assertEqual(len(set(losses)), 21)
                self.assertAlmostEqual(sum(losses) / 21, metrics[0], places=5)

    def test_norms_that_are_recomputed(self):
        self.assertEqual(self.hash(CONVOLUTIONS, "recompute=cheap"), self.hash(CONVOLUTIONS, grids=True))

    def test_data_on_the_gpu(self):
        self.assertEqual(self.hash(MOVES), self.hash(MOVES, grids=True))


if __name__ == "__main__":
    main()
