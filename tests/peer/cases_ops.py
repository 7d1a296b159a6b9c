"""Every op with every setting. An op's cases are called `<op>: ...`; each of its mutants, and a slight distortion of
its output (network.Network.distorted), must be detected."""
from case import IMAGES, LARGER, PAIRS, TEXT, TEXTS, Case, job

CONV = {"conv": {"filters": 6, "kernel": 3}}
HEAD = ["flatten", {"linear": 5}]
SEQUENCE = [{"embedding": {"vocabulary": 11, "width": 12}}]  # for TEXT
WORDS = [{"linear": 11}]
SERIES = {"images": [14, 1, 3], "samples": 32}  # of one dimension, time


def image_case(name, layers, mutants=(), data=LARGER, **others):
    return Case(name, job(layers, data, **others), list(mutants))


def text_case(name, layers, mutants=(), data=TEXT, **others):
    return Case(name, job([*SEQUENCE, *layers, *WORDS], data, **others), list(mutants))


def conv_cases():
    def of(name, mutants=(), data=LARGER, **settings):
        settings = {"filters": 6, "kernel": 3} | settings
        return image_case(f"conv: {name}", [{"conv": settings}, "tanh", {"conv": settings}, *HEAD], mutants, data)

    yield of("3 x 3, same")
    yield of("no bias", bias=False)
    yield of("5 x 3, same", kernel=[5, 3])
    yield of("even kernel, same", kernel=[2, 4])
    yield of("even kernel, same, stride 2", kernel=4, stride=2)
    yield of("valid", padding="valid")
    yield of("padding 1, 2", padding=[1, 2])
    yield of("stride 2", stride=2)
    yield of("stride 2, 1", stride=[2, 1], kernel=[3, 2])
    yield of("dilation 2", [{"model.layers.0.conv.dilation": 1}], dilation=2)
    yield of("dilation 1, 3, valid height", dilation=[1, 3], kernel=[3, 2], padding=[0, 1])
    yield of("dilation 2, stride 2", dilation=2, stride=2)
    yield of("groups 3", groups=3)
    yield of("1 x 1", kernel=1)
    yield of("1 x 1, stride 2", kernel=1, stride=2)
    yield of("7 x 7, stride 2", kernel=7, stride=2)
    yield of("many channels", filters=48)
    yield of("stride beyond the kernel", kernel=2, stride=3, padding="valid")
    yield image_case("conv: one dimension", [{"conv": {"filters": 6, "kernel": [5, 1], "stride": [2, 1]}}, "tanh",
                                             {"conv": {"filters": 4, "kernel": [3, 1], "dilation": [2, 1]}}, *HEAD], data=SERIES)
    yield image_case("conv: depthwise", [CONV, "tanh", {"conv": {"filters": 12, "kernel": 3, "groups": 6}}, *HEAD])
    yield image_case("conv: one grey channel", [{"conv": {"filters": 4, "kernel": 3}}, *HEAD],
                     data={"images": [7, 7], "samples": 32})


def conv_transpose_cases():
    def of(name, **settings):
        settings = {"filters": 4, "kernel": 3} | settings
        first = {"conv": {"filters": 6, "kernel": 3, "stride": 2}}
        return image_case(f"conv_transpose: {name}", [first, "tanh", {"conv_transpose": settings}, *HEAD])

    yield of("3 x 3, same")
    yield of("twice as large", kernel=4, stride=2)
    yield of("twice as large, odd", stride=2)
    yield of("no bias", kernel=2, stride=2, bias=False)
    yield of("valid", padding="valid", stride=2)
    yield of("stride beyond the kernel", kernel=2, stride=3, padding="valid")
    yield of("output padding", stride=2, padding=1, output_padding=[1, 0])
    yield of("dilation 2, 1", dilation=[2, 1], stride=[1, 2])
    yield of("groups 2", groups=2, stride=2)
    yield image_case("conv_transpose: depthwise", [CONV, "tanh", {"conv_transpose": {
        "filters": 6, "kernel": 4, "stride": 2, "groups": 6}}, *HEAD])


