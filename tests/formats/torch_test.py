#!/usr/bin/env python3
"""Weights from the real torchvision and transformers, and exports that these load: the same logits on both sides."""
import copy
import csv
import importlib.util
import json
import pathlib
import sys
import unittest

import numpy
import peft
import PIL.Image
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from jobs import FLATS, JOBS, NEW_FLATS  # noqa: E402  pylint: disable=wrong-import-position
from jobs import image_job, text_job, texts_job  # noqa: E402  pylint: disable=wrong-import-position
from program import WithProgram, write_image  # noqa: E402  pylint: disable=wrong-import-position
import lockstep_reader as reader  # noqa: E402  pylint: disable=wrong-import-position

RESNETS = {"resnet18": 18, "resnet34": 34, "resnet50": 50}
GPT = {"layers": 2, "heads": 2, "width": 32}
LLAMA = {"layers": 2, "heads": 4, "kv_heads": 2, "width": 32, "hidden": 96}


def with_random_statistics(module):
    """Running statistics of a net that was trained, so that it matters which one is whose."""
    generator = torch.Generator().manual_seed(4)
    for name, buffer in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
    return module.eval()


def tensors_of(module):
    return {name: value for name, value in module.state_dict().items() if not name.endswith("num_batches_tracked")}


class Recurrent(torch.nn.Module):
    """torch.nn.LSTM or GRU over the rows of an image, and a linear layer of all its outputs."""

    def __init__(self, layer):
        super().__init__()
        self.rnn = layer
        self.head = torch.nn.Linear(28 * layer.hidden_size * (1 + layer.bidirectional), 10)

    def forward(self, image):
        return self.head(self.rnn(image[:, 0])[0].flatten(1))


