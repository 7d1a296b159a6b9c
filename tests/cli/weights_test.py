#!/usr/bin/env python3
"""Weights from files written by PyTorch users: other names, other types, and another order after a flatten."""
import array
import json
import os
import pathlib
import struct
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
      - {conv: {filters: 3, kernel: 3, stride: 7}, name: stem}
      - flatten
      - {batch_norm: {}, name: norm}
      - relu
      - {linear: {features: 6}, name: middle}
      - {linear: {features: 10}, name: head}
  data: {train: {digits: {count: 64}}, validation: {digits: {count: 50, first: 1000000}}}
  batch_size: 16
  micro_batches: 2
  steps: 2
  seed: 5
"""
CONCAT = """
      - {linear: {features: 6}, inputs: [norm], name: side}
      - {concat: {inputs: [norm, side], axis: 1}, name: both}
      - {linear: {features: 10}, name: head}
"""
CHANNELS, SIDE = 3, 4  # of the flattened tensor
COLUMNS = CHANNELS * SIDE * SIDE
# For each column in PyTorch's order, [channel, height, width], the column in lockstep's, [height, width, channel].
OF_TORCH = [(h * SIDE + w) * CHANNELS + c for c in range(CHANNELS) for h in range(SIDE) for w in range(SIDE)]


def read(path):
    """The metadata, and for each name its shape and values."""
    file = open_weights(path)
    return file.metadata, {name: (list(tensor.shape), tensor.array()) for name, tensor in file.items()}


def write(path, tensors, metadata=None, dtype="F32"):
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, (shape, values) in tensors.items():
        if dtype == "F32":
            packed = values.tobytes()
        elif dtype == "F16":
            packed = struct.pack(f"<{len(values)}e", *values)
        elif dtype == "BF16":
            packed = b"".join(struct.pack("<f", value)[2:] for value in values)
        else:
            packed = struct.pack(f"<{len(values)}d", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def as_torch(tensors):
    """As PyTorch would store them: rows of COLUMNS in its order, and its name of a running variance."""
    theirs = {}
    for name, (shape, values) in tensors.items():
        if shape[-1] == COLUMNS:
            rows = range(0, len(values), COLUMNS)
            values = array.array("f", (values[row + column] for row in rows for column in OF_TORCH))
        theirs[name.replace("running_variance", "running_var")] = (shape, values)
    return theirs

RECURRENT = """
      - {reshape: [28, 28]}
      - {lstm: {features: 3, bidirectional: true}, name: rnn}
      - {gru: {features: 2, bias: false}, name: rnn2}
      - flatten
      - {linear: {features: 10}, name: head}