def pool_cases():
    def of(op, name, mutants=(), **settings):
        return image_case(f"{op}: {name}", [CONV, "tanh", {op: {"kernel": 2} | settings}, *HEAD], mutants)

    for op in ("max_pool", "avg_pool"):
        yield of(op, "2 x 2")
        yield of(op, "3 x 3, stride 2, padding 1", kernel=3, stride=2, padding=1)
        yield of(op, "3 x 2, stride 1, 2", kernel=[3, 2], stride=[1, 2])
        yield of(op, "same, odd", kernel=3, stride=1, padding="same")
        yield of(op, "same, even", kernel=[2, 4], stride=1, padding="same")
        yield of(op, "padding 0, 1", kernel=3, stride=2, padding=[0, 1])
        yield of(op, "stride beyond the kernel", stride=3)
        yield image_case(f"{op}: one dimension", [{"conv": {"filters": 6, "kernel": [3, 1]}}, "tanh",
                                                  {op: {"kernel": [3, 1], "stride": [2, 1], "padding": [1, 0]}}, *HEAD], data=SERIES)
    path = "model.layers.2.avg_pool.count_include_pad"
    yield of("avg_pool", "without padding", [{path: True}], kernel=3, stride=2, padding=1, count_include_pad=False)
    yield of("avg_pool", "without padding, same", [{path: True}], kernel=4, stride=2, padding="same",
             count_include_pad=False)
    for kind, other in (("average", "max"), ("max", "average")):
        yield image_case(f"global_pool: {kind}", [CONV, "tanh", {"global_pool": kind}, {"linear": 5}],
                         [{"model.layers.2.global_pool": other}])
    for op in ("mean", "max"):
        yield image_case(f"{op}: rows", [CONV, "tanh", {op: 1}, *HEAD])
        yield image_case(f"{op}: channels", [CONV, "tanh", op, *HEAD])
        yield text_case(f"{op}: width", [{"linear": 60}, {"reshape": [7, 5, 12]}, {op: 2}])


def norm_cases():
    def of(name, settings, mutants=(), layers=None, **others):
        layers = layers or [plain, {"batch_norm": settings}, "tanh", *HEAD]
        return Case(f"batch_norm: {name}", job(layers, LARGER, **others), list(mutants), validation=16)

    plain = {"conv": CONV["conv"] | {"bias": False}}
    path = "model.layers.1.batch_norm."
    yield of("one micro-batch", {}, micro_batches=1)
    yield of("two micro-batches", {}, [{"convention.micro_batch_statistics": False}])
    yield of("four micro-batches", {}, [{"micro_batches": 2}], micro_batches=4)
    yield of("epsilon", {"epsilon": 0.01}, [{path + "epsilon": 0.0101}])
    yield of("epsilon default", {}, [{path + "epsilon": 2e-5}], learning_rate=0.5)
    yield of("momentum", {"momentum": 0.3}, [{path + "momentum": 0.301}])
    yield of("momentum 0", {"momentum": 0})
    yield of("momentum 1", {"momentum": 1.0})
    yield of("features", {}, layers=["flatten", {"linear": {"features": 10, "bias": False}}, "batch_norm", "relu",
                                     {"linear": 5}])
    yield of("relu joined", {}, layers=[plain, "batch_norm", "relu", plain, {"batch_norm": {}}, "relu", *HEAD],
             learning_rate=0.02)
    for op in ("layer_norm", "rms_norm"):
        path = f"model.layers.1.{op}.epsilon"
        yield text_case(f"{op}: text", [op])
        yield text_case(f"{op}: far from 0", [{"linear": 12}, {"scale": 1000.0}, op])
        yield text_case(f"{op}: epsilon of 0", [{op: {"epsilon": 0}}])
        yield text_case(f"{op}: epsilon", [{op: {"epsilon": 0.01}}], [{path: 0.0101}])
        yield text_case(f"{op}: epsilon default", [{"linear": 12}, {"scale": 0.05}, op],
                        [{"model.layers.3": {op: {"epsilon": 1.1e-5}}}])
        yield image_case(f"{op}: images", [CONV, op, *HEAD], learning_rate=0.02)
    yield text_case("layer_norm: no bias", [{"layer_norm": {"bias": False}}])
    path = "model.layers.1.group_norm."
    for name, own, *mutants in (("two", {"groups": 2}, {path + "groups": 3}), ("one", {"groups": 1}),
                                ("epsilon", {"groups": 3, "epsilon": 0.01}, {path + "epsilon": 0.0101}),
                                ("not affine", {"groups": 2, "affine": False})):
        yield image_case(f"group_norm: {name}", [CONV, {"group_norm": own}, *HEAD], mutants, learning_rate=0.02)
    yield image_case("group_norm: features", ["flatten", {"linear": 12}, {"group_norm": 3}, {"linear": 5}],
                     [{"model.layers.2.group_norm": 4}])
    yield text_case("group_norm: text", [{"group_norm": 4}])
    yield image_case("instance_norm: images", [plain, "instance_norm", *HEAD], learning_rate=0.02)
    yield image_case("instance_norm: affine", [plain, {"instance_norm": {"affine": True, "epsilon": 0.01}}, *HEAD],
                     [{"model.layers.1.instance_norm.epsilon": 0.0101}], learning_rate=0.02)


