#!/usr/bin/env python3
"""`lockstep checkpoint job`: job files of models saved by transformers, and what is said of those that lockstep lacks."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
GPT2 = {"model_type": "gpt2", "vocab_size": 17, "n_positions": 24, "n_embd": 32, "n_layer": 2, "n_head": 2,
        "n_inner": None, "resid_pdrop": 0.2}
LLAMA = {"model_type": "llama", "vocab_size": 17, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 24,
         "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}, "tie_word_embeddings": True}
BERT = {"model_type": "bert", "vocab_size": 257, "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 24}
VIT = {"model_type": "vit", "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 2,
       "image_size": 28, "patch_size": 7, "num_channels": 1, "id2label": {str(i): str(i) for i in range(10)}}
CLASSIFIER = BERT | {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "wet", "1": "dry"}}


def tokenizer_of(*added):
    """Bytes, and tokens behind them."""
    characters = [chr(c) for c in range(0x144) if 33 <= c <= 126 or 161 <= c <= 172 or c >= 174]
    return json.dumps({"added_tokens": [{"id": 256 + i, "content": text, "special": True, "normalized": False}
                                        for i, text in enumerate(added)],
                       "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
                       "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(characters)}, "merges": []}})


class ForeignJob(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "theirs").mkdir()
        (self.folder / "text.txt").write_text("".join(chr(97 + i * i % 17) for i in range(2000)))
        (self.folder / "tokens.bin").write_bytes(bytes(b for i in range(2000) for b in (i * i % 17, 0)))

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
    # no tokenizer there: your text as the model's own numbers of tokens, uint16
    train: {tokens: {path: tokens.bin, context: 24}}
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
        bert = size + (257 + 24 + 2) * 32 + 2 * (2 * 80 * 32 + 80 + 32) + 32 * 32 + 32 + 64 + 257
        vit = size + 32 * 49 + 32 + 32 + 17 * 32 + 2 * (2 * 80 * 32 + 80 + 32) + 330
        for config, parameters in ((GPT2, gpt2), (LLAMA, llama), (BERT, bert), (VIT, vit)):
            with self.subTest(model=config["model_type"]):
                if config is BERT:
                    (self.folder / "theirs/tokenizer.json").write_text(tokenizer_of("[MASK]"))
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
        self.assertIn("    train: {images: {path: images, classes: [", self.job(VIT))
        self.run_program("check", "job.yaml", "--no-data")

    def test_the_outputs_keep_their_names(self):
        (self.folder / "theirs/tokenizer.json").write_text(tokenizer_of("[MASK]"))
        self.assertIn("    # classes: the model's outputs in their order, as id2label names them\n"
                      '    train: {texts: {path: texts.csv, tokenizer: "theirs", context: 24, classes: ["wet", "dry"]}}',
                      self.job(CLASSIFIER))
        texts = self.folder / "texts.csv"
        texts.write_text("text,label\n" + "rain,wet\nsun,dry\n" * 20)
        self.assertRegex(self.run_program("data", "info", "job.yaml").stdout, r"(?s)18 +wet\n +18 +dry\n")
        texts.write_text("text,label\n" + "rain,Wet\nsun,dry\n" * 20)
        self.assertIn(": classes: expected the 2 names of the data's classes, the data lack 'wet', the list lacks 'Wet'; name "
                      "them alike\n", self.run_program("train", "job.yaml", code=65).stderr)
        plain = {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}
        self.assertIn("    # id2label names no classes: output 0 is the first of your data's names, and so on\n"
                      '    train: {texts: {path: texts.csv, tokenizer: "theirs", context: 24}}', self.job(CLASSIFIER | plain))
        name = "lockstep: theirs/config.json: "
        for more, message in (
                ({"problem_type": "regression"}, 'problem_type: expected "single_label_classification", which lockstep\'s '
                 'model has, found "regression"'),
                ({"id2label": {"0": "LABEL_0"}}, "id2label: expected 2 classes or more, as one output is a regression, which "
                 'lockstep\'s model has, found {"0":"LABEL_0"}'),
                ({"id2label": {"0": "a", "2": "b"}}, "id2label: expected 2 different names, of the numbers from 0 on, which "
                 'lockstep\'s model has, found {"0":"a","2":"b"}'),
                ({"classifier_dropout": 0.3}, "classifier_dropout: expected hidden_dropout_prob, 0.1, which lockstep's model "
                 "has, found 0.3")):
            self.assertEqual(self.job(CLASSIFIER | more, 65), f"{name}{message}\n")

    def saved_by_transformers(self, run, config):
        """An export as transformers writes it: without lockstep's schema, and, where the model was read from one of
        Google's checkpoints, with their names."""
        self.run_program("checkpoint", "export", run, "theirs", "--to", "huggingface")
        path = self.folder / "theirs/model.safetensors"
        whole = path.read_bytes()
        length = struct.unpack("<Q", whole[:8])[0]
        header = json.loads(whole[8:8 + length])
        del header["__metadata__"]
        names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for name in list(header):
            for now, then in names.items():
                if name.endswith(now):
                    header[name.replace(now, then)] = header.pop(name)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + length:])
        self.outputs(config)

    def outputs(self, names):
        path = self.folder / "theirs/config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": dict(enumerate(names))}))

    def test_weights_whose_outputs_have_another_order(self):
        (self.folder / "texts.csv").write_text("text,label\n" + "".join(f"rain {i},wet\nsun {i},dry\n" for i in range(20)))
        job = {"name": "first", "model": {"bert": {"layers": 1, "heads": 2, "width": 8, "types": 2}}, "steps": 20,
               "batch_size": 8, "optimizer": "adam", "learning_rate": 0.01, "metrics": ["accuracy"],
               "data": {"train": {"texts": {"path": "texts.csv", "context": 8}}, "validation": {"fraction": 0.2}}}
        (self.folder / "job.yaml").write_text(json.dumps({"job": job}))
        self.run_program("train", "job.yaml")
        shutil.rmtree(self.folder / "theirs")
        self.saved_by_transformers("runs/first", ["dry", "wet"])

        def evaluated(*words):
            return json.loads(self.run_program("eval", "runs/first", *words, "--log", "json").stdout)["loss"]
        self.assertEqual(evaluated("--checkpoint", "theirs/model.safetensors"), evaluated())
        words = ("job.yaml", "initialize={from: theirs, names: huggingface}", "run_directory=second")
        self.assertEqual(self.run_program("check", *words).stderr, "")
        self.outputs(["wet", "dry"])
        said = ("lockstep: job.initialize: expected the classes in the order of theirs's outputs, of which number 0 is wet, "
                "found dry; set `classes` in data.train to the order of id2label in its config.json\n")
        for command in ("check", "train"):
            self.assertEqual(self.run_program(command, *words, code=78).stderr, said)
        self.run_program("check", *words, "data.train.texts.classes=[wet, dry]")
        self.outputs(["RAIN", "SUN"])
        self.assertEqual(self.run_program("check", *words).stderr,
                         "warning: job.initialize: the outputs of theirs are called RAIN, SUN, and the classes of the data "
                         "dry, wet: they are taken in this order\n")
        self.outputs(["LABEL_0", "LABEL_1"])
        self.assertEqual(self.run_program("check", *words).stderr, "")

    def test_the_models_own_tokens(self):
        self.assertEqual(self.job(BERT, 65), "lockstep: theirs: expected the model's tokenizer, as the numbers of its tokens "
                         "mean nothing without, found none of tokenizer.json, merges.txt and vocab.txt; save it there with its "
                         "save_pretrained()\n")
        (self.folder / "theirs/tokenizer.json").write_text(tokenizer_of("<s>"))
        self.assertEqual(self.job(BERT, 65), "lockstep: theirs: expected a tokenizer with the mask that the model was trained "
                         "with, found none called [MASK]; save the model's own tokenizer there\n")
        (self.folder / "theirs/tokenizer.json").write_text(tokenizer_of("<s>", "<hide>"))
        (self.folder / "theirs/tokenizer_config.json").write_text(json.dumps({"mask_token": {"content": "<hide>"}}))
        self.assertIn("masked: 0.15, mask_token: 257}", self.job(BERT))

    def test_what_becomes_of_an_image(self):
        name = "lockstep: theirs/preprocessor_config.json: "
        three = VIT | {"num_channels": 3}
        usual = "    prepare: [{resize: [28, 28]}]\n"
        half = "    normalize: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}\n"
        size = {"size": {"height": 28, "width": 28}}
        for config, lines in (
                ({}, usual + half),
                (size | {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.25, 0.2, 1]},
                 usual + "    normalize: {mean: [0.5, 0.4, 0.3], std: [0.25, 0.2, 1]}\n"),
                ({"size": 28, "do_normalize": False}, usual + "    normalize: never\n"),
                ({"do_rescale": False, "image_mean": [51, 51, 51], "image_std": [255, 255, 510]},
                 usual + "    normalize: {mean: [0.2, 0.2, 0.2], std: [1, 1, 2]}\n"),
                ({"rescale_factor": 1 / 127.5, "do_normalize": False},
                 usual + "    normalize: {mean: [0, 0, 0], std: [0.5, 0.5, 0.5]}\n"),
                ({"size": {"shortest_edge": 32}, "do_center_crop": True, "crop_size": 28},
                 "    prepare: [{resize: 32}, {center_crop: [28, 28]}]\n" + half),
                ({"resample": 2, "do_convert_rgb": True, "do_pad": False}, usual + half),
                ({"resample": 3}, usual + half),
                ({"do_resize": False, "resample": 3}, half)):
            with self.subTest(config=config):
                (self.folder / "theirs/preprocessor_config.json").write_text(json.dumps(config))
                self.assertIn("  # your images, with 3 channels\n" + lines + "    validation:", self.job(three))
                self.run_program("check", "job.yaml", "--no-data")
        (self.folder / "theirs/preprocessor_config.json").write_text('{"resample": 3}')
        self.assertEqual(self.run_program("checkpoint", "job", "theirs").stderr,
                         "warning: theirs/preprocessor_config.json: resample: images are resized with the bicubic filter "
                         "there, and with the bilinear one here, so predictions may differ a little; resize the images "
                         "beforehand if that matters\n")
        for config, message in (
                ({"size": {"height": 32, "width": 28}}, "size: expected images of 28 x 28, the model's image_size, found "
                 '{"height":32,"width":28}'),
                ({"size": {"shortest_edge": 28}}, "size: expected images of 28 x 28, the model's image_size, found "
                 '{"shortest_edge":28}'),
                (size | {"do_center_crop": True}, "crop_size: expected a whole number above 0, found none"),
                ({"image_mean": [0.5]}, "image_mean: expected 3 numbers, one for each channel, found [0.5]"),
                ({"do_normalize": "no"}, 'do_normalize: expected true or false, found "no"'),
                ({"do_flip_channel_order": True}, "do_flip_channel_order: expected false, for a job has no such step, found true"),
                ({"rescale_offset": True}, "rescale_offset: expected false, for a job has no such step, found true"),
                ({"crop_pct": 0.875}, "crop_pct: expected none, for a job has no such step, found 0.875"),
                ({"resample": 9}, "resample: expected a filter, 0 to 5, found 9")):
            (self.folder / "theirs/preprocessor_config.json").write_text(json.dumps(config))
            self.assertEqual(self.job(three, 65), f"{name}{message}\n")

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
