#!/usr/bin/env python3
"""`lockstep checkpoint job`: job files of models saved by transformers, and what is said of those that lockstep lacks."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
GPT2 = {"model_type": "gpt2", "vocab_size": 17, "n_positions": 24, "n_embd": 32, "n_layer": 2, "n_head": 2,
        "n_inner": None, "resid_pdrop": 0.2}
LLAMA = {"model_type": "llama", "vocab_size": 17, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 24,
         "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}, "tie_word_embeddings": True}
BERT = {"model_type": "bert", "vocab_size": 18, "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 24}
VIT = {"model_type": "vit", "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 2,
       "image_size": 28, "patch_size": 7, "num_channels": 1, "id2label": {str(i): f"digit {i}" for i in range(10)}}


class ForeignJob(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "theirs").mkdir()
        (self.folder / "text.txt").write_text("".join(chr(97 + i * i % 17) for i in range(2000)))

    def run_program(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}\n{done.stderr}")
        return done

    def job(self, config, code=0):
        (self.folder / "theirs/config.json").write_text(json.dumps(config))
        done = self.run_program("checkpoint", "job", "theirs", code=code)
        if code == 0:
            (self.folder / "job.yaml").write_text(done.stdout)
        return done.stdout or done.stderr

    def test_the_text_of_one(self):
        self.assertEqual(self.job(GPT2), """\
# The model of theirs/config.json, by `lockstep checkpoint job`. Paths are relative to this file.
job:
  model:
    gpt: {layers: 2, heads: 2, width: 32, hidden: 128, positions: 24, epsilon: 1e-05, gelu: tanh, dropout: 0.2, vocabulary: 17}
  data:
    train: {text: {path: text.txt, tokenizer: characters, context: 24}}  # your text
    validation: {fraction: 0.1}
  # no weights there: they begin as usual
  batch_size: 8
  epochs: 1
  optimizer: adamw
  learning_rate: 0.00005
""")

    def test_each_trains(self):
        size = 2 * (4 * 32 * 32 + 4 * 32 + 4 * 32) + 2 * 32  # without embeddings and the layers with `hidden`
        gpt2 = size + 41 * 32 + 2 * (2 * 128 * 32 + 128 + 32)
        llama = 17 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 96 * 32 + 64) + 32
        bert = size + (18 + 24 + 2) * 32 + 2 * (2 * 80 * 32 + 80 + 32) + 32 * 32 + 32 + 64 + 18
        vit = size + 32 * 49 + 32 + 32 + 17 * 32 + 2 * (2 * 80 * 32 + 80 + 32) + 330
        for config, parameters in ((GPT2, gpt2), (LLAMA, llama), (BERT, bert), (VIT, vit)):
            with self.subTest(model=config["model_type"]):
                self.job(config)
                data = ["data={train: digits}"] if config is VIT else []
                lines = self.run_program("train", "job.yaml", "steps=2", "checkpoint=never", "--log", "json",
                                         *data).stdout.splitlines()
                self.assertEqual(json.loads(lines[0])["parameters"], parameters)
                self.assertEqual(json.loads(lines[-1])["steps"], 2)

    def test_what_is_beside_it(self):
        (self.folder / "theirs/tokenizer.json").write_text("{}")
        (self.folder / "theirs/model.safetensors").write_bytes(b"")
        text = self.job(LLAMA)
        self.assertIn('tokenizer: "theirs", context: 24}', text)
        self.assertIn('  initialize: {from: "theirs", names: huggingface}\n', text)
        (self.folder / "theirs/preprocessor_config.json").write_text(
            json.dumps({"image_mean": [0.5], "image_std": [0.25]}))
        text = self.job(VIT)
        self.assertIn("    train: {images: images}  # your images, with 1 channel\n    prepare: [{resize: {size: 28}}]\n"
                      "    normalize: {mean: [0.5], std: [0.25]}\n", text)
        self.run_program("check", "job.yaml", "--no-data")

    def test_what_lockstep_lacks(self):
        name = "lockstep: theirs/config.json: "
        self.assertEqual(self.run_program("checkpoint", "job", "theirs", code=65).stderr,
                         "lockstep: theirs: expected a folder of Hugging Face's, found no config.json in it\n")
        self.assertEqual(self.job({"model_type": "t5"}, 65), name + "model_type: expected gpt2, llama, bert or vit, which "
                         "lockstep has, found 't5'; write the model as `layers:`, and take its weights by initialize.map\n")
        for config, key, found, expected in (
                (GPT2, "activation_function", "relu", "gelu_new or gelu"), (LLAMA, "attention_bias", True, "false"),
                (LLAMA, "head_dim", 16, "8"), (LLAMA, "rope_scaling", {"type": "linear"}, "the default rotary positions"),
                (BERT, "hidden_act", "gelu_new", '"gelu"'), (VIT, "qkv_bias", False, "true"),
                (VIT, "hidden_size", -3, "a whole number above 0")):
            shown = json.dumps(found, separators=(",", ":"))
            self.assertEqual(self.job(config | {key: found}, 65), f"{name}{key}: expected {expected}, which lockstep's model "
                             f"has, found {shown}\n")
        (self.folder / "theirs/config.json").write_text("[1]")
        self.assertEqual(self.run_program("checkpoint", "job", "theirs", code=65).stderr,
                         name + "expected a JSON object\n")


if __name__ == "__main__":
    unittest.main()