def activation_cases():
    for op in ("relu", "gelu", "sigmoid", "silu", "tanh", "softmax", "softplus", "hardswish", "leaky_relu", "elu", "relu6",
               "prelu"):
        yield image_case(f"{op}: images", [CONV, {"scale": 3.0}, op, *HEAD])
    for form, other in (("tanh", "none"), ("none", "tanh")):
        yield image_case(f"gelu: {form}", ["flatten", {"linear": 12}, {"scale": 2.0}, {"gelu": form}, {"linear": 5}],
                         [{"model.layers.3.gelu": other}], IMAGES)
        yield image_case(f"gelu: {form}, joined with linear",
                         ["flatten", {"linear": 12}, {"gelu": form}, {"linear": 5}],
                         [{"model.layers.2.gelu": other}], IMAGES)
    yield text_case("softmax: text", ["softmax"])
    yield image_case("leaky_relu: slope", [CONV, {"leaky_relu": 0.3}, *HEAD], [{"model.layers.1.leaky_relu": 0.301}])
    yield image_case("relu6: up to 6", [CONV, {"scale": 12.0}, "relu6", *HEAD], learning_rate=0.001)
    yield image_case("prelu: one slope", [CONV, {"prelu": {"shared": True}}, *HEAD])
    yield image_case("prelu: decay", [CONV, "prelu", *HEAD], [{"convention.bias_decays": True}],
                     optimizer={"sgd": {"weight_decay": 0.1}})
    yield image_case("elu: alpha", [CONV, {"elu": 0.4}, *HEAD], [{"model.layers.1.elu": 0.401}])
    for op in ("gelu", "sigmoid", "silu", "tanh", "softmax", "softplus", "elu"):
        yield image_case(f"{op}: large inputs", [CONV, {"scale": 40.0}, op, *HEAD], learning_rate=0.001)
    yield image_case("gelu: exact, large inputs", [CONV, {"scale": 40.0}, {"gelu": "none"}, *HEAD], learning_rate=0.001)
    yield image_case("scale: shifted", [CONV, {"scale": {"factor": 0.8, "shift": 0.3}}, "relu", *HEAD],
                     [{"model.layers.1.scale.shift": 0.3003}])
    yield image_case("scale: negative", [CONV, {"scale": -0.37}, *HEAD], [{"model.layers.1.scale": -0.3701}])