class Torch(WithProgram):
    def logits(self, module, made):
        tensor, = (tensor for name, tensor in made["inputs"].items() if name != "length")
        values = numpy.array(tensor["values"])
        lengths = made["inputs"].get("length")
        more = [torch.tensor(lengths["values"])[:, 0]] if lengths else []
        if isinstance(module, transformers.BertPreTrainedModel) and lengths:  # there the mask is what transformers takes
            more = [torch.arange(values.shape[1]) < length[:, None] for length in more]
        if len(tensor["shape"]) == 3:
            values = torch.tensor(values.reshape(-1, *tensor["shape"]) / 255, dtype=torch.float32).permute(0, 3, 1, 2)
        else:
            values = torch.tensor(values, dtype=torch.float32 if "features" in made["inputs"] else torch.long)
        with torch.no_grad():
            found = module(values, *more)
        return (found.logits if hasattr(found, "logits") else found).numpy()

    def assert_same(self, module, made, tolerance=1e-4):
        found = self.logits(module, made)
        expected = numpy.array(made["predictions"]["values"], numpy.float32).reshape(found.shape)
        self.assertGreater(numpy.abs(expected).max(), 1e-3)
        numpy.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)

    def assert_same_bits(self, run, file):
        """The weights of an export are the run's own when they are read again."""
        first, second = (json.loads(self.run_program("eval", run, "--checkpoint", which, "--log", "json").stdout)
                         for which in ("newest", file))
        for key in ("parameters_sha256", "loss", "metrics"):
            self.assertEqual(first[key], second[key])

    def test_torchvision(self):
        for function in [*RESNETS, "mobilenet_v2"]:
            with self.subTest(model=function):
                torch.manual_seed(1)
                module = getattr(torchvision.models, function)(num_classes=10)
                if function in RESNETS:
                    model = {"resnet": RESNETS[function]}
                    module.conv1 = torch.nn.Conv2d(1, 64, 7, 2, 3, bias=False)
                else:
                    model = {"mobilenet": {"width": 1}}
                    module.features[0][0] = torch.nn.Conv2d(1, 32, 3, 2, 1, bias=False)
                with_random_statistics(module)
                job = image_job(model, count=16, steps=1)
                job["data"]["normalize"] = "never"
                save_file(module.state_dict(), self.folder / "theirs.safetensors")
                start, _ = self.train(function, job, "initialize.from=theirs.safetensors")
                self.assertEqual(start["initialized"],
                                 f"{len(tensors_of(module))} tensors of theirs.safetensors, by torchvision's names")
                self.assert_same(module, self.predictions(function, "theirs.safetensors"))
                self.run_program("checkpoint", "export", function, f"{function}-theirs.safetensors", "--to", "torch")
                self.assert_same_bits(function, f"{function}-theirs.safetensors")
                self.assertEqual(set(load_file(self.folder / f"{function}-theirs.safetensors")), set(tensors_of(module)))
                self.assert_same(self.beside(f"{function}-theirs"), self.predictions(function))

    def beside(self, name):
        """What the Python file beside an export loads."""
        spec = importlib.util.spec_from_file_location(name, self.folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.load()

    def test_every_model(self):
        for name, job in JOBS.items():
            with self.subTest(model=name):
                job["data"]["normalize"] = "never"
                self.train(f"{name}-run", job)
                self.run_program("checkpoint", "export", f"{name}-run", f"{name}.safetensors", "--to", "torch")
                self.assert_same(self.beside(name), self.predictions(f"{name}-run"))
                self.assert_same_bits(f"{name}-run", f"{name}.safetensors")

    def assert_answers(self, answers, names, expected):
        """Of classes; binary ones have one probability."""
        for answer, row in zip(answers, expected, strict=True):
            found = {one.name: one.probability for one in answer.classes}
            numpy.testing.assert_allclose([found[name] for name in names], row, rtol=1e-4, atol=1e-6)

    def exported_to_torch(self, run):
        self.run_program("checkpoint", "export", run, f"{run}.safetensors", "--to", "torch")
        return reader.schema_of(self.folder / f"{run}.safetensors"), self.beside(run)

    def test_raw_rows(self):
        """What `predict` says of a table with categories and missing values, from a row as a file or pandas has it."""
        (self.folder / "flats.csv").write_text(FLATS)
        (self.folder / "new.csv").write_text(NEW_FLATS)
        rows = list(csv.DictReader(NEW_FLATS.splitlines()))
        for target, loss, last, more in (("kind", "cross_entropy", 3, {}),
                                         ("price", "mean_squared_error", 1, {"normalize_target": True})):
            self.train(f"raw-{target}", {
                "model": {"layers": [{"linear": 8}, "tanh", {"linear": last}],
                          "lora": {"rank": 2, "layers": ["linear1"]}},
                "data": {"train": {"table": {"path": "flats.csv", "target": target, "features": list(rows[0])}},
                         "validation": {"fraction": 0.2}, **more},
                "batch_size": 8, "steps": 30, "loss": loss, "metrics": [], "seed": 3,
                "telemetry": {"tensorboard": False}})
            schema, module = self.exported_to_torch(f"raw-{target}")
            names, expected = self.predicted(f"raw-{target}", "new.csv")
            columns = {name: [float(row[name]) if name == "area" and row[name] else row[name] or None for row in rows]
                       for name in rows[0]}
            for samples in (rows, columns):
                answers = schema.predict(module, samples)
                if target == "kind":
                    self.assert_answers(answers, names, expected)
                else:
                    numpy.testing.assert_allclose([answer.values for answer in answers], expected, rtol=1e-5)
            self.run_program("checkpoint", "export", f"raw-{target}", f"own-{target}.safetensors")
            self.assertEqual(reader.schema_of(self.folder / f"own-{target}.safetensors").facts, schema.facts)

    def raw_images(self):
        pixels = numpy.random.default_rng(3).integers(0, 256, (4, 28, 28, 1), numpy.uint8)
        files = [f"{i}.png" for i in range(len(pixels))]
        for file, image in zip(files, pixels):
            write_image(self.folder / file, image)
        return pixels, files

    def test_raw_images(self):
        pixels, files = self.raw_images()
        for name in ("lenet", "prepared"):
            job = image_job(JOBS[name]["model"], steps=20)
            job["data"] |= {"prepare": JOBS[name]["data"].get("prepare", [])}
            self.train(f"raw-{name}", job)
            schema, module = self.exported_to_torch(f"raw-{name}")
            self.assert_answers(schema.predict(module, pixels), *self.predicted(f"raw-{name}", *files))

    def test_raw_images_in_transformers(self):
        _, files = self.raw_images()
        images = [PIL.Image.open(self.folder / file) for file in files]
        resized = [{"resize": {"size": [32, 32]}}], 32
        for name, (prepare, side), tolerance in (("vit-raw", ([], 28), 1e-5), ("vit-resized", resized, 5e-3)):
            job = image_job({"vit": {"layers": 2, "heads": 2, "width": 32, "hidden": 80, "pool": "token"}}, steps=20)
            job["data"]["prepare"] = prepare
            self.train(name, job)
            self.run_program("checkpoint", "export", name, f"{name}-hf", "--to", "huggingface")
            processor = transformers.AutoImageProcessor.from_pretrained(self.folder / f"{name}-hf")
            module = transformers.AutoModelForImageClassification.from_pretrained(self.folder / f"{name}-hf").eval()
            self.assertEqual(module.config.id2label, dict(enumerate("0123456789")))
            self.assertEqual(module.config.label2id, {str(i): i for i in range(10)})
            arrays = [numpy.asarray(image)[..., None] for image in images]
            made = processor(arrays, return_tensors="pt", input_data_format="channels_last")
            self.assertEqual(list(made["pixel_values"].shape), [4, 1, side, side])
            with torch.no_grad():
                found = module(**made).logits.softmax(1).numpy()
            _, expected = self.predicted(name, *files)
            numpy.testing.assert_allclose(found, expected, atol=tolerance)
            schema = reader.schema_of(self.folder / f"{name}-hf/model.safetensors")
            self.assert_answers(schema.predict(module, arrays), *self.predicted(name, *files))

    def test_raw_texts_in_transformers(self):
        model = {"layers": 2, "heads": 2, "width": 32, "hidden": 80, "positions": 20, "types": 2, "vocabulary": 17}
        self.train("bert-raw", texts_job({"bert": model}) | {"steps": 20})
        self.run_program("checkpoint", "export", "bert-raw", "bert-raw-hf", "--to", "huggingface")
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder / "bert-raw-hf")
        module = transformers.AutoModelForSequenceClassification.from_pretrained(self.folder / "bert-raw-hf").eval()
        self.assertEqual(module.config.label2id, {"x": 0, "y": 1, "z": 2})
        for i, text in enumerate(("abab", "c", "abcdefghijklmnop")):
            (self.folder / f"{i}.txt").write_text(text)
            schema = reader.schema_of(self.folder / "bert-raw-hf/model.safetensors")
            self.assert_answers(schema.predict(module, [text]), *self.predicted("bert-raw", f"{i}.txt"))
            made = tokenizer(text, return_tensors="pt", truncation=True)
            self.assertEqual(tokenizer.decode(made["input_ids"][0]), text[:11])
            with torch.no_grad():
                found = module(made["input_ids"], made["attention_mask"]).logits.softmax(1)[0].numpy()
            _, expected = self.predicted("bert-raw", f"{i}.txt")
            numpy.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-6)
        with self.assertRaisesRegex(Exception, "UNK"):
            tokenizer("ab!")
        self.assertIn("tokenizer: characters", self.run_program("checkpoint", "job", "bert-raw-hf").stdout)
        job = text_job({"gpt": {**GPT, "vocabulary": 256}})
        job["data"]["train"]["text"]["tokenizer"] = "bytes"
        self.train("bytes-raw", job)
        self.run_program("checkpoint", "export", "bytes-raw", "bytes-raw-hf", "--to", "huggingface")
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder / "bytes-raw-hf")
        text = "Köln 1\n\t\"äß€\" \0"
        self.assertEqual(tokenizer(text)["input_ids"], list(text.encode()))
        self.assertEqual(tokenizer.decode(tokenizer(text)["input_ids"]), text)
        self.run_program("checkpoint", "job", "bytes-raw-hf")

    def test_layers_that_are_called_as_members_of_modules(self):
        names = sorted(name for name in {*dir(torch.nn.Module()), "at", "load"} if name != "previous")
        job = image_job({"layers": ["flatten", *({"linear": 4, "name": name} for name in names), {"linear": 10}]})
        job["data"]["normalize"] = "never"
        self.train("members", job)
        self.run_program("checkpoint", "export", "members", "members.safetensors", "--to", "torch")
        module = self.beside("members")
        self.assertEqual(set(names) - set(module._modules), set())  # pylint: disable=protected-access
        self.assertIs(module.train().training, True)
        self.assertIs(module.eval().training, False)
        made = self.predictions("members")
        for other in (module, module.double().float(), copy.deepcopy(module)):
            self.assert_same(other, made)
        self.assertEqual(len(list(module.parameters())), 2 * len(names) + 2)

    def test_recurrent_layers(self):
        for name, layer in (("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)):
            for both, bias in ((False, True), (True, True), (True, False)):
                with self.subTest(layer=name, bidirectional=both, bias=bias):
                    torch.manual_seed(11)
                    module = Recurrent(layer(28, 9, bias=bias, batch_first=True, bidirectional=both)).eval()
                    run = f"{name}-{both}-{bias}"
                    job = image_job({"layers": [
                        {"reshape": [28, 28]}, {name: {"features": 9, "bias": bias, "bidirectional": both}, "name": "rnn"},
                        "flatten", {"linear": 10, "name": "head"}]})
                    job["data"]["normalize"] = "never"
                    save_file(module.state_dict(), self.folder / "theirs.safetensors", {"format": "pt"})
                    start, _ = self.train(run, job, "initialize.from=theirs.safetensors")
                    self.assertEqual(start["initialized"],
                                     f"{len(module.state_dict())} tensors of theirs.safetensors, in PyTorch's order")
                    self.assert_same(module, self.predictions(run, "theirs.safetensors"), 1e-5)
                    self.run_program("checkpoint", "export", run, f"{run}.safetensors", "--to", "torch")
                    self.assert_same_bits(run, f"{run}.safetensors")
                    before = self.logits(module, self.predictions(run))
                    module.load_state_dict(load_file(self.folder / f"{run}.safetensors"))
                    self.assertGreater(numpy.abs(before - self.logits(module, self.predictions(run))).max(), 1e-3)
                    self.assert_same(module, self.predictions(run), 1e-5)

    def huggingface(self, name, job, module):
        module.eval()
        module.save_pretrained(self.folder / "theirs")
        start, _ = self.train(name, job, "initialize.from=theirs")
        self.assertIn("tensors of theirs, by Hugging Face's names", start["initialized"])
        self.assert_same(module, self.predictions(name, "theirs/model.safetensors"))
        module.save_pretrained(self.folder / "shards", max_shard_size="20KB")
        self.assertGreater(len(list((self.folder / "shards").glob("*.safetensors"))), 1)
        for where in ("shards", "shards/model.safetensors.index.json"):
            other, _ = self.train(f"{name}-of-shards", job, f"initialize.from={where}", "--resume", "never",
                                  f"run_directory={name}-{where.replace('/', '-')}")
            self.assertIn(f"tensors of {where}, by", other["initialized"])
        self.run_program("checkpoint", "export", name, f"{name}-export", "--to", "huggingface")
        self.assert_same_bits(name, f"{name}-export/model.safetensors")
        again = type(module).from_pretrained(self.folder / f"{name}-export").eval()
        self.assert_same(again, self.predictions(name))

    def adapter(self, name, job, module, lora, layers):
        """Adapters that lockstep has trained, in PEFT, and others of PEFT in lockstep. `layers`: in transformers."""
        module.eval().save_pretrained(self.folder / f"{name}-base")
        job["model"]["lora"] = {"rank": 4, "alpha": 8, **lora}
        job |= {"steps": 6, "optimizer": "adam", "learning_rate": 0.01}
        self.train(name, job, f"initialize.from={name}-base")
        self.run_program("checkpoint", "export", name, f"{name}-peft", "--to", "peft")
        adapted = peft.PeftModel.from_pretrained(copy.deepcopy(module), self.folder / f"{name}-peft").eval()
        made = self.predictions(name)
        self.assert_same(adapted.base_model.model, made)
        difference = numpy.abs(self.logits(module, made) - self.logits(adapted.base_model.model, made)).max()
        self.assertGreater(difference, 0.01)  # the adapter matters
        theirs = peft.get_peft_model(copy.deepcopy(module), peft.LoraConfig(r=4, lora_alpha=8, **layers)).eval()
        generator = torch.Generator().manual_seed(7)
        with torch.no_grad():
            for parameter, value in theirs.named_parameters():
                if "lora_B" in parameter or "modules_to_save" in parameter:
                    value.copy_(torch.randn(value.shape, generator=generator) / 5)
        theirs.peft_config["default"].base_model_name_or_path = f"../{name}-base"
        theirs.save_pretrained(self.folder / f"{name}-theirs")
        job |= {"steps": 1, "optimizer": "sgd", "learning_rate": 1e-12,
                "initialize": f"{name}-theirs"}
        start, _ = self.train(f"{name}-again", job)
        self.assertIn(f" of {name}-theirs, by Hugging Face's names", start["initialized"])
        self.assertNotIn("as usual", start["initialized"])
        self.assert_same(theirs.base_model.model, self.predictions(f"{name}-again"))

    def test_adapters_of_gpt2(self):
        torch.manual_seed(8)
        config = transformers.GPT2Config(vocab_size=17, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=None,
                                         eos_token_id=None, initializer_range=0.2)
        self.adapter("lora-gpt", text_job({"gpt": {**GPT, "vocabulary": 17}}), transformers.GPT2LMHeadModel(config),
                     {"layers": ["block*.qkv", "block*.contract"], "train": ["norm.*"]},
                     {"target_modules": ["attn.c_attn", "mlp.c_proj"], "fan_in_fan_out": True, "modules_to_save": ["ln_f"]})

    def test_adapters_of_llama(self):
        torch.manual_seed(9)
        config = transformers.LlamaConfig(
            vocab_size=17, hidden_size=32, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, rms_norm_eps=1e-5, initializer_range=0.2, bos_token_id=None, eos_token_id=None)
        self.adapter("lora-llama", text_job({"llama": {**LLAMA, "vocabulary": 17}}), transformers.LlamaForCausalLM(config),
                     {"layers": ["block*.query", "block*.value"]}, {"target_modules": ["q_proj", "v_proj"]})

    def test_adapters_of_bert(self):
        """What is one layer in lockstep is three in transformers, of which each has an adapter."""
        torch.manual_seed(10)
        config = transformers.BertConfig(
            vocab_size=17, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=80,
            max_position_embeddings=20, initializer_range=0.2, pad_token_id=None, num_labels=3)
        model = {"layers": 2, "heads": 2, "width": 32, "hidden": 80, "positions": 20, "types": 2, "vocabulary": 17}
        module = transformers.BertForSequenceClassification(config).eval()
        job = texts_job({"bert": model, "lora": {"rank": 4, "alpha": 8, "layers": ["block*.qkv"], "train": ["classifier.*"]}})
        job |= {"steps": 6, "optimizer": "adam", "learning_rate": 0.01, "initialize": "lora-bert-base"}
        module.save_pretrained(self.folder / "lora-bert-base")
        self.train("lora-bert", job)
        self.run_program("checkpoint", "export", "lora-bert", "lora-bert-peft", "--to", "peft")
        adapted = peft.PeftModel.from_pretrained(module, self.folder / "lora-bert-peft").eval()
        self.assertIsInstance(adapted, peft.PeftModelForSequenceClassification)
        self.assert_same(adapted.base_model.model, self.predictions("lora-bert"))
        job["initialize"] = "lora-bert-peft"
        start, _ = self.train("lora-bert-again", job | {"steps": 1, "optimizer": "sgd", "learning_rate": 1e-12})
        self.assertNotIn("as usual", start["initialized"])
        self.assert_same(adapted.base_model.model, self.predictions("lora-bert-again"))

    def test_separate_adapters_of_queries_keys_and_values_are_refused(self):
        bert = transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=17, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=80,
            max_position_embeddings=20, pad_token_id=None, num_labels=3))
        vit = transformers.ViTForImageClassification(transformers.ViTConfig(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=80, image_size=28, patch_size=4,
            num_channels=1, num_labels=10))
        size = {"layers": 1, "heads": 2, "width": 32, "hidden": 80}
        lora = {"lora": {"rank": 4, "alpha": 8, "layers": ["block*.qkv"]}}
        why = ("since queries, keys and values are one layer here; merge the adapter into its model with PEFT "
               "(merge_and_unload) and begin from that\n")
        for name, module, job, layer in (
                ("bert", bert, texts_job({"bert": {**size, "positions": 20, "types": 2, "vocabulary": 17}} | lora),
                 "bert.encoder.layer.0.attention.self"),
                ("vit", vit, image_job({"vit": {**size, "pool": "token", "epsilon": 1e-12}} | lora),
                 "vit.encoder.layer.0.attention.attention")):
            module.save_pretrained(self.folder / f"{name}-base")
            query, key = (f"base_model.model.{layer}.{part}.lora_{{}}.weight".format for part in ("query", "key"))
            for parts, said in (
                    (["query", "key", "value"],
                     f"  tensors '{query('A')}' and '{key('A')}': expected the same values, {why}"),
                    (["query", "value"], "".join(f"  tensor '{query(kind).replace('query', 'value')}': expected "
                                                 f"'{key(kind)}' beside it, {why}" for kind in "AB"))):
                with self.subTest(model=name, parts=parts):
                    adapted = peft.get_peft_model(copy.deepcopy(module), peft.LoraConfig(r=4, lora_alpha=8, target_modules=parts))
                    adapted.peft_config["default"].base_model_name_or_path = f"{name}-base"
                    adapted.save_pretrained(self.folder / f"{name}-adapter")
                    (self.folder / f"{name}.json").write_text(json.dumps({"job": {**job, "initialize": f"{name}-adapter"}}))
                    error = self.run_program("check", f"{name}.json", code=65).stderr
                    head, rest = error.split("\n", 1)
                    self.assertRegex(head, rf"^lockstep: {name}-base/model.safetensors: expected \d+ tensors of the model, "
                                     r"found \d+ that fit$")
                    self.assertEqual(rest, f"{said}  initialize.only takes some of the parameters\n")

    def test_gpt2(self):
        torch.manual_seed(2)
        config = transformers.GPT2Config(vocab_size=17, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=None,
                                         eos_token_id=None, initializer_range=0.2)
        self.huggingface("gpt", text_job({"gpt": {**GPT, "vocabulary": 17}}), transformers.GPT2LMHeadModel(config))

    def test_llama(self):
        for tied in (False, True):
            with self.subTest(tied=tied):
                torch.manual_seed(3)
                config = transformers.LlamaConfig(
                    vocab_size=17, hidden_size=32, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, rms_norm_eps=1e-5, tie_word_embeddings=tied, initializer_range=0.2,
                    bos_token_id=None, eos_token_id=None)
                self.huggingface(f"llama{int(tied)}", text_job({"llama": {**LLAMA, "vocabulary": 17}}),
                                 transformers.LlamaForCausalLM(config))

    def test_bert(self):
        torch.manual_seed(4)
        config = transformers.BertConfig(
            vocab_size=17, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=80,
            max_position_embeddings=20, initializer_range=0.2, pad_token_id=None)
        model = {"layers": 2, "heads": 2, "width": 32, "hidden": 80, "positions": 20, "types": 2, "vocabulary": 17}
        self.huggingface("bert", text_job({"bert": model}), transformers.BertForMaskedLM(config))

    def test_bert_of_classes(self):
        """Texts of several lengths: what lockstep takes as lengths is transformers' attention_mask."""
        torch.manual_seed(6)
        config = transformers.BertConfig(
            vocab_size=17, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=80,
            max_position_embeddings=20, initializer_range=0.2, pad_token_id=None, num_labels=3)
        model = {"layers": 2, "heads": 2, "width": 32, "hidden": 80, "positions": 20, "types": 2, "vocabulary": 17}
        self.huggingface("bert-classes-theirs", texts_job({"bert": model}),
                         transformers.BertForSequenceClassification(config))

    def test_vit(self):
        torch.manual_seed(5)
        config = transformers.ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=80, image_size=28, patch_size=4,
            num_channels=1, num_labels=10, initializer_range=0.2)
        job = image_job({"vit": {"layers": 2, "heads": 2, "width": 32, "hidden": 80, "pool": "token", "epsilon": 1e-12}})
        job["data"]["normalize"] = "never"
        self.huggingface("vit", job, transformers.ViTForImageClassification(config))


if __name__ == "__main__":
    unittest.main()
