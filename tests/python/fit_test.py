#!/usr/bin/env python3
"""What load_into() decides without PyTorch: which tensor goes where, and which are behind a flattened image. The program
knows the second, too: weights in PyTorch's order, as they are put here, have the loss that they had."""
import json
import struct
import unittest

from reading import SMALL, InFolder, program, reader

from lockstep_reader.fit import fit_of
from lockstep_reader.flattened import Flattened as Found
from lockstep_reader.flattened import flattened_in, flattened_of, order_of_torch

IMAGE = {"features": [{"name": "image", "kind": "image", "shape": [8, 8, 3]}, {"name": "label", "kind": "label", "shape": []}]}
LAYERS = """
job:
  model:
    layers:
      - {conv: {filters: 3, kernel: 3, stride: 7}, name: stem}
      - {batch_norm: {}}
      - relu
      - flatten
      - {batch_norm: {}, name: norm}
      - {dropout: 0.1}
      - {linear: {features: 6}, name: middle}
      - relu
      - {linear: {features: 10}, name: head}
  data: {train: {digits: {count: 64}}, validation: {digits: {count: 50, first: 1000000}}}
  batch_size: 16
  micro_batches: 2
  steps: 2
  seed: 5
"""


MADE = LAYERS[:LAYERS.index("      - {dropout")] + """      - {linear: {features: 5}, name: code}
      - {linear: {features: 48}, name: expand}
      - relu
      - {layer_norm: {}, name: made}
      - {reshape: [4, 4, 3]}
      - {conv: {filters: 2, kernel: 3}}
      - flatten
      - {linear: {features: 10}, name: head}
""" + LAYERS[LAYERS.index("  data:"):]


def flattened(*layers, data=None, **model):
    found = flattened_of({"model": {"layers": list(layers), **model}}, data or IMAGE)
    return found.channels, found.unclear


def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def in_order_of_torch(tensor, channels):
    values, columns = tensor.array(), tensor.shape[-1]
    order = order_of_torch(columns, channels)
    return tensor.shape, type(values)("f", (values[row + column] for row in range(0, len(values), columns)
                                            for column in order))


def rows_of_torch(shape, values, channels):
    columns = len(values) // shape[0]
    return shape, type(values)("f", (value for row in order_of_torch(shape[0], channels)
                                     for value in values[row * columns:(row + 1) * columns]))


class Flattened(InFolder):
    def test_an_image_that_is_made(self):
        """What the program says in the manifest is what it reads PyTorch's files by."""
        (self.own / "made.yaml").write_text(MADE)
        run = self.own / "made"
        program("train", self.own / "made.yaml", f"run_directory={run}")
        checkpoint = reader.open_run(run).checkpoint()
        found = flattened_in(checkpoint.metadata)
        flat = {f"norm.{kind}": 3 for kind in ("weight", "bias", "running_mean", "running_variance")}
        self.assertEqual(found, Found(flat | {"code.weight": 3, "expand.bias": 3, "made.weight": 3, "made.bias": 3,
                                              "head.weight": 2}, "", {"expand.weight": 3}))
        torch = {name: in_order_of_torch(checkpoint[name], found.channels.get(name, 1)) for name in checkpoint.weights()}
        torch["expand.weight"] = rows_of_torch(*torch["expand.weight"], 3)
        write(self.own / "torch.safetensors", torch, {"format": "pt"})
        loss = [json.loads(program("eval", run, "--checkpoint", which, "--log", "json")[0])["loss"]
                for which in ("newest", self.own / "torch.safetensors")]
        self.assertEqual(loss[0], loss[1])

    def test_the_program_knows_the_same(self):
        (self.own / "layers.yaml").write_text(LAYERS)
        for job, tensors in (([self.own / "layers.yaml"], {"norm.weight", "norm.bias", "norm.running_mean",
                                                           "norm.running_variance", "middle.weight"}),
                             ([*SMALL, "model=lenet", "steps=2"], {"linear1.weight"}),
                             ([*SMALL, "steps=2"], {"linear1.weight"}),
                             ([*SMALL, "model=mlp", "steps=2"], set())):
            with self.subTest(job=job):
                run = self.own / f"run{len(job)}{len(tensors)}"
                program("train", *job, f"run_directory={run}")
                checkpoint = reader.open_run(run).checkpoint()
                channels = flattened_of(checkpoint.job, checkpoint.data).channels
                self.assertEqual(flattened_in(checkpoint.metadata), Found(channels))
                self.assertEqual(channels.keys(), tensors)
                torch = {name: in_order_of_torch(checkpoint[name], channels[name]) if name in channels
                         else (shape, checkpoint[name].array()) for name, shape in checkpoint.weights().items()}
                write(self.own / "torch.safetensors", torch, {"format": "pt"})
                loss = [json.loads(program("eval", run, "--checkpoint", which, "--log", "json")[0])["loss"]
                        for which in ("newest", self.own / "torch.safetensors")]
                self.assertEqual(loss[0], loss[1])

    def test_order(self):
        """Two pixels of three channels."""
        self.assertEqual(order_of_torch(6, 3), [0, 3, 1, 4, 2, 5])

    def test_lists_of_layers(self):
        conv, linear, flat = {"conv": {"filters": 5}, "name": "a"}, {"linear": {"features": 7}}, {"flatten": {}}
        self.assertEqual(flattened(flat, linear), ({"linear1.weight": 3}, ""))
        self.assertEqual(flattened(conv, {"relu": {}}, {"max_pool": {"kernel": 2}}, flat, {"gelu": {}}, linear, linear),
                         ({"linear1.weight": 5}, ""))
        self.assertEqual(flattened(conv, {"global_pool": {}}, linear), ({}, ""))
        squeezed = [{"global_pool": {}}, linear, {"sigmoid": {}}, {"mul": {"inputs": ["a", "previous"]}}, flat, linear]
        self.assertEqual(flattened(conv, *squeezed), ({"linear2.weight": 5}, ""))
        self.assertEqual(flattened(conv, {"reshape": {"shape": [320]}}, linear), ({"linear1.weight": 5}, ""))
        self.assertEqual(flattened(conv, {"reshape": {"shape": [64, 5]}}, linear, flat, linear), ({}, ""))
        self.assertEqual(flattened({"conv": {"filters": 1}}, flat, linear), ({}, ""))
        self.assertEqual(flattened(conv, {"conv": {"filters": 5}, "name": "b"}, {"concat": {"axis": 3}, "inputs": ["a", "b"]},
                                   flat, {"linear": {"features": 7}, "name": "c"}), ({"c.weight": 10}, ""))
        self.assertEqual(flattened(flat, {"linear": {"features": 7, "tied": "before"}}), ({"before.weight": 3}, ""))
        tokens = {"features": [{"name": "tokens", "kind": "tokens", "shape": [16]}]}
        self.assertEqual(flattened({"embedding": {}}, flat, linear, data=tokens), ({}, ""))

    def test_what_nobody_knows(self):
        linear, flat = {"linear": {"features": 7}}, {"flatten": {}}
        side = {"linear": {"features": 7}, "name": "side", "inputs": ["f"]}
        named = flat | {"name": "f"}
        self.assertEqual(flattened(named, side, {"concat": {}, "inputs": ["f", "side"]}, linear)[1], "concat 'concat1'")
        self.assertEqual(flattened({"own": {}}, flat, linear), ({}, "flatten 'flatten1'"))
        self.assertEqual(flattened(flat, {"slice": {"end": 3}}, linear), ({}, "slice 'slice1'"))
        self.assertEqual(flattened(flat, linear, {"reshape": {"shape": [2, 2, 3]}}, {"relu": {}}, {"upsample": {}})[1],
                         "upsample 'upsample1'")  # the rows of linear1
        self.assertEqual(flattened_of({"model": {"own": {}}}, IMAGE).unclear, "model 'own'")

    def test_models_of_the_zoo(self):
        for model, channels in (({"lenet": {}}, {"linear1.weight": 16}), ({"mlp": {"hidden": [9]}}, {"linear1.weight": 3}),
                                ({"mlp": {"hidden": []}}, {"head.weight": 3}), ({"resnet": {"depth": 20}}, {}),
                                ({"freeze": [], "gpt": {"size": "tiny"}}, {})):
            found = flattened_of({"model": model}, IMAGE)
            self.assertEqual((found.channels, found.unclear), (channels, ""))


