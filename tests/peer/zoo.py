"""The zoo's models as lists of layers, with lockstep's names: implemented a second time, from the papers and
docs/models-and-ops.md. `MODELS` has one function for each; a new model needs one entry."""


class List:
    def __init__(self):
        self.layers = []

    def add(self, op, name, inputs=("previous",), **settings):
        self.layers.append({op: settings, "name": name, "inputs": list(inputs)})
        return name


def mlp(settings, classes):
    net = List()
    net.layers = ["flatten"]
    hidden = settings["hidden"]
    for width in hidden if isinstance(hidden, list) else [hidden]:
        net.layers += [{"linear": width}, "relu"]
        if settings["dropout"] > 0:
            net.layers.append({"dropout": settings["dropout"]})
    return net.layers + [{"linear": classes, "name": "head"}]


def lenet(settings, classes):
    return [{"conv": {"filters": 6, "kernel": 5}}, "relu", {"max_pool": 2},
            {"conv": {"filters": 16, "kernel": 5, "padding": "valid"}}, "relu", {"max_pool": 2}, "flatten",
            {"linear": 120}, "relu", {"linear": 84}, "relu", {"linear": classes, "name": "head"}]


SMALL = {20: 3, 32: 5, 44: 7, 56: 9, 110: 18}
LARGE = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3]}


def resnet(settings, classes):
    depth = settings["depth"]
    small = depth in SMALL
    blocks = [SMALL[depth]] * 3 if small else LARGE[depth]
    widths = [16, 32, 64] if small else [64, 128, 256, 512]
    net = List()

    def conv_norm(name, x, filters, kernel, stride=1, relu=True):
        net.add("conv", name + ".conv", [x], filters=filters, kernel=kernel, stride=stride, bias=False)
        out = net.add("batch_norm", name + ".norm")
        return net.add("relu", name + ".relu") if relu else out

    x, channels = conv_norm("stem", "image", widths[0], 3 if small else 7, 1 if small else 2), widths[0]
    if not small:
        x = net.add("max_pool", "stem.pool", kernel=3, stride=2, padding=1)
    for stage, (count, width) in enumerate(zip(blocks, widths), 1):
        for number in range(1, count + 1):
            name, stride = f"stage{stage}.block{number}", 2 if stage > 1 and number == 1 else 1
            if depth == 50:
                out = 4 * width
                y = conv_norm(name + ".2", conv_norm(name + ".1", x, width, 1), width, 3, stride)
                y = conv_norm(name + ".3", y, out, 1, relu=False)
            else:
                out = width
                y = conv_norm(name + ".2", conv_norm(name + ".1", x, width, 3, stride), width, 3, relu=False)
            if stride != 1 or channels != out:
                x = conv_norm(name + ".shortcut", x, out, 1, stride, relu=False)
            net.add("add", name + ".add", [y, x])
            x, channels = net.add("relu", name + ".relu"), out
    net.add("global_pool", "pool")
    net.add("linear", "head", features=classes)
    return net.layers


def conv_norm_act(net, name, x, act, **settings):
    """A convolution without bias, its norm, and an activation, if there is one."""
    net.add("conv", name + ".conv", [x], bias=False, **settings)
    out = net.add("batch_norm", name + ".norm")
    return net.add(act, f"{name}.{act}") if act else out


