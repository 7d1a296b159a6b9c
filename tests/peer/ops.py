"""The ops in PyTorch: `OPS` has one function for each op of the job file. A new op needs one entry here.

A function takes a Layer and its inputs and returns the output. Tensors have lockstep's layouts: images are [batch,
height, width, channels]. `layer["name"]` is a setting; `layer.parameter(...)` and `layer.state(...)` are the layer's
tensors.
"""

import torch
from torch.nn import functional as F
from torch.nn.utils import rnn

import streams


def pair(value):
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * 2 if len(values) == 1 else values


def windows(layer, x, filling):
    """x as [batch, channels, height, width], padded: for `same`, the smaller half comes before."""
    kernel, padding = pair(layer["kernel"]), layer["padding"]
    dilation = pair(layer["dilation"]) if "dilation" in layer.settings else [1, 1]
    if padding == "valid":
        sides = [(0, 0), (0, 0)]
    elif padding == "same":
        whole = [d * (k - 1) for d, k in zip(dilation, kernel)]
        sides = [(n // 2, n - n // 2) for n in whole]
    else:
        sides = [(n, n) for n in pair(padding)]
    return F.pad(x.movedim(-1, 1), (*sides[1], *sides[0]), value=filling)


def conv(layer, x):
    filters, groups = layer["filters"], layer["groups"]
    weight = layer.parameter("weight", [filters, x.shape[-1] // groups, *pair(layer["kernel"])])
    bias = layer.parameter("bias", [filters]) if layer["bias"] else None
    y = F.conv2d(windows(layer, x, 0.0), weight, bias, pair(layer["stride"]), 0, pair(layer["dilation"]), groups)
    return y.movedim(1, -1)


def conv_transpose(layer, x):
    """`same` cuts what is more than the input's size times the stride: of an odd number the larger half behind."""
    filters, groups, stride, kernel = layer["filters"], layer["groups"], pair(layer["stride"]), pair(layer["kernel"])
    weight = layer.parameter("weight", [x.shape[-1], filters // groups, *kernel])
    bias = layer.parameter("bias", [filters]) if layer["bias"] else None
    dilation, padding = pair(layer["dilation"]), layer["padding"]
    x = x.movedim(-1, 1)
    if padding != "same":
        padding = 0 if padding == "valid" else pair(padding)
        return F.conv_transpose2d(x, weight, bias, stride, padding, pair(layer["output_padding"]), groups,
                                  dilation).movedim(1, -1)
    y = F.conv_transpose2d(x, weight, bias, stride, 0, 0, groups, dilation)
    for axis in (0, 1):
        first = (dilation[axis] * (kernel[axis] - 1) + 1 - stride[axis]) // 2
        y = y.narrow(2 + axis, first, x.shape[2 + axis] * stride[axis])
    return y.movedim(1, -1)


def pad(layer, x):
    sides = layer["sides"] if isinstance(layer["sides"], list) else [layer["sides"]]
    top, bottom, left, right = sides if len(sides) == 4 else [sides[0], sides[0], sides[-1], sides[-1]]
    mode = {"zero": "constant", "reflect": "reflect"}[layer["mode"]]
    return F.pad(x.movedim(-1, 1), (left, right, top, bottom), mode).movedim(1, -1)


def prelu(layer, x):
    weight = layer.parameter("weight", [1 if layer["shared"] else x.shape[-1]])
    return F.prelu(x.movedim(-1, 1), weight).movedim(1, -1)


def max_pool(layer, x):
    stride = layer.settings.get("stride", layer["kernel"])
    return F.max_pool2d(windows(layer, x, -torch.inf), pair(layer["kernel"]), pair(stride)).movedim(1, -1)


def avg_pool(layer, x):
    stride = layer.settings.get("stride", layer["kernel"])
    y = F.avg_pool2d(windows(layer, x, 0.0), pair(layer["kernel"]), pair(stride))
    if not layer["count_include_pad"]:
        inside = windows(layer, torch.ones_like(x[:1]), 0.0)
        y = y / F.avg_pool2d(inside, pair(layer["kernel"]), pair(stride))
    return y.movedim(1, -1)


def global_pool(layer, x):
    return x.mean((1, 2)) if layer["kind"] == "average" else x.amax((1, 2))


def linear(layer, x):
    tied = layer.settings.get("tied")
    weight = layer.parameter("weight", [layer["features"], x.shape[-1]], of=tied)
    bias = layer.parameter("bias", [layer["features"]]) if layer.settings.get("bias", tied is None) else None
    return F.linear(x, weight, bias)


def batch_norm(layer, x):
    """Uses the statistics of the given samples, one micro-batch's; the running variance is updated with the unbiased
    variance."""
    channels = [x.shape[-1]]
    weight, bias = layer.parameter("weight", channels), layer.parameter("bias", channels)
    mean, variance = layer.state("running_mean", channels), layer.state("running_variance", channels)
    if layer.training:
        mean, variance = mean.clone(), variance.clone()
    y = F.batch_norm(x.movedim(-1, 1), mean, variance, weight, bias, layer.training, layer["momentum"],
                     layer["epsilon"])
    if layer.training:
        layer.follow("running_mean", mean)
        layer.follow("running_variance", variance)
    return y.movedim(1, -1)


def layer_norm(layer, x):
    size = [x.shape[-1]]
    bias = layer.parameter("bias", size) if layer["bias"] else None
    return F.layer_norm(x, size, layer.parameter("weight", size), bias, layer["epsilon"])


def rms_norm(layer, x):
    size = [x.shape[-1]]
    return F.rms_norm(x, size, layer.parameter("weight", size), layer["epsilon"])


def norm_of_groups(layer, x, groups):
    size = [x.shape[-1]]
    affine = [layer.parameter(kind, size) for kind in ("weight", "bias")] if layer["affine"] else [None, None]
    return F.group_norm(x.movedim(-1, 1), groups, *affine, layer["epsilon"]).movedim(1, -1)


def embedding(layer, ids):
    return F.embedding(ids, layer.parameter("weight", [layer["vocabulary"], layer["width"]]))


def position_embedding(layer, x):
    same = layer.settings.get("same", False)
    length = layer.settings.get("length", 1 if same else x.shape[1])
    return x + layer.parameter("weight", [length, x.shape[2]])[:1 if same else x.shape[1]]


def class_token(layer, x):
    return torch.cat([layer.parameter("weight", [1, x.shape[2]]).expand(len(x), 1, -1), x], 1)


def before_end(x, lengths):
    """Whether a position [b, T] comes before its sample's end."""
    return torch.arange(x.shape[1]) < lengths[:, None]


def with_padding(x, lengths, value):
    """[b, T, width] with a value at the positions behind the end."""
    return x if lengths is None else torch.where(before_end(x, lengths)[..., None], x, value)


def mean_of_positions(x, lengths):
    return with_padding(x, lengths, 0.0).sum(1) / lengths[:, None]


def last(layer, x, lengths=None):
    return x[:, -1] if lengths is None else x[torch.arange(len(x)), lengths - 1]


def reverse(layer, x, lengths=None):
    if lengths is None:
        return x.flip(1)
    return torch.stack([torch.cat([sample[:length].flip(0), sample[length:]]) for sample, length in zip(x, lengths)])


def attention(layer, *inputs):
    heads, lengths = layer["heads"], None
    if len(inputs) % 2 == 0:
        *inputs, lengths = inputs
    kv_heads = layer.settings.get("kv_heads", heads)
    if len(inputs) == 1:
        size = inputs[0].shape[-1] // (heads + 2 * kv_heads)
        inputs = inputs[0].split([heads * size, kv_heads * size, kv_heads * size], -1)
    split = [x.unflatten(-1, (count, x.shape[-1] // count)).transpose(1, 2)
             for x, count in zip(inputs, (heads, kv_heads, kv_heads))]
    mask = None if lengths is None else before_end(inputs[1], lengths)[:, None, None]
    if mask is not None and layer["causal"]:
        mask = mask & torch.ones(mask.shape[-1], mask.shape[-1], dtype=torch.bool).tril()
    causal = layer["causal"] and mask is None
    y = F.scaled_dot_product_attention(*split, attn_mask=mask, is_causal=causal, enable_gqa=kv_heads != heads)
    return y.transpose(1, 2).flatten(2)


def rope(layer, x):
    """As in transformers' Llama: x * cos + rotate_half(x) * sin."""
    heads = x.unflatten(-1, (layer["heads"], x.shape[-1] // layer["heads"]))
    size = heads.shape[-1]
    frequencies = layer["base"] ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float64), frequencies).repeat(1, 2)[:, None]
    first, second = heads.chunk(2, -1)
    turned = heads * angles.cos().to(x.dtype) + torch.cat([-second, first], -1) * angles.sin().to(x.dtype)
    return turned.flatten(2)


def recurrent(layer, x, run, gates, states, lengths=None):
    size, both = layer["features"], layer.settings.get("bidirectional", False)
    weights = []
    for direction in ("forwards.", "backwards.") if both else ("",):
        weights += [layer.parameter(direction + "weight_ih", [gates * size, x.shape[-1]]),
                    layer.parameter(direction + "weight_hh", [gates * size, size])]
        if layer["bias"]:
            weights += [layer.parameter(direction + name, [gates * size]) for name in ("bias_ih", "bias_hh")]
    start = [x.new_zeros(2 if both else 1, x.shape[0], size)] * states
    start = start if states > 1 else start[0]
    if lengths is None:
        return run(x, start, weights, layer["bias"], 1, 0.0, layer.training, both, True)[0]
    packed = rnn.pack_padded_sequence(x, lengths.long(), True, enforce_sorted=False)
    y = run(packed.data, packed.batch_sizes, start, weights, layer["bias"], 1, 0.0, layer.training, both)[0]
    return rnn.pad_packed_sequence(packed._replace(data=y), True, total_length=x.shape[1])[0]


def dropout(layer, x):
    """With lockstep's own mask, so that results can be compared step by step."""
    if not layer.training:
        return x
    run, rate = layer.network.run, layer["rate"]
    mask = streams.dropout_mask(run.seed, layer.name, run.step, rate, run.first_position, x.shape)
    return x * torch.from_numpy(mask) / (1 - rate)


def upsample(layer, x):
    factor = pair(layer["factor"])
    size = [x.shape[1] * factor[0], x.shape[2] * factor[1]]
    bilinear = layer["mode"] == "bilinear"
    y = F.interpolate(x.movedim(-1, 1), size, mode=layer["mode"], **({"align_corners": False} if bilinear else {}))
    return y.movedim(1, -1)


def product(layer, first, *others):
    """From left to right; a tensor of fewer dimensions has a factor for each channel."""
    for other in others:
        first = first * other.reshape(len(other), *[1] * (first.dim() - other.dim()), *other.shape[1:])
    return first


def part(layer, x):
    return x.movedim(layer["axis"], 0)[layer["begin"]:layer.settings.get("end")].movedim(0, layer["axis"])


OPS = {
    "add": lambda layer, first, *others: sum(others, first),
    "attention": attention,
    "avg_pool": avg_pool,
    "batch_norm": batch_norm,
    "concat": lambda layer, *inputs: torch.cat(inputs, layer["axis"]),
    "conv": conv,
    "conv_transpose": conv_transpose,
    "dropout": dropout,
    "elu": lambda layer, x: F.elu(x, layer["alpha"]),
    "embedding": embedding,
    "flatten": lambda layer, x: x.flatten(1),
    "gelu": lambda layer, x: F.gelu(x, approximate=layer["approximate"]),
    "global_pool": global_pool,
    "group_norm": lambda layer, x: norm_of_groups(layer, x, layer["groups"]),
    "gru": lambda layer, x, lengths=None: recurrent(layer, x, torch.gru, 3, 1, lengths),
    "hardswish": lambda layer, x: F.hardswish(x),
    "instance_norm": lambda layer, x: norm_of_groups(layer, x, x.shape[-1]),
    "last": last,
    "layer_norm": layer_norm,
    "leaky_relu": lambda layer, x: F.leaky_relu(x, layer["slope"]),
    "linear": linear,
    "lstm": lambda layer, x, lengths=None: recurrent(layer, x, torch.lstm, 4, 2, lengths),
    "mask": lambda layer, x, lengths=None: with_padding(x, lengths, 0.0),
    "matmul": lambda layer, first, second: first @ (second.mT if layer["transpose"] else second),
    "max": lambda layer, x, lengths=None: with_padding(x, lengths, -torch.inf).max(layer["axis"]).values,
    "max_pool": max_pool,
    "mean": lambda layer, x, lengths=None: x.mean(layer["axis"]) if lengths is None else mean_of_positions(x, lengths),
    "mul": product,
    "pad": pad,
    "class_token": class_token,
    "position_embedding": position_embedding,
    "prelu": prelu,
    "relu": lambda layer, x: F.relu(x),
    "relu6": lambda layer, x: F.relu6(x),
    "reshape": lambda layer, x: x.reshape(x.shape[0], *layer["shape"]),
    "reverse": reverse,
    "rms_norm": rms_norm,
    "rope": rope,
    "scale": lambda layer, x: layer["factor"] * x + layer.settings.get("shift", 0),
    "sigmoid": lambda layer, x: torch.sigmoid(x),
    "silu": lambda layer, x: F.silu(x),
    "slice": part,
    "softmax": lambda layer, x: F.softmax(x, -1),
    "softplus": lambda layer, x: F.softplus(x),
    "sub": lambda layer, first, second: first - second,
    "tanh": lambda layer, x: torch.tanh(x),
    "transpose": lambda layer, x: x.permute(0, *layer["order"]),
    "upsample": upsample,
}