class Fit(InFolder):
    WEIGHTS = {"conv1.weight": (4, 1, 3, 3), "conv1.bias": (4,), "norm.weight": (4,), "norm.bias": (4,),
               "linear1.weight": (2, 4), "linear1.bias": (2,), "norm.running_mean": (4,), "norm.running_variance": (4,)}
    MODULE = {"0.weight": (4, 1, 3, 3), "0.bias": (4,), "1.weight": (4,), "1.bias": (4,), "1.running_mean": (4,),
              "1.running_var": (4,), "1.num_batches_tracked": (), "4.weight": (2, 4), "4.bias": (2,)}
    BUFFERS = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    STATES = {"norm.running_mean", "norm.running_variance"}

    def fit(self, names, module=None, weights=None):
        return fit_of("run", module or self.MODULE, self.BUFFERS, weights or self.WEIGHTS, self.STATES, names)

    def test_names(self):
        by_beginning = self.fit({"0": "conv1", "1": "norm", "4": "linear1"})
        self.assertTrue(by_beginning.is_whole)
        self.assertEqual(by_beginning.pairs["1.running_var"], "norm.running_variance")
        self.assertEqual(len(by_beginning.pairs), 8)
        self.assertEqual(self.fit("order").pairs, by_beginning.pairs)
        layers = {"0": "conv1", "1": "norm", "4": "linear1"}

        def named(name):
            layer, _, kind = name.partition(".")
            return f"{layers[layer]}.{kind.replace('running_var', 'running_variance')}"

        self.assertEqual(self.fit(named).pairs, by_beginning.pairs)
        same = self.fit(None, {"conv1.weight": (4, 1, 3, 3)})
        self.assertEqual((same.pairs, len(same.unused)), ({"conv1.weight": "conv1.weight"}, 7))
        nested = self.fit({"body": "wrong", "body.stem": "conv1"}, {"body.stem.weight": (4, 1, 3, 3)})
        self.assertEqual(nested.pairs, {"body.stem.weight": "conv1.weight"})

    def test_what_does_not_fit_is_listed(self):
        fit = self.fit({"0": "conv1", "1": "norm", "4": "linear9"}, self.MODULE | {"0.weight": (4, 1, 5, 5)})
        self.assertFalse(fit.is_whole)
        self.assertEqual(str(fit), """5 tensors of run
  0.bias <- conv1.bias
  1.weight <- norm.weight
  1.bias <- norm.bias
  1.running_mean <- norm.running_mean
  1.running_var <- norm.running_variance
  does not fit: '4.weight': nothing is called 'linear9.weight'
  does not fit: '4.bias': nothing is called 'linear9.bias'
  does not fit: '0.weight': [4, 1, 5, 5] here, [4, 1, 3, 3] in 'conv1.weight'
  does not fit: nobody takes 'linear1.weight'
  does not fit: nobody takes 'linear1.bias'""")
        short = self.fit("order", self.MODULE | {"9.weight": (3,)})
        self.assertEqual(short.missing, {"9.weight": "the next one"})


if __name__ == "__main__":
    unittest.main()