# Expansion, channels, blocks, stride of each stage: table 2 of the paper.
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenet(settings, classes):
    """As torchvision's mobilenet_v2; `small` leaves out two of its strides."""
    factor, small, net = settings["width"], settings["small"], List()

    def scaled(channels):
        by_8 = max(8, int(channels * factor + 4) // 8 * 8)
        return by_8 + 8 if by_8 < 0.9 * channels * factor else by_8

    channels = scaled(32)
    x = conv_norm_act(net, "stem", "image", "relu6", filters=channels, kernel=3, stride=1 if small else 2)
    for stage, (expansion, width, count, stride) in enumerate(STAGES, 1):
        out = scaled(width)
        for number in range(1, count + 1):
            name, step = f"stage{stage}.block{number}", stride if number == 1 and not (small and stage == 2) else 1
            y, wide = x, channels * expansion
            if expansion > 1:
                y = conv_norm_act(net, name + ".expand", y, "relu6", filters=wide, kernel=1)
            y = conv_norm_act(net, name + ".depthwise", y, "relu6", filters=wide, kernel=3, stride=step, groups=wide)
            y = conv_norm_act(net, name + ".project", y, None, filters=out, kernel=1)
            x = net.add("add", name + ".add", [x, y]) if step == 1 and channels == out else y
            channels = out
    conv_norm_act(net, "last", x, "relu6", filters=max(1280, scaled(1280)), kernel=1)
    net.add("global_pool", "pool")
    if settings["dropout"] > 0:
        net.add("dropout", "dropout", rate=settings["dropout"])
    net.add("linear", "head", features=classes)
    return net.layers


def unet(settings, classes):  # pylint: disable=unused-argument
    width, depth, net = settings["width"], settings["depth"], List()

    def double(name, x, filters):
        x = conv_norm_act(net, name + ".1", x, "relu", filters=filters, kernel=3)
        return conv_norm_act(net, name + ".2", x, "relu", filters=filters, kernel=3)

    x, skips = "left", []
    for level in range(1, depth + 1):
        skips.append(double(f"down{level}", x, width * 2 ** (level - 1)))
        x = net.add("max_pool", f"down{level}.pool", kernel=2)
    x = double("bottom", x, width * 2 ** depth)
    for level in range(depth, 0, -1):
        filters = width * 2 ** (level - 1)
        x = net.add("conv_transpose", f"up{level}.conv", [x], filters=filters, kernel=2, stride=2)
        x = net.add("concat", f"up{level}.concat", [skips[level - 1], x])
        x = double(f"up{level}", x, filters)
    net.add("conv", "head", filters=settings["outputs"], kernel=1)
    return net.layers


def autoencoder(settings, classes, image=(8, 8, 3)):  # pylint: disable=unused-argument
    width, depth, net = settings["width"], settings["depth"], List()
    for level in range(1, depth + 1):
        net.add("conv", f"encoder{level}.conv", ["image" if level == 1 else "previous"],
                filters=width * 2 ** (level - 1), kernel=3, stride=2)
        net.add("relu", f"encoder{level}.relu")
    small = [image[0] >> depth, image[1] >> depth, width * 2 ** (depth - 1)]
    net.add("flatten", "flat")
    net.add("linear", "code", features=settings["code"])
    net.add("linear", "expand", features=small[0] * small[1] * small[2])
    net.add("relu", "expand.relu")
    net.add("reshape", "grid", shape=small)
    for level in range(depth, 1, -1):
        net.add("conv_transpose", f"decoder{level}.conv", filters=width * 2 ** (level - 2), kernel=4, stride=2)
        net.add("relu", f"decoder{level}.relu")
    net.add("conv_transpose", "head", filters=image[2], kernel=4, stride=2)
    return net.layers


SIZES = {"tiny": (4, 4, 128), "small": (6, 6, 384), "gpt2": (12, 12, 768), "gpt2-medium": (24, 16, 1024),
         "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600)}


def of_positions(settings):
    return {"length": settings["positions"]} if "positions" in settings else {}


def gpt(settings, vocabulary):
    layers, heads, width = (settings.get(key, size) for key, size
                            in zip(("layers", "heads", "width"), SIZES[settings["size"]]))
    bias, rate, net = settings["bias"], settings["dropout"], List()
    hidden, epsilon = settings.get("hidden", 4 * width), settings.get("epsilon", 1e-5)

    def drop(name):
        return net.add("dropout", name + ".dropout", rate=rate) if rate > 0 else name

    def half(block, x, number, first, middle, last):
        """Norm, a linear layer, `middle`, a linear layer, and the residual addition."""
        net.add("layer_norm", f"{block}.norm{number}", [x], bias=bias, epsilon=epsilon)
        net.add("linear", f"{block}.{first}", features=3 * width if first == "qkv" else hidden, bias=bias)
        net.add(middle[0], f"{block}.{middle[0]}", **middle[1])
        net.add("linear", f"{block}.{last}", features=width, bias=bias)
        return net.add("add", f"{block}.add{number}", [x, drop(f"{block}.{last}")])

    net.add("embedding", "tokens", ["tokens"], vocabulary=vocabulary, width=width)
    net.add("position_embedding", "positions", **of_positions(settings))
    x = "positions"
    if rate > 0:
        x = net.add("dropout", "embedding.dropout", rate=rate)
    for i in range(1, layers + 1):
        x = half(f"block{i}", x, 1, "qkv", ("attention", {"heads": heads, "causal": True}), "projection")
        x = half(f"block{i}", x, 2, "expand", ("gelu", {"approximate": settings.get("gelu", "tanh")}), "contract")
    net.add("layer_norm", "norm", bias=bias, epsilon=epsilon)
    net.add("linear", "head", features=vocabulary, tied="tokens")
    return net.layers


BERTS = {"tiny": (4, 4, 128), "base": (12, 12, 768), "large": (24, 16, 1024)}


def bert(settings, vocabulary):
    layers, heads, width = (settings.get(key, size) for key, size
                            in zip(("layers", "heads", "width"), BERTS[settings["size"]]))
    rate, net = settings["dropout"], List()
    hidden, epsilon = settings.get("hidden", 4 * width), settings.get("epsilon", 1e-12)
    classes, vocabulary = vocabulary, settings.get("vocabulary", vocabulary)  # with a head for classes, both are given
    of_classes = settings.get("head") == "classes"

    def drop(name):
        return net.add("dropout", name + ".dropout", rate=rate) if rate > 0 else name

    def residual(block, x, number, last):
        """A linear layer, the residual addition, and its norm."""
        net.add("linear", f"{block}.{last}", features=width)
        net.add("add", f"{block}.add{number}", [x, drop(f"{block}.{last}")])
        return net.add("layer_norm", f"{block}.norm{number}", epsilon=epsilon)

    net.add("embedding", "tokens", ["tokens"], vocabulary=vocabulary, width=width)
    net.add("position_embedding", "positions", **of_positions(settings))
    if "types" in settings:
        net.add("position_embedding", "types", length=settings["types"], same=True)
    x = net.add("layer_norm", "embedding.norm", epsilon=epsilon)
    if rate > 0:
        x = net.add("dropout", "embedding.dropout", rate=rate)
    for block in (f"block{i}" for i in range(1, layers + 1)):
        net.add("linear", block + ".qkv", [x], features=3 * width)
        seen = {"inputs": [block + ".qkv", "length"]} if of_classes else {}
        net.add("attention", block + ".attention", heads=heads, causal=False, **seen)
        x = residual(block, x, 1, "projection")
        net.add("linear", block + ".expand", [x], features=hidden)
        net.add("gelu", block + ".gelu", approximate="none")
        x = residual(block, x, 2, "contract")
    if of_classes:
        net.add("slice", "first", [x], axis=1, end=1)
        net.add("flatten", "pool")
        net.add("linear", "pooler", features=width)
        net.add("tanh", "pooler.tanh")
        if rate > 0:
            net.add("dropout", "pooler.dropout", rate=rate)
        net.add("linear", "classifier", features=classes)
        return net.layers
    net.add("linear", "transform", [x], features=width)
    net.add("gelu", "transform.gelu", approximate="none")
    net.add("layer_norm", "transform.norm", epsilon=epsilon)
    net.add("linear", "head", features=vocabulary, tied="tokens", bias=True)
    return net.layers


LLAMAS = {"tiny": (4, 4, 2, 128, 352, 1e4), "small": (6, 6, 2, 384, 1024, 1e4),
          "llama2-7b": (32, 32, 32, 4096, 11008, 1e4), "llama3-8b": (32, 32, 8, 4096, 14336, 5e5)}


def llama(settings, vocabulary):
    layers, heads, kv_heads, width, hidden, base = LLAMAS[settings["size"]]
    layers, heads = settings.get("layers", layers), settings.get("heads", heads)
    kv_heads = settings.get("kv_heads", settings.get("heads", kv_heads))
    if "width" in settings:
        width = settings["width"]
        hidden = -(-(8 * width // 3) // 32) * 32
    hidden, base, net = settings.get("hidden", hidden), settings.get("rope_base", base), List()

    epsilon = settings.get("epsilon", 1e-5)

    def linear(name, x, features):
        return net.add("linear", name, [x], features=features, bias=False)

    net.add("embedding", "tokens", ["tokens"], vocabulary=vocabulary, width=width)
    x = "tokens"
    for block in (f"block{i}" for i in range(1, layers + 1)):
        y = net.add("rms_norm", block + ".norm1", [x], epsilon=epsilon)
        query = linear(block + ".query", y, width)
        query = net.add("rope", block + ".query_rope", [query], heads=heads, base=base)
        key = linear(block + ".key", y, width // heads * kv_heads)
        key = net.add("rope", block + ".key_rope", [key], heads=kv_heads, base=base)
        value = linear(block + ".value", y, width // heads * kv_heads)
        y = net.add("attention", block + ".attention", [query, key, value], heads=heads, kv_heads=kv_heads, causal=True)
        x = net.add("add", block + ".add1", [x, linear(block + ".projection", y, width)])
        y = net.add("rms_norm", block + ".norm2", [x], epsilon=epsilon)
        linear(block + ".gate", y, hidden)
        gate = net.add("silu", block + ".silu")
        y = net.add("mul", block + ".gated", [gate, linear(block + ".up", y, hidden)])
        x = net.add("add", block + ".add2", [x, linear(block + ".down", y, width)])
    net.add("rms_norm", "norm", [x], epsilon=epsilon)
    net.add("linear", "head", features=vocabulary, **({"tied": "tokens"} if settings.get("tied") else {"bias": False}))
    return net.layers


LSTMS = {"tiny": (1, 128), "small": (2, 200), "medium": (2, 650), "large": (2, 1500)}


def lstm(settings, vocabulary):
    layers, width = (settings.get(key, size) for key, size in zip(("layers", "width"), LSTMS[settings["size"]]))
    rate, net = settings["dropout"], List()
    net.add("embedding", "tokens", ["tokens"], vocabulary=vocabulary, width=width)
    if rate > 0:
        net.add("dropout", "embedding.dropout", rate=rate)
    for name in (f"lstm{i}" for i in range(1, layers + 1)):
        net.add("lstm", name, features=width)
        if rate > 0:
            net.add("dropout", name + ".dropout", rate=rate)
    net.add("linear", "head", features=vocabulary, bias=True, **({"tied": "tokens"} if settings.get("tied") else {}))
    return net.layers


VITS = {"tiny": (6, 4, 64, 4), "small": (12, 6, 384, 16), "base": (12, 12, 768, 16), "large": (24, 16, 1024, 16)}


def vit(settings, classes, image=28):
    layers, heads, width, patch = (settings.get(key, size) for key, size
                                   in zip(("layers", "heads", "width", "patch"), VITS[settings["size"]]))
    side = image // patch
    rate, net, by_token = settings["dropout"], List(), settings.get("pool") == "token"
    hidden, epsilon = settings.get("hidden", 4 * width), settings.get("epsilon", 1e-5)

    def drop(name):
        return net.add("dropout", name + ".dropout", rate=rate) if rate > 0 else name

    net.add("conv", "patches", ["image"], filters=width, kernel=patch, stride=patch, padding="valid")
    net.add("reshape", "tokens", shape=[side * side, width])
    if by_token:
        net.add("class_token", "class_token")
    net.add("position_embedding", "positions")
    x = net.add("dropout", "embedding.dropout", rate=rate) if rate > 0 else "positions"
    for block in (f"block{i}" for i in range(1, layers + 1)):
        net.add("layer_norm", block + ".norm1", [x], epsilon=epsilon)
        net.add("linear", block + ".qkv", features=3 * width)
        net.add("attention", block + ".attention", heads=heads, causal=False)
        net.add("linear", block + ".projection", features=width)
        x = net.add("add", block + ".add1", [x, drop(block + ".projection")])
        net.add("layer_norm", block + ".norm2", [x], epsilon=epsilon)
        net.add("linear", block + ".expand", features=hidden)
        net.add("gelu", block + ".gelu", approximate="none")
        net.add("linear", block + ".contract", features=width)
        x = net.add("add", block + ".add2", [x, drop(block + ".contract")])
    net.add("layer_norm", "norm", [x], epsilon=epsilon)
    if by_token:
        net.add("slice", "class", axis=1, end=1)
        net.add("flatten", "pool")
    else:
        net.add("reshape", "grid", shape=[side, side, width])
        net.add("global_pool", "pool")
    net.add("linear", "head", features=classes)
    return net.layers


MODELS = {"mlp": mlp, "lenet": lenet, "resnet": resnet, "mobilenet": mobilenet, "unet": unet,
          "autoencoder": autoencoder, "gpt": gpt, "bert": bert, "llama": llama, "lstm": lstm, "vit": vit}
