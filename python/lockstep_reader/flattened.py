"""Which tensors follow the order of a flattened image.

lockstep keeps channels last, so its `flatten` gives [height, width, channel]; PyTorch's gives [channel, height, width]. So
the columns of a linear layer behind it, and the tensors of a norm between them, are in another order, and so are the rows of
one that makes an image. What is needed to turn them is the number of channels. A checkpoint's manifest has what the program
found in the model's graph; of older ones it follows from the job's layers.
"""
import dataclasses
import json

# In models of the zoo: tensors behind a flatten, and its channels, 0 for those of the image. Other models have none.
_ZOO = {"lenet": (["linear1.weight"], 16), "mlp": (["linear1.weight", "head.weight"], 0), "resnet": ([], 1), "gpt": ([], 1),
        "llama": ([], 1), "vit": ([], 1), "bert": ([], 1), "mobilenet": ([], 1), "unet": ([], 1)}
_NORMS = {"batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm"}
_ELEMENTWISE = {"add", "sub", "mul", "scale", "dropout", "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "softplus",
                "hardswish", "tanh", "softmax", "relu6"}
_OF_IMAGES = {"max_pool", "avg_pool", "upsample", "pad"}  # keep the number of channels
_CONVOLUTIONS = {"conv", "conv_transpose"}
_KINDS = ("weight", "bias", "running_mean", "running_variance")


@dataclasses.dataclass
class Flattened:
    """`channels` of the image that a tensor's last dimension follows, by the tensor's name, `rows`: of the one that its first
    dimension makes; `unclear`: the layer behind which that is not known, or ""."""
    channels: dict[str, int] = dataclasses.field(default_factory=dict)
    unclear: str = ""
    rows: dict[str, int] = dataclasses.field(default_factory=dict)


def flattened_in(metadata: dict) -> Flattened | None:
    """As the program wrote it into a checkpoint's manifest; None of one that says nothing."""
    if "flattened" not in metadata:
        return None
    found = json.loads(metadata["flattened"])

    def channels(dimension):
        return {name: sizes[dimension][2] for name, sizes in found["tensors"].items() if dimension in sizes}
    return Flattened(channels("columns"), found["unclear"] or found["unmade"], channels("rows"))


@dataclasses.dataclass(frozen=True)
class _Value:
    """What a layer gives. `kind`: "image"; "flat", of an image; "made", an image of numbers that were none, such as an
    autoencoder's; "unknown", maybe an image; "other"."""
    kind: str
    channels: int = 0


_OTHER, _UNKNOWN, _MADE = _Value("other"), _Value("unknown"), _Value("made")


def flattened_of(job: dict, data: dict) -> Flattened:
    """From a checkpoint's job and data. With one channel both orders are the same: nothing is listed."""
    features = {feature["name"]: _feature(feature) for feature in data.get("features", [])}
    model = job.get("model", {})
    if "layers" not in model:
        return _of_zoo(model, features)
    walk = _Walk(features, model.get("inputs", []))
    for layer in model["layers"]:
        walk.visit(layer)
    return walk.found


def _feature(feature) -> _Value:
    return _Value("image", feature["shape"][2]) if feature.get("kind") == "image" else _OTHER


def _of_zoo(model, features) -> Flattened:
    name = next((name for name in model if name in _ZOO), None)
    if name is None:
        return Flattened(unclear=f"model '{next(iter(model), '')}'")
    tensors, channels = _ZOO[name]
    channels = channels or next((value.channels for value in features.values() if value.kind == "image"), 1)
    if name == "mlp":
        tensors = tensors[:1] if model["mlp"]["hidden"] else tensors[1:]
    return Flattened({tensor: channels for tensor in tensors} if channels > 1 else {})


def order_of_torch(columns: int, channels: int) -> list[int]:
    """For each place of a flattened image in PyTorch's order, the place in lockstep's."""
    pixels = columns // channels
    return [pixel * channels + channel for channel in range(channels) for pixel in range(pixels)]


class _Walk:
    """Follows images through a list of layers, as the program's graph/flattened.cpp does through a graph."""

    def __init__(self, features, inputs):
        self.values = {name: value for name, value in features.items() if not inputs or name in inputs}
        self.previous = next((value for value in self.values.values() if value.kind == "image"), _OTHER)
        self.counts, self.found = {}, Flattened()

    def visit(self, layer: dict) -> None:
        op = next(key for key in layer if key not in ("name", "inputs", "block", "part"))
        self.counts[op] = self.counts.get(op, 0) + 1
        name = layer.get("name") or f"{op}{self.counts[op]}"
        settings = layer[op] if isinstance(layer[op], dict) else {}
        inputs = layer.get("inputs") or settings.get("inputs") or ["previous"]
        values = [self.previous if one == "previous" else self.values.get(one, _OTHER)
                  for one in ([inputs] if isinstance(inputs, str) else inputs)]
        self.previous = self.values[name] = self._after(op, name, settings, values)

    def _after(self, op, name, settings, values) -> _Value:
        same = len(set(values)) == 1
        if any(value.kind == "flat" for value in values):
            return self._after_flat(op, name, settings, values[0] if same else _UNKNOWN)
        flattens = op == "flatten" or (op == "reshape" and len(settings["shape"]) == 1)
        if any(value.kind == "unknown" for value in values):
            return self._give_up(op, name) if flattens else _OTHER if op == "linear" else _UNKNOWN
        if any(value.kind == "made" for value in values):  # rows of a linear layer before it are in another order
            return self._give_up(op, name) if op in _CONVOLUTIONS | _OF_IMAGES else _MADE
        if op == "mul" and [value.kind for value in values] == ["image", "other"]:  # factors for channels
            return values[0]
        if any(value.kind == "other" for value in values):
            makes = op == "reshape" and len(settings["shape"]) == 3
            return _MADE if makes else _OTHER if same else _UNKNOWN
        if flattens:
            return _Value("flat", values[0].channels) if values[0].channels > 1 else _OTHER
        return self._after_images(op, settings, values, same)

    @staticmethod
    def _after_images(op, settings, values, same) -> _Value:
        match op:
            case "conv" | "conv_transpose":
                return _Value("image", settings["filters"])
            case "linear":
                return _Value("image", settings["features"])
            case "reshape" if len(settings["shape"]) == 3:
                return _Value("image", settings["shape"][-1])
            case "global_pool" | "reshape":
                return _OTHER
            case "concat" if settings.get("axis", -1) in (-1, 3):
                return _Value("image", sum(value.channels for value in values))
        return values[0] if same and op in _OF_IMAGES | _ELEMENTWISE | _NORMS | {"concat"} else _UNKNOWN

    def _after_flat(self, op, name, settings, value) -> _Value:
        if op == "linear":
            self.found.channels[f"{settings.get('tied') or name}.weight"] = value.channels
            return _OTHER
        if op in _NORMS:
            self.found.channels |= {f"{name}.{kind}": value.channels for kind in _KINDS}
            return value
        if op == "reshape" and len(settings["shape"]) == 3:
            return _Value("image", settings["shape"][-1])
        return value if value != _UNKNOWN and op in _ELEMENTWISE else self._give_up(op, name)

    def _give_up(self, op, name) -> _Value:
        self.found.unclear = self.found.unclear or f"{op} '{name}'"
        return _UNKNOWN
