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
from weights_test import read, write  # noqa: E402  pylint: disable=wrong-import-position

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
  micro_batches: 2
  steps: 4
  optimizer: adam
  learning_rate: 0.01
"""
LORA = "model.lora={rank: 3, alpha: 12, layers: [middle], train: ['head.*']}"
GPT = """
job:
  model: {gpt: {layers: 2, heads: 2, width: 16}}
  data: {train: {text: {path: text.txt, context: 8}}, validation: {fraction: 0.2}}
  batch_size: 8
  micro_batches: 2
  steps: 4
  optimizer: adam
  learning_rate: 0.01
"""
OF_GPT = "model.lora={rank: 2, alpha: 6, layers: ['block*.qkv', 'block1.contract'], train: ['norm.*']}"


class WithFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    @classmethod
    def run_program(cls, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def loss(self, *words):
        return json.loads(self.run_program("eval", *words, "--log", "json").stdout)["loss"]


class Lora(WithFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "job.yaml").write_text(JOB)
        cls.run_program("train", "job.yaml", "run_directory=base")
        cls.run_program("checkpoint", "export", "base", "base.safetensors", "--to", "torch")
        cls.trained = cls.run_program("train", "job.yaml", "run_directory=tuned", "initialize=base.safetensors", LORA,
                                      "--log", "json").stdout.splitlines()

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
        self.assertEqual(self.run_program("checkpoint", "export", "tuned", "adapter", "--to", "peft", code=64).stderr,
                         "lockstep: --to peft: expected a model that transformers has, gpt, llama, bert with types or vit with "
                         "pool: token, found another one; take --to torch or --to onnx, which merge adapters into the weights\n")
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
        self.assertEqual(start["initialized"], "8 tensors of tuned, its newest checkpoint, step-00000004; 4 frozen")


class Peft(WithFolder):
    """Adapters as Hugging Face's PEFT has them, out and in again; beside the real one: tests/formats/torch_test.py."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "text.txt").write_text("".join(chr(97 + i * i % 17) for i in range(1000)))
        (cls.folder / "job.yaml").write_text(GPT)
        cls.run_program("train", "job.yaml", "run_directory=base")
        cls.run_program("checkpoint", "export", "base", "hf", "--to", "huggingface")
        cls.run_program("train", "job.yaml", "run_directory=tuned", "initialize=hf", OF_GPT)
        cls.said = cls.run_program("checkpoint", "export", "tuned", "adapter", "--to", "peft").stdout

    def test_an_adapter_goes_out_and_comes_back(self):
        self.assertEqual([line.split(":")[0] for line in self.said.splitlines()],
                         ["wrote adapter/adapter_model.safetensors", "wrote adapter/adapter_config.json"])
        tensors = {name: tensor.shape for name, tensor in open_weights(self.folder / "adapter/adapter_model.safetensors").items()}
        block = "base_model.model.transformer.h.0."
        self.assertEqual(len(tensors), 8)
        self.assertEqual([list(tensors[f"{block}{name}.weight"]) for name in
                          ("attn.c_attn.lora_A", "attn.c_attn.lora_B", "mlp.c_proj.lora_A", "mlp.c_proj.lora_B")],
                         [[2, 16], [48, 2], [2, 64], [16, 2]])
        config = json.loads((self.folder / "adapter/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["base_model_name_or_path"]), (2, 6, "hf"))
        self.assertEqual(config["target_modules"], ["transformer.h.0.attn.c_attn", "transformer.h.0.mlp.c_proj",
                                                    "transformer.h.1.attn.c_attn"])
        self.assertEqual(config["modules_to_save"], ["transformer.ln_f"])
        start = json.loads(self.run_program(
            "train", "job.yaml", "run_directory=again", "initialize=adapter", OF_GPT, "steps=1",
            "optimizer=sgd", "learning_rate=1e-12", "--log", "json").stdout.splitlines()[0])
        self.assertIn(" tensors of adapter, by Hugging Face's names; ", start["initialized"])
        self.assertNotIn("as usual", start["initialized"])
        self.assertNotEqual(self.loss("tuned"), self.loss("base"))
        self.assertAlmostEqual(self.loss("again"), self.loss("tuned"), delta=1e-6)

    def refusal(self, *words, code):
        return self.run_program(*words, code=code).stderr.removeprefix("lockstep: ").rstrip()

    def other(self, name, **settings):
        """A copy of the adapter with other settings."""
        (self.folder / name).mkdir()
        for file in (self.folder / "adapter").iterdir():
            (self.folder / name / file.name).write_bytes(file.read_bytes())
        config = json.loads((self.folder / "adapter/adapter_config.json").read_text()) | settings
        (self.folder / name / "adapter_config.json").write_text(json.dumps(config))

    def test_what_does_not_fit(self):
        self.other("dora", use_dora=True)
        self.other("ia3", peft_type="IA3")
        self.other("stronger", lora_alpha=12)
        self.other("nothing", r=None)
        self.other("lost", base_model_name_or_path="gpt2")
        merge = "merge the adapter into its model with PEFT (merge_and_unload) and begin from that"
        for adapter, lora, code, message in (
                ("dora", OF_GPT, 65, f'dora/adapter_config.json: expected plain LoRA, found "use_dora": true; {merge}'),
                ("ia3", OF_GPT, 65, 'ia3/adapter_config.json: expected "peft_type": "LORA", found "IA3"'),
                ("stronger", OF_GPT, 65, "stronger/adapter_config.json: expected lora_alpha / r of 3, which is the job's alpha / "
                 "rank, found 12 / 2; set model.lora to rank: 2, alpha: 12"),
                ("nothing", OF_GPT, 65, "nothing/adapter_config.json: expected an object with the numbers 'r' and 'lora_alpha'"),
                ("lost", OF_GPT, 65, "lost/adapter_config.json: expected base_model_name_or_path to be the folder or file of the "
                 "model that it adapts, found 'gpt2', which is not here; write its place there"),
                ("adapter", "seed=1", 78, "initialize: expected a model with model.lora for the adapter adapter, found one "
                 "without; set it as adapter/adapter_config.json has it"),
                ("adapter", OF_GPT.replace("*.qkv", "1.qkv"), 65,
                 "hf/model.safetensors: expected an adapter of the layers that model.lora names and no other, found also "
                 "base_model.model.transformer.h.1.attn.c_attn.lora_A.weight and 1 more")):
            with self.subTest(adapter=adapter, lora=lora):
                self.assertEqual(self.refusal("check", "job.yaml", f"initialize={adapter}", lora,
                                              code=code), message)

    def test_what_is_no_adapter(self):
        whole = "take --to huggingface, which has all weights"
        beside = "--to peft: expected adapters and whole layers beside them (modules_to_save), found that"
        for number, (lora, start, message) in enumerate((
                ("seed=1", "initialize=hf", "--to peft: expected a run with model.lora that began with given weights "
                 f"(initialize), which its adapters belong to, found one without model.lora; {whole}"),
                (OF_GPT, "seed=1", "--to peft: expected a run with model.lora that began with given weights "
                 f"(initialize), which its adapters belong to, found one without initialize; {whole}"),
                (OF_GPT.replace("norm.*", "tokens.*"), "initialize=hf",
                 f"{beside} tokens.weight was trained, which another layer shares; {whole}"),
                (OF_GPT.replace("norm.*", "norm.bias"), "initialize=hf",
                 f"{beside} norm.bias was trained, but norm.weight was not; {whole}"),
                (OF_GPT.replace("norm.*", "block1.qkv.*"), "initialize=hf",
                 f"{beside} block1.qkv.weight was trained, whose layer has an adapter; {whole}"))):
            with self.subTest(lora=lora, start=start):
                self.run_program("train", "job.yaml", f"run_directory=other{number}", lora, start)
                self.assertEqual(self.refusal("checkpoint", "export", f"other{number}", "out", "--to", "peft", code=64), message)


BERT = """
job:
  model: {bert: {layers: 1, heads: 2, width: 8, types: 2}}
  data: {train: {texts: {path: texts.csv, tokenizer: characters, context: 8}}, validation: {fraction: 0.2}}
  batch_size: 8
  micro_batches: 2
  steps: 1
"""
OF_BERT = "model.lora={rank: 2, alpha: 2, layers: ['block*.qkv']}"


class PeftOfBert(WithFolder):
    """Adapters of queries, keys and values, which PEFT has one by one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "texts.csv").write_text("text,label\n" + "".join(f"{'ab' * (i % 3 + 1)},{'xy'[i % 2]}\n" for i in range(20)))
        (cls.folder / "job.yaml").write_text(BERT)
        cls.run_program("train", "job.yaml", "run_directory=base")
        cls.run_program("checkpoint", "export", "base", "hf", "--to", "huggingface")
        cls.run_program("train", "job.yaml", "run_directory=tuned", "initialize=hf", OF_BERT)
        cls.run_program("checkpoint", "export", "tuned", "adapter", "--to", "peft")

    def refusal(self, tensors):
        write(self.folder / "adapter/adapter_model.safetensors", tensors)
        return self.run_program("check", "job.yaml", "initialize=adapter", OF_BERT, code=65).stderr

    def test_of_an_a_each_and_of_some_only(self):
        _, tensors = read(self.folder / "adapter/adapter_model.safetensors")
        count = self.run_program("check", "job.yaml", "initialize=adapter", OF_BERT).stdout
        self.assertIn("\n23 tensors come from adapter, 0 begin as usual\n", count)
        names = "base_model.model.bert.encoder.layer.0.attention.self.{}.lora_{}.weight".format
        why = ("since queries, keys and values are one layer here; merge the adapter into its model with PEFT "
               "(merge_and_unload) and begin from that\n")
        found = "lockstep: hf/model.safetensors: expected 23 tensors of the model, found {} that fit\n"
        last = "  initialize.only takes some of the parameters\n"
        tensors[names("value", "A")][1][0] += 1
        self.assertEqual(self.refusal(tensors), found.format(22) + f"  tensors '{names('query', 'A')}' and "
                         f"'{names('value', 'A')}': expected the same values, {why}{last}")
        for kind in "AB":
            del tensors[names("key", kind)]
        self.assertEqual(self.refusal(tensors), found.format(21) + "".join(
            f"  tensor '{names('value', kind)}': expected '{names('key', kind)}' beside it, {why}" for kind in "AB") + last)


if __name__ == "__main__":
    unittest.main()
