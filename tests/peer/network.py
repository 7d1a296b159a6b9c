"""A job's network in PyTorch, built from the job's list of layers: names, inputs, parameters, running statistics."""
import dataclasses
import zlib

import numpy
import torch

import ops
import zoo


@dataclasses.dataclass
class Run:
    """The position in the run, from which dropout's masks are derived."""
    seed: int
    step: int = 0
    first_position: int = 0


def first_values(name, shape):
    """Neither zeros nor ones, so that a forgotten bias or a swapped weight is noticed."""
    random = numpy.random.default_rng(zlib.crc32(name.encode()))
    values = random.standard_normal(shape)
    if len(shape) > 1:
        values *= 1 / numpy.sqrt(numpy.prod(shape[1:]))
    elif name.endswith((".bias", ".running_mean")):
        values *= 0.2
    else:
        values = 1 + 0.2 * values
    return values.astype(numpy.float32)


PRODUCTS = {"linear", "conv", "conv_transpose", "attention", "matmul"}  # with precision: bf16 or fp16, the inputs of these ops are rounded


class Layer:
    def __init__(self, network, op, name, settings, inputs):
        self.network, self.op, self.name, self.settings, self.inputs = network, op, name, settings, inputs

    def __getitem__(self, setting):
        return self.settings[setting]

    @property
    def training(self):
        return self.network.training

    def parameter(self, kind, shape, of=None):
        """Created at its first use; `of` names the layer that it belongs to, if that is another one."""
        name = f"{of or self.name}.{kind}"
        parameters = self.network.parameters
        if name not in parameters:
            values = torch.from_numpy(first_values(name, shape)).to(self.network.dtype)
            parameters[name] = values.requires_grad_(True)
            if kind.rpartition(".")[2] in ("weight", "weight_ih", "weight_hh") and not self.op.endswith(("_norm", "prelu")):
                self.network.decaying.add(name)
        assert list(parameters[name].shape) == list(shape), name
        value = parameters[name]
        if self.network.narrow and self.op in PRODUCTS and kind == "weight":
            return value + (self.network.rounded(value) - value).detach()  # its gradient is not rounded
        return value

    def state(self, kind, shape):
        name = f"{self.name}.{kind}"
        if name not in self.network.states:
            self.network.states[name] = torch.from_numpy(first_values(name, shape)).to(self.network.dtype)
        return self.network.states[name]

    def follow(self, kind, value):
        """Records a running statistic as computed by one micro-batch."""
        self.network.followed.setdefault(f"{self.name}.{kind}", []).append(value.detach())


class Network:
    """`parameters` and `states` by name; `decaying`: names of parameters with weight decay. `features`: those of the
    sample.

    `narrow` is torch.bfloat16, torch.float16 or None. Activations between layers, their gradients, and the inputs of
    matrix products are rounded to it, as docs/training.md says; everything is computed in `dtype`.
    """

    def __init__(self, layers, forms, run, dtype, features, narrow=None):
        self.narrow = narrow
        self.run, self.dtype, self.training = run, dtype, True
        self.parameters, self.states, self.decaying, self.followed = {}, {}, set(), {}
        self.distorted = None  # an op whose output is made slightly wrong: to test the test
        self.layers, counts = [], {}
        for entry in layers:
            op, settings, rest = forms.chosen("ops", entry)
            counts[op] = counts.get(op, 0) + 1
            inputs = rest.get("inputs", "previous" if self.layers else features)
            inputs = inputs if isinstance(inputs, list) else [inputs]
            self.layers.append(Layer(self, op, rest.get("name", f"{op}{counts[op]}"), settings, inputs))

    def __call__(self, sample):
        values = dict(sample)
        previous = None
        for layer in self.layers:
            inputs = [previous if name == "previous" else values[name] for name in layer.inputs]
            if layer.op in PRODUCTS:
                inputs = [self.rounded(x) for x in inputs]
            previous = ops.OPS[layer.op](layer, *inputs)
            if layer is not self.layers[-1]:  # the loss's input is not rounded
                previous = self.rounded(previous)
            if layer.op == self.distorted:
                previous = previous + 1e-3 * previous.sin() * previous
            values[layer.name] = previous
        return previous

    def rounded(self, x):
        """The gradient that flows back through it is rounded, too."""
        return x.to(self.narrow).to(self.dtype) if self.narrow and x.is_floating_point() else x

    def end_step(self):
        """Sets running statistics to the mean over the micro-batches of what each has computed."""
        for name, values in self.followed.items():
            self.states[name] = torch.stack(values).mean(0)
        self.followed = {}


def layers_of(model, forms, classes):
    """The job's own layers, or those of a zoo model."""
    if isinstance(model, dict) and "layers" in model:
        return model["layers"]
    name, settings, _ = forms.chosen("model", model)
    return zoo.MODELS[name](settings, settings.get("classes", settings.get("vocabulary", classes)))