def linear_cases():
    yield image_case("linear: no bias", ["flatten", {"linear": {"features": 9, "bias": False}}, "tanh", {"linear": 5}],
                     data=IMAGES)
    yield text_case("linear: over time", [{"linear": 20}, "tanh"])
    words = {"embedding": {"vocabulary": 11, "width": 12}, "name": "words"}
    last = {"linear": {"features": 11, "tied": "words"}}
    yield Case("linear: tied", job([words, {"linear": 12}, "tanh", last], TEXT))
    yield Case("linear: tied with a bias", job([*SEQUENCE, {"linear": 12}, "tanh", {"linear":
               {"features": 11, "tied": "embedding1", "bias": True}}], TEXT))
    yield image_case("linear: tied to a linear layer",
                     ["flatten", {"linear": {"features": 108}, "name": "first"}, "tanh",
                      {"linear": {"features": 108, "tied": "first"}}, "tanh", {"linear": 5}], data=IMAGES)


def joining_cases():
    left, right = ({"conv": {"filters": 4, "kernel": 3}, "inputs": side, "name": side + "_conv"}
                   for side in ("left", "right"))
    for op in ("add", "mul"):
        yield image_case(f"{op}: two images", [left, right, {op: {"inputs": ["left_conv", "right_conv"]}}, *HEAD],
                         data=PAIRS)
        yield image_case(f"{op}: three, one of them twice",
                         [left, right, {op: {"inputs": ["left_conv", "right_conv", "left_conv"]}}, *HEAD], data=PAIRS)
    factors = [{"conv": {"filters": 4, "kernel": 3}, "name": "x"}, {"global_pool": {}}, {"linear": 4}, "sigmoid"]
    scaled = [{"mul": {"inputs": ["x", "previous"]}}, *HEAD]
    yield image_case("mul: a factor for each channel", [*factors, *scaled])
    yield image_case("mul: a factor for each channel, of four dimensions", [*factors, {"reshape": [1, 1, 4]}, *scaled])
    yield image_case("sub: two images", [left, right, {"sub": {"inputs": ["left_conv", "right_conv"]}}, *HEAD],
                     data=PAIRS)
    square = [left, right, {"matmul": {"inputs": ["left_conv", "right_conv"], "transpose": True}, "name": "rows"}]
    yield image_case("matmul: two images, transposed", [*square, *HEAD],
                     [{"model.layers.2.matmul.inputs": ["right_conv", "left_conv"]}], data=PAIRS)
    yield image_case("matmul: its own product", [*square, {"matmul": {"inputs": ["rows", "left_conv"]}}, *HEAD],
                     data=PAIRS)
    for axis in (-1, 1, 2):
        other = {-1: 1, 1: 2, 2: 1}[axis]
        yield image_case(f"concat: axis {axis}",
                         [left, right, {"concat": {"inputs": ["right_conv", "left_conv"], "axis": axis}}, *HEAD],
                         [{"model.layers.2.concat.axis": other}], data=PAIRS)
    yield image_case("concat: images of two sizes", [
        {"flatten": {}, "inputs": "left", "name": "a"}, {"flatten": {}, "inputs": "right", "name": "b"},
        {"concat": {"inputs": ["a", "b"]}}, {"linear": 5}], data={"pairs": [[6, 5, 3], [3, 4, 3]], "samples": 32})
    yield image_case("slice: rows", [CONV, {"slice": {"axis": 1, "begin": 2, "end": -1}}, *HEAD],
                     [{"model.layers.1.slice.begin": 1, "model.layers.1.slice.end": -2}])
    yield image_case("slice: channels", [CONV, {"slice": {"begin": -4}}, *HEAD],
                     [{"model.layers.1.slice": {"begin": 0, "end": 4}}])
    for mode, other in (("nearest", "bilinear"), ("bilinear", "nearest")):
        yield image_case(f"upsample: {mode}", [CONV, {"upsample": {"factor": 2, "mode": mode}}, {
            "conv": {"filters": 3, "kernel": 3, "stride": 3}}, *HEAD], [{"model.layers.1.upsample.mode": other}])
    yield image_case("upsample: two factors", [CONV, {"upsample": {"factor": [1, 3], "mode": "bilinear"}}, {
        "conv": {"filters": 3, "kernel": 3, "stride": 3}}, *HEAD])
    yield image_case("pad: zero", [CONV, {"pad": [1, 2]}, *HEAD])
    yield image_case("pad: four sides", [CONV, {"pad": [0, 1, 2, 3]}, *HEAD], [{"model.layers.1.pad": [1, 0, 2, 3]}])
    yield image_case("pad: reflect", [CONV, {"pad": {"sides": [2, 1, 0, 3], "mode": "reflect"}}, *HEAD],
                     [{"model.layers.1.pad.mode": "zero"}])
    yield image_case("flatten: images", [CONV, "flatten", {"linear": 5}])
    yield image_case("reshape: rows", [CONV, {"reshape": [-1, 8]}, {"linear": 3}, "tanh", *HEAD])
    yield image_case("transpose: channels first", [CONV, {"transpose": [3, 1, 2]}, {"linear": 3}, "tanh", *HEAD],
                     [{"model.layers.1.transpose": [3, 2, 1], "model.layers.2.linear": 3}], data=
                     {"images": [8, 8, 3], "samples": 32})
    yield text_case("transpose: time and width", [{"transpose": [2, 1]}, {"linear": 7}, "tanh", {"transpose": [2, 1]}])


