#!/usr/bin/env python3
"""Fine-tuning by LoRA: from a file of weights to merged weights, and what is said on the way."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from lockstep_reader import open_weights  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  model:
    layers:
      - {conv: {filters: 2, kernel: 3, stride: 7}}
      - flatten
      - {linear: {features: 12}, name: middle}
      - relu
      - {linear: {features: 10}, name: head}
  data: {train: {digits: {count: 64}}, validation: {digits: {count: 50, first: 1000000}}}
  batch_size: 16
  shards: 2
  steps: 4
  optimizer: adam
  learning_rate: 0.01
"""
LORA = "model.lora={rank: 3, alpha: 12, layers: [middle], train: ['head.*']}"


class Lora(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "job.yaml").write_text(JOB)
        cls.run_program("train", "job.yaml", "run_directory=base")
        cls.run_program("checkpoint", "export", "base", "base.safetensors", "--to", "torch")
        cls.trained = cls.run_program("train", "job.yaml", "run_directory=tuned", "initialize=base.safetensors", LORA,
                                      "--log", "json").stdout.splitlines()

    @classmethod
    def run_program(cls, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def loss(self, *words):
        return json.loads(self.run_program("eval", *words, "--log", "json").stdout)["loss"]

    def weights(self, path):
        return {name: list(tensor.array()) for name, tensor in open_weights(self.folder / path).items()}

    def test_what_is_said(self):
        start = json.loads(self.trained[0])
        self.assertEqual(start["initialized"], "6 tensors of base.safetensors, in PyTorch's order; 2 as usual; 4 frozen")
        self.assertEqual((start["parameters"], start["trained"]), (678, 262))
        text = self.run_program("train", "job.yaml", "checkpoint=never", LORA).stderr
        self.assertIn("  model  678 parameters, of which 262 are trained\n", text)
        text = self.run_program("check", "job.yaml", LORA, "initialize=base.safetensors").stdout
        self.assertIn("678 parameters, of which 262 are trained\n", text)
        self.assertIn("6 tensors come from base.safetensors, 2 begin as usual\n", text)

    def test_merged_weights_are_the_model(self):
        expected = self.loss("tuned")
        self.assertNotEqual(expected, self.loss("base"))
        for to in ("lockstep", "torch"):
            said = self.run_program("checkpoint", "export", "tuned", f"{to}.safetensors", "--to", to).stdout
            self.assertTrue(said.endswith("\nmerged the adapters of 1 layer into the weights\n"), said)
            self.assertAlmostEqual(self.loss("job.yaml", "--checkpoint", f"{to}.safetensors"), expected, delta=1e-6)
            # A job with adapters takes them, too: its adapters add nothing.
            self.assertAlmostEqual(self.loss("job.yaml", LORA, "--checkpoint", f"{to}.safetensors"), expected, delta=1e-6)
        merged = self.weights("lockstep.safetensors")
        self.assertEqual(sorted(merged), sorted(f"{layer}.{kind}" for layer in ("conv1", "middle", "head")
                                                for kind in ("weight", "bias")))
        steps, = (self.folder / "tuned/checkpoints").glob("step-00000004")
        raw = {}
        for file in steps.glob("*.safetensors"):
            raw |= self.weights(file)
        a, b, inner = raw["middle.lora_a.weight"], raw["middle.lora_b.weight"], len(raw["middle.lora_a.weight"]) // 3
        for at, value in enumerate(merged["middle.weight"]):
            row, column = divmod(at, inner)
            product = sum(b[row * 3 + k] * a[k * inner + column] for k in range(3))
            self.assertAlmostEqual(value, raw["middle.weight"][at] + 4 * product, delta=1e-6)

    def test_adapters_of_a_checkpoint_are_taken(self):
        start = json.loads(self.run_program("train", "job.yaml", "checkpoint=never", "initialize=tuned", LORA,
                                            "--log", "json").stdout.splitlines()[0])
        self.assertEqual(start["initialized"], "8 tensors of tuned; 4 frozen")


if __name__ == "__main__":
    unittest.main()
