#!/usr/bin/env python3
"""load_into() with PyTorch itself: a module with a run's weights predicts what `lockstep predict` does. Run by
scripts/python.sh with the packages of tests/peer."""
import json
import struct
import unittest
import zlib

import torch
from torch import nn

from reading import SMALL, InFolder, program, reader

NORM = """model={layers: [{conv: {filters: 3, kernel: 3, stride: 7}}, batch_norm, relu, flatten, {batch_norm: {}, name: flat},
 {linear: {features: 6}}, relu, {linear: {features: 10}, name: head}]}""".replace("\n", "")


def png(path, pixels):
    """Grey, 28 x 28."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(row) for row in pixels.tolist())
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def digits():
    """The network of examples/digits.yaml."""
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1568, 10))


def normed():
    return nn.Sequential(nn.Conv2d(1, 3, 3, stride=7, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(),
                         nn.BatchNorm1d(48), nn.Linear(48, 6), nn.ReLU(), nn.Linear(6, 10))


class WithTorch(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pixels = torch.randint(256, (28, 28), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
        png(cls.folder / "noise.png", cls.pixels)
        for name, words in (("digits", []), ("normed", [NORM])):
            program("train", *SMALL, "steps=12", f"run_directory={cls.folder}/{name}", *words)
            program("checkpoint", "export", name, f"{name}.safetensors", folder=cls.folder)

    def predicted(self, run):
        """Probabilities by class, as the program has them."""
        line = json.loads(program("predict", run, "noise.png", "--top", "10", "--log", "json", folder=self.folder)[0])
        return torch.tensor([one["probability"] for one in sorted(line["classes"], key=lambda one: one["index"])])

    def computed(self, module, checkpoint):
        mean, std = checkpoint.data["mean"][0], checkpoint.data["std"][0]
        image = (self.pixels.float() / 255 - mean) / std
        with torch.no_grad():
            return module.eval()(image.reshape(1, 1, 28, 28)).softmax(1)[0]

    def agrees(self, run, module, source, checkpoint, **named):
        fit = reader.load_into(module, source, **named)
        torch.testing.assert_close(self.computed(module, checkpoint), self.predicted(run), rtol=1e-4, atol=1e-6)
        return fit

    def test_a_module_predicts_what_the_program_does(self):
        for run, make, names in (
                ("digits", digits, {"0": "conv1", "3": "conv2", "8": "linear1"}),
                ("normed", normed, {"0": "conv1", "1": "batch_norm1", "4": "flat", "5": "linear1", "7": "head"})):
            with self.subTest(run=run):
                checkpoint = reader.open_run(self.folder / run).checkpoint()
                fit = self.agrees(run, make(), checkpoint, checkpoint, names=names)
                self.assertTrue(fit.turned)
                self.assertEqual(self.agrees(run, make(), checkpoint, checkpoint, names="order").pairs, fit.pairs)
                channels = {fit.pairs[name]: 32 if run == "digits" else 3 for name in fit.turned}
                export = reader.open_weights(self.folder / f"{run}.safetensors")
                self.agrees(run, make(), export, checkpoint, names=names, flattened=channels)
                self.assertFalse(torch.allclose(self.computed_unturned(make(), checkpoint, names), self.predicted(run),
                                                rtol=1e-3))

    def computed_unturned(self, module, checkpoint, names):
        self.assertEqual(reader.load_into(module, checkpoint, names, flattened={}).turned, [])
        return self.computed(module, checkpoint)

    def test_what_does_not_fit(self):
        checkpoint = reader.open_run(self.folder / "digits").checkpoint()
        module = nn.Sequential(nn.Conv2d(1, 16, 3), nn.Conv2d(16, 8, 3))
        before = {name: value.clone() for name, value in module.state_dict().items()}
        error = self.says(
            reader.FitError, f"{checkpoint.path}: expected weights for all of Sequential, and no others, found 2 that fit "
            "and 4 problems; say names=, or strict=False to load what fits:\n"
            "  '1.weight': [8, 16, 3, 3] here, [32, 16, 3, 3] in 'conv2.weight'\n"
            "  '1.bias': [8] here, [32] in 'conv2.bias'\n  nobody takes 'linear1.weight'\n  nobody takes 'linear1.bias'",
            reader.load_into, module, checkpoint, {"0": "conv1", "1": "conv2"})
        self.assertEqual(error.fit.pairs, {"0.weight": "conv1.weight", "0.bias": "conv1.bias"})
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))  # nothing was copied
        fit = reader.load_into(module, checkpoint, {"0": "conv1", "1": "conv2"}, strict=False)
        self.assertEqual(len(fit.pairs), 2)
        self.assertTrue(torch.equal(module[0].bias, checkpoint["conv1.bias"].torch()))
        self.assertTrue(torch.equal(module[1].bias, before["1.bias"]))

    def test_a_file_that_does_not_say_what_is_flattened(self):
        export = reader.open_weights(self.folder / "digits.safetensors")
        self.says(reader.MissingError, f"{export.path}: expected to know which tensors are behind a flattened image, since "
                  "PyTorch flattens it in another order, found a file without a job, behind which that is unclear; say "
                  "flattened={tensor's name: the image's channels}, or flattened={} if there is none", reader.load_into,
                  digits(), export, "order")
        self.says(reader.MissingError, f"{export.path}: flattened: expected tensors, and channels that divide their last "
                  "dimension, found 31 for 'linear1.weight'; shapes() has all names and shapes", reader.load_into, digits(),
                  export, "order", flattened={"linear1.weight": 31})

    def test_other_types_and_tensors(self):
        checkpoint = reader.open_run(self.folder / "digits").checkpoint()
        half = digits().half()
        reader.load_into(half, checkpoint, "order")
        self.assertEqual(half[0].weight.dtype, torch.float16)
        self.assertTrue(torch.equal(half[0].weight, checkpoint["conv1.weight"].torch().half()))
        curve = reader.open_run(self.folder / "digits").training()
        self.assertEqual(torch.tensor(curve["loss"]).shape, (12,))


if __name__ == "__main__":
    unittest.main()