def with_lengths(name, layers, mutants=()):
    words = {"embedding": {"vocabulary": 256, "width": 12}, "inputs": "tokens", "name": "words"}
    return Case(name, job([words, *layers, {"linear": 5}], TEXTS), list(mutants), validation=16)


def cases_of_lengths():
    ends = ["previous", "length"]
    mean, last = {"mean": {"axis": 1, "inputs": ends}}, {"last": {"inputs": ends}}
    yield with_lengths("mean: lengths", [{"linear": 12}, "tanh", mean], [{"model.layers.3.mean.inputs": ["previous"]}])
    yield with_lengths("max: lengths", [{"linear": 12}, "tanh", {"max": {"axis": 1, "inputs": ends}}])
    for causal in (True, False):
        yield with_lengths(f"attention: lengths{', causal' if causal else ''}",
                           [{"linear": 36}, {"attention": {"heads": 3, "causal": causal, "inputs": ends}}, mean])
    narrow = ({"linear": {"features": 4, "bias": False}, "inputs": "words", "name": name} for name in "kv")
    yield with_lengths("attention: lengths of keys, three inputs", [
        {"linear": 12, "name": "q"}, *narrow,
        {"attention": {"heads": 3, "kv_heads": 1, "causal": False, "inputs": ["q", "k", "v", "length"]}}, mean])
    yield with_lengths("last: lengths", [{"lstm": 9}, last], [{"model.layers.2.last.inputs": ["previous"]}])
    for op in ("lstm", "gru"):
        both = {op: {"features": 5, "bidirectional": True, "inputs": ends}}
        yield with_lengths(f"{op}: both directions, lengths", [both, mean],
                           [{f"model.layers.1.{op}.inputs": ["previous"]}])
    yield with_lengths("last: all", [{"gru": 9}, "last"])
    yield with_lengths("reverse: lengths", [{"reverse": {"inputs": ends}}, {"gru": 9}, last])
    yield with_lengths("reverse: all", ["reverse", {"gru": 9}, last])
    yield with_lengths("mask: lengths", [{"mask": {"inputs": ends}}, {"linear": 9}, "tanh", {"mean": {"axis": 1}}])
    yield with_lengths("mask: all", ["mask", {"linear": 9}, "tanh", mean])