"""


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "job.yaml").write_text(JOB)
        cls.run_program("train", "job.yaml", "run_directory=run")
        cls.run_program("checkpoint", "export", "run", "model.safetensors")
        cls.metadata, cls.tensors = read(cls.folder / "model.safetensors")

    @classmethod
    def run_program(cls, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def from_file(self, file, *words, job="job.yaml"):
        """The start event of a run initialized from a file, and its hash after two steps on two ranks."""
        lines = self.run_program("train", job, "--log", "json", "--ranks", "2", "checkpoint=never",
                                 f"initialize.from={file}", *words).stdout.splitlines()
        return json.loads(lines[0]), json.loads(lines[-1])["parameters_sha256"]

    def test_the_order_of_pytorch(self):
        start, expected = self.from_file("model.safetensors")
        self.assertEqual(start["initialized"], "10 tensors of model.safetensors")
        torch = as_torch(self.tensors)
        self.assertNotEqual(torch["middle.weight"], self.tensors["middle.weight"])
        write(self.folder / "torch.safetensors", torch, {"format": "pt"})
        start, _ = self.from_file("torch.safetensors", "model.freeze=stem.*")
        self.assertEqual(start["initialized"], "10 tensors of torch.safetensors, in PyTorch's order; 2 frozen")
        self.assertEqual(self.from_file("torch.safetensors")[1], expected)
        write(self.folder / "silent.safetensors", torch)
        self.assertEqual(self.from_file("silent.safetensors", "initialize.names=torch")[1], expected)
        self.assertNotEqual(self.from_file("silent.safetensors", "initialize.names=lockstep")[1], expected)
        write(self.folder / "ours.safetensors", self.tensors)
        self.assertEqual(self.from_file("ours.safetensors", "initialize.names=lockstep")[1], expected)
        for words in (("parallel.parts=2",), ("parallel.sharding=parameters",)):
            with self.subTest(words=words):
                self.assertEqual(self.from_file("torch.safetensors", *words)[1], expected)
        loss = [json.loads(self.run_program("eval", "job.yaml", "--checkpoint", file, "--log", "json").stdout)["loss"]
                for file in ("model.safetensors", "torch.safetensors")]
        self.assertEqual(loss[0], loss[1])

    def test_a_file_that_does_not_say_who_wrote_it(self):
        write(self.folder / "weights.safetensors", self.tensors)
        said = ("weights.safetensors: expected to know who wrote it, since PyTorch flattens images in the order channel, "
                "height, width, lockstep in height, width, channel, and '{}' is behind a flatten; {}\n")
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize=weights.safetensors", code=65).stderr
        self.assertIn(said.format("norm.weight", "set initialize.names to torch or lockstep"), error)
        error = self.run_program("eval", "job.yaml", "--checkpoint", "weights.safetensors", code=65).stderr
        self.assertIn(said.format("norm.weight", "write it with metadata={'format': 'pt'} for PyTorch's order, {'format': "
                                  "'lockstep'} for lockstep's"), error)
        start, _ = self.from_file("weights.safetensors", "initialize.only=[stem.*, head.*]")  # order irrelevant
        self.assertEqual(start["initialized"], "4 tensors of weights.safetensors; 6 as usual")

    def test_a_flattened_image_that_is_mixed_with_something_else(self):
        job = JOB[:JOB.index("      - {linear: {features: 6}")] + CONCAT.strip("\n") + JOB[JOB.index("\n  data:"):]
        (self.folder / "mixed.yaml").write_text(job)
        self.run_program("train", "mixed.yaml", "run_directory=mixed")
        self.run_program("checkpoint", "export", "mixed", "mixed.safetensors")
        write(self.folder / "torch.mixed.safetensors", read(self.folder / "mixed.safetensors")[1], {"format": "pt"})
        words = ("train", "mixed.yaml", "checkpoint=never")
        self.run_program(*words, "initialize=mixed.safetensors")
        error = self.run_program(*words, "initialize=torch.mixed.safetensors", code=65).stderr
        self.assertIn("torch.mixed.safetensors: PyTorch flattens images in the order channel, height, width, lockstep in "
                      "height, width, channel, and concat 'both' mixes such an image with something else; put the columns "
                      "of the linear layers behind it in lockstep's order yourself, and set initialize.names to lockstep\n",
                      error)

    def test_an_image_that_no_linear_layer_makes(self):
        layers = "".join(f"      - {layer}\n" for layer in (
            "{conv: {filters: 12, kernel: 3}}", "global_pool", "{reshape: [2, 2, 3], name: made}",
            "{conv: {filters: 10, kernel: 1}}", "global_pool"))
        job = JOB[:JOB.index("      - {conv")] + layers + JOB[JOB.index("\n  data:") + 1:]
        (self.folder / "made.yaml").write_text(job)
        self.run_program("train", "made.yaml", "run_directory=made")
        self.run_program("checkpoint", "export", "made", "made.safetensors")
        write(self.folder / "torch.made.safetensors", read(self.folder / "made.safetensors")[1], {"format": "pt"})
        words = ("train", "made.yaml", "checkpoint=never", "initialize=torch.made.safetensors")
        self.assertIn("torch.made.safetensors: PyTorch makes images in the order channel, height, width, lockstep in "
                      "height, width, channel, and reshape 'made' makes one of numbers that no linear layer makes; put "
                      "the weights before it in lockstep's order yourself, and set initialize.names to lockstep\n",
                      self.run_program(*words, code=65).stderr)

    def test_check_looks_into_the_file(self):
        said = self.run_program("check", "job.yaml", "initialize=model.safetensors").stdout
        self.assertIn("\n10 tensors come from model.safetensors, 0 begin as usual\n", said)
        wrong = ("initialize=model.safetensors", "model.layers[5].linear.features=12")
        errors = [self.run_program(command, "job.yaml", *wrong, *words, code=65).stderr
                  for command, words in (("check", ()), ("train", ("checkpoint=never",)))]
        self.assertEqual(errors[0], errors[1])
        self.assertIn("head.weight", errors[0])

    def test_types(self):
        for dtype in ("F16", "BF16"):
            with self.subTest(dtype=dtype):
                write(self.folder / "low.safetensors", self.tensors, self.metadata, dtype)
                round_trip = {}
                for name, (shape, values) in self.tensors.items():
                    rounded = (struct.unpack("<e", struct.pack("<e", value))[0] if dtype == "F16" else
                               struct.unpack("<f", b"\0\0" + struct.pack("<f", value)[2:])[0] for value in values)
                    round_trip[name] = (shape, array.array("f", rounded))
                write(self.folder / "rounded.safetensors", round_trip, self.metadata)
                self.assertEqual(self.from_file("low.safetensors")[1], self.from_file("rounded.safetensors")[1])
        write(self.folder / "wide.safetensors", self.tensors, self.metadata, "F64")
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize=wide.safetensors", code=65).stderr
        self.assertIn("wide.safetensors: expected 10 tensors of the model, found 0 that fit\n  tensor 'stem.weight': "
                      "expected F32, F16 or BF16 [3, 1, 3, 3], found F64 [3, 1, 3, 3]\n", error)

    def test_other_names(self):
        theirs = {name.replace("head.", "fc.").replace("middle.weight", "hidden.weight"): value
                  for name, value in self.tensors.items()}
        write(self.folder / "theirs.safetensors", theirs, self.metadata)
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize=theirs.safetensors", code=65).stderr
        self.assertIn("theirs.safetensors: expected 10 tensors of the model, found 7 that fit\n"
                      "  only in the model: middle.weight [6, 48], head.weight [10, 6], head.bias [10]\n"
                      "  only in the file: fc.bias [10], fc.weight [10, 6], hidden.weight [6, 48]\n"
                      "  likely the same, for initialize.map: middle.weight: hidden.weight, head.weight: fc.weight, "
                      "head.bias: fc.bias\n"
                      "  initialize.only takes some of the parameters\n", error)
        words = ("initialize.map={head.*: fc.*, middle.weight: hidden.weight}",)
        start, found = self.from_file("theirs.safetensors", *words)
        self.assertEqual(start["initialized"], "10 tensors of theirs.safetensors")
        self.assertEqual(found, self.from_file("model.safetensors")[1])
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize.from=theirs.safetensors",
                                 "initialize.names=torchvision", code=78).stderr
        self.assertIn("initialize.names: expected a model that torchvision has, too (resnet, mobilenet; gpt, llama, bert with "
                      "types, vit with pool: token), found another one; set initialize.map\n", error)

    def test_recurrent_layers_are_modules_of_pytorch(self):
        job = JOB[:JOB.index("      - {conv")] + RECURRENT.strip("\n") + JOB[JOB.index("\n  data:"):]
        (self.folder / "recurrent.yaml").write_text(job)
        self.run_program("train", "recurrent.yaml", "run_directory=recurrent")
        for to in ("lockstep", "torch"):
            self.run_program("checkpoint", "export", "recurrent", f"recurrent-{to}.safetensors", "--to", to)
        ours, theirs = (read(self.folder / f"recurrent-{to}.safetensors")[1] for to in ("lockstep", "torch"))
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        names = {f"rnn.{direction}.{kind}": f"rnn.{kind}_l0{behind}" for kind in kinds
                 for direction, behind in (("forwards", ""), ("backwards", "_reverse"))}
        names |= {f"rnn2.{kind}": f"rnn2.{kind}_l0" for kind in kinds[:2]}
        self.assertEqual({names.get(name, name): values for name, values in ours.items()}, theirs)
        # As torch.nn.LSTM(num_layers=2) would call the second layer.
        theirs["rnn.weight_hh_l1"] = theirs.pop("rnn2.weight_hh_l0")
        write(self.folder / "layers.safetensors", theirs, {"format": "pt"})
        _, expected = self.from_file("recurrent-lockstep.safetensors", job="recurrent.yaml")
        for file, *words in (("recurrent-torch.safetensors",),
                             ("layers.safetensors", "initialize.map={rnn2.weight_hh: rnn.weight_hh_l1}")):
            start, found = self.from_file(file, *words, job="recurrent.yaml")
            self.assertEqual(start["initialized"], f"12 tensors of {file}, in PyTorch's order")
            self.assertEqual(found, expected)

    def test_a_run_is_taken_like_a_file(self):
        expected = self.from_file("model.safetensors")[1]
        (self.folder / "run" / "checkpoints" / "best").write_text("step-00000002\n")
        for place in ("run", "run/checkpoints/step-00000002", "run/checkpoints/best"):
            with self.subTest(place=place):
                start, found = self.from_file(place)
                chosen = ", its newest checkpoint, step-00000002" if place == "run" else ""
                self.assertEqual(start["initialized"], f"10 tensors of {place}{chosen}")
                self.assertEqual(found, expected)
        (self.folder / "empty").mkdir(exist_ok=True)
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize=empty", code=65).stderr
        self.assertIn("empty: expected a checkpoint, a run's directory, or a folder with model.safetensors or its index, "
                      "found none of them in it\n", error)

    def test_shards_with_an_index(self):
        folder = self.folder / "shards"
        folder.mkdir(exist_ok=True)
        names = sorted(self.tensors)
        parts = {"a.safetensors": names[:4], "b.safetensors": names[4:]}
        for file, part in parts.items():
            write(folder / file, {name: self.tensors[name] for name in part}, self.metadata)
        index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        expected = self.from_file("model.safetensors")[1]
        for place in ("shards", "shards/model.safetensors.index.json"):
            self.assertEqual(self.from_file(place)[1], expected)
        (folder / "other.json").write_text("{}")
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize=shards/other.json", code=65).stderr
        self.assertIn("shards/other.json: expected the index of safetensors files, found JSON without a map 'weight_map' of "
                      "tensors and files\n", error)
        (folder / "other.json").write_text('{"weight_map": {"a": "../run/model.safetensors"}}')
        error = self.run_program("train", "job.yaml", "checkpoint=never", "initialize=shards/other.json", code=65).stderr
        self.assertIn("shards/other.json: expected names of files beside it, found '../run/model.safetensors'\n", error)

    def test_export_for_torch(self):
        """The export has PyTorch's order and names, and is the run's own when it is read again."""
        out = self.run_program("checkpoint", "export", "run", "export.safetensors", "--to", "torch").stdout
        self.assertEqual(out, "wrote export.safetensors: the model of run/checkpoints/step-00000002, the newest checkpoint, "
                         "3.93 kB\n"
                         "wrote export.py: 2.31 kB\n")
        metadata, tensors = read(self.folder / "export.safetensors")
        self.assertEqual((metadata["format"], metadata.keys()), ("pt", {"format", "data"}))
        self.assertEqual(tensors, as_torch(self.tensors))
        self.assertEqual(self.from_file("export.safetensors")[1], self.from_file("model.safetensors")[1])
        error = self.run_program("checkpoint", "export", "run", "export.safetensors", "--to", "torch", code=73).stderr
        self.assertIn("export.safetensors: the file exists; remove it, choose another name, or add --force\n", error)
        error = self.run_program("checkpoint", "export", "run", "folder", "--to", "huggingface", code=64).stderr
        self.assertIn("--to huggingface: expected a model that transformers has, gpt with biases, llama, bert "
                      "with types or vit with pool: token, found another one; take --to torch or --to onnx\n", error)


if __name__ == "__main__":
    unittest.main()