def sequence_cases():
    yield text_case("embedding: text", [{"linear": 12}, "tanh"])
    yield Case("embedding: larger than the text needs",
               job([{"embedding": {"vocabulary": 20, "width": 9}}, {"linear": 11}], TEXT))
    yield text_case("position_embedding: text", ["position_embedding", "tanh"])
    yield text_case("position_embedding: longer", [{"position_embedding": 10}, "tanh"])
    yield text_case("position_embedding: same", [{"position_embedding": {"length": 2, "same": True}}, "tanh"])
    yield text_case("class_token: instead of the last", [{"class_token": {"std": 0.4}}, {"slice": {"axis": 1, "end": -1}}, "tanh"])
    path = "model.layers.2.attention."
    for causal in (True, False):
        yield text_case(f"attention: {'causal' if causal else 'everything seen'}",
                        [{"linear": 36}, {"attention": {"heads": 3, "causal": causal}}],
                        [{path + "causal": not causal}, {path + "heads": 2}])
    yield text_case("attention: one head", [{"linear": 36}, {"attention": 1}],
                    [{path + "causal": True}])
    query, key, value = ({"linear": {"features": 12, "bias": False}, "inputs": "embedding1", "name": n} for n in "qkv")
    for causal in (True, False):
        yield text_case(f"attention: three inputs, {'causal' if causal else 'everything seen'}",
                        [query, key, value, {"attention": {"heads": 2, "causal": causal, "inputs": ["q", "k", "v"]}}])
    more = [{"linear": {"features": 24, "bias": False}, "inputs": "embedding1"}, {"reshape": [14, 12], "name": "more"}]
    yield text_case("attention: more keys than queries",
                    [query, *more, {"attention": {"heads": 2, "causal": False, "inputs": ["q", "more", "more"]}}])
    yield text_case("attention: groups", [{"linear": 32}, {"attention": {"heads": 4, "kv_heads": 2, "causal": True}}],
                    [{path + "kv_heads": 1, path + "heads": 2}])
    narrow = ({"linear": {"features": 4, "bias": False}, "inputs": "embedding1", "name": name} for name in "kv")
    yield text_case("attention: one head of keys, three inputs",
                    [{"linear": {"features": 12, "bias": False}, "inputs": "embedding1", "name": "q"}, *narrow,
                     {"attention": {"heads": 3, "kv_heads": 1, "causal": True, "inputs": ["q", "k", "v"]}}])
    three = {"attention": {"heads": 2, "causal": True, "inputs": ["previous"] * 3}}
    yield text_case("rope: text", [{"linear": 16}, {"rope": 2}, three], [{"model.layers.2.rope": 4}])
    yield text_case("rope: base", [{"linear": 16}, {"rope": {"heads": 2, "base": 100.0}}, "tanh"],
                    [{"model.layers.2.rope.base": 101.0}])
    for op in ("lstm", "gru"):
        yield text_case(f"{op}: text", [{op: 14}])
        yield text_case(f"{op}: two layers", [{op: 9}, {op: 14}])
        yield text_case(f"{op}: no bias", [{op: {"features": 14, "bias": False}}])
        yield text_case(f"{op}: both directions", [{op: {"features": 7, "bidirectional": True}}])
    yield from cases_of_lengths()
    yield text_case("attention: large scores", [{"linear": 36}, {"scale": 5.0}, {"attention": {"heads": 2, "causal": True}}])
    long = {"tokens": 11, "context": 70, "samples": 16}
    yield text_case("attention: longer than a block", [{"linear": 36}, {"attention": {"heads": 2, "causal": True}}], data=long, batch_size=8)
    yield text_case("dropout: text", [{"dropout": 0.3}, {"linear": 20}, "tanh", {"dropout": 0.1}],
                    [{"model.layers.1.dropout": 0.301}, {"seed": 2}], steps=6)
    yield image_case("dropout: images", [CONV, {"dropout": 0.5}, "tanh", *HEAD])


CASES = [case for family in (conv_cases, conv_transpose_cases, pool_cases, norm_cases, activation_cases, linear_cases, joining_cases,
                             sequence_cases) for case in family()]
