"""The zoo's models, small if their size is configurable. Deep networks get small steps, so that rounding errors stay
small."""
from case import TEXTS, Case, job

DIGITS = {"images": [28, 28], "samples": 32, "classes": 10}
COLOUR = {"images": [8, 8, 3], "samples": 32, "classes": 10}
LARGE = {"images": [48, 48, 3], "samples": 16, "classes": 10}
TEXT = {"tokens": 13, "context": 12, "samples": 32}


def cases():
    yield Case("mlp: default", job("mlp", DIGITS))
    yield Case("mlp: two hidden layers", job({"mlp": [24, 16]}, DIGITS))
    yield Case("mlp: dropout", job({"mlp": {"hidden": [24], "dropout": 0.4}}, DIGITS), [{"model.mlp.dropout": 0.401}])
    yield Case("lenet", job("lenet", DIGITS), validation=16)
    for depth in (20, 32, 44, 56, 110):
        yield Case(f"resnet {depth}", job({"resnet": depth}, COLOUR, steps=2 if depth < 56 else 1, batch_size=8,
                                          micro_batches=1 if depth > 44 else 2, learning_rate=0.05),
                   validation=16 if depth == 20 else 0, deep=depth > 44)
    for depth in (18, 34, 50):
        yield Case(f"resnet {depth}", job({"resnet": depth}, LARGE, steps=1, batch_size=8, micro_batches=1,
                                          learning_rate=0.05), deep=True)
    for name, settings in (("small", {"width": 0.35, "small": True}), ("wide", {"width": 1.4, "small": True})):
        yield Case(f"mobilenet: {name}", job({"mobilenet": settings}, COLOUR, steps=1, batch_size=8, micro_batches=1,
                                             learning_rate=0.05), validation=16, deep=True)
    yield Case("mobilenet: large images", job({"mobilenet": {"width": 0.5}}, LARGE, steps=1, batch_size=8, micro_batches=1,
                                              learning_rate=0.05), deep=True)
    yield Case("mobilenet: dropout", job({"mobilenet": {"width": 0.35, "small": True, "dropout": 0.2}}, COLOUR, steps=1,
                                         batch_size=8, micro_batches=1, learning_rate=0.05),
               [{"model.mobilenet.dropout": 0.21}], deep=True)
    pairs, to_right = {"pairs": [[8, 8, 3], [8, 8, 3]], "samples": 32}, {"mean_squared_error": {}, "target": "right"}
    for name, settings in (("two levels", {"width": 6, "depth": 2}), ("one level", {"width": 8, "depth": 1})):
        yield Case(f"unet: {name}", job({"unet": settings | {"outputs": 3}, "inputs": "left"}, pairs, loss=to_right),
                   validation=16)
    to_image = {"mean_squared_error": {}, "target": "image"}
    for name, settings in (("three levels", {"width": 4, "depth": 3, "code": 7}), ("one level", {"depth": 1})):
        yield Case(f"autoencoder: {name}", job({"autoencoder": settings, "inputs": "image"}, COLOUR, loss=to_image),
                   validation=16)
    size = {"layers": 2, "heads": 3, "width": 24}
    yield Case("gpt: two blocks", job({"gpt": size}, TEXT, metrics=["perplexity"]), validation=16)
    yield Case("gpt: no biases, adamw",
               job({"gpt": size | {"bias": False}}, TEXT, optimizer={"adamw": {"epsilon": 1e-4}}, learning_rate=0.001,
                   clip_norm=1.0), [{"optimizer.adamw.beta2": 0.998}])
    yield Case("gpt: dropout", job({"gpt": size | {"dropout": 0.2}}, TEXT), [{"model.gpt.dropout": 0.201}])
    own = {"size": "small", "layers": 1, "heads": 2, "width": 16}
    yield Case("gpt: small, but for its sizes", job({"gpt": own}, TEXT))
    theirs = {"positions": 15, "hidden": 40, "epsilon": 0.01}
    yield Case("gpt: as GPT-2's settings may be", job({"gpt": size | theirs | {"gelu": "none"}}, TEXT),
               [{"model.gpt.epsilon": 0.0101}])
    yield Case("gpt: tiny, a vocabulary of its own", job({"gpt": {"size": "tiny", "vocabulary": 20}}, TEXT, steps=2))
    size = {"layers": 2, "heads": 3, "width": 24}
    yield Case("bert: two blocks", job({"bert": size}, TEXT), validation=16)
    yield Case("bert: dropout", job({"bert": size | {"size": "base", "dropout": 0.2}}, TEXT),
               [{"model.bert.dropout": 0.201}])
    yield Case("bert: as BERT's settings may be", job({"bert": size | theirs | {"types": 2}}, TEXT),
               [{"model.bert.epsilon": 0.0101}])
    yield Case("bert: tiny, a vocabulary of its own", job({"bert": {"vocabulary": 20}}, TEXT, steps=2))
    of_classes = size | {"head": "classes", "classes": 5, "vocabulary": 256, "dropout": 0.2}
    yield Case("bert: classes of texts of several lengths", job({"bert": of_classes}, TEXTS), validation=16)
    size = {"layers": 2, "heads": 4, "width": 24}
    yield Case("llama: two blocks", job({"llama": size | {"kv_heads": 2}}, TEXT, metrics=["perplexity"]), validation=16)
    own = size | {"size": "small", "hidden": 40, "rope_base": 100.0}
    yield Case("llama: every key a head", job({"llama": own}, TEXT), [{"model.llama.rope_base": 101.0}])
    yield Case("llama: tied", job({"llama": size | {"tied": True, "epsilon": 0.01}}, TEXT),
               [{"model.llama.epsilon": 0.0101}])
    yield Case("llama: tiny, a vocabulary of its own", job({"llama": {"vocabulary": 20}}, TEXT, steps=2))
    yield Case("lstm: language model", job({"lstm": {"layers": 2, "width": 24}}, TEXT, metrics=["perplexity"]), validation=16)
    yield Case("lstm: tied, dropout", job({"lstm": {"size": "small", "width": 16, "tied": True, "dropout": 0.2}}, TEXT),
               [{"model.lstm.dropout": 0.201}])
    yield Case("lstm: tiny, a vocabulary of its own", job({"lstm": {"vocabulary": 20}}, TEXT, steps=2))
    size = {"layers": 2, "heads": 3, "width": 24}
    yield Case("vit: two blocks", job({"vit": size}, DIGITS), validation=16)
    yield Case("vit: a class token", job({"vit": size | {"pool": "token", "hidden": 40, "epsilon": 0.01}}, DIGITS),
               [{"model.vit.epsilon": 0.0101}], validation=16)
    yield Case("vit: dropout, other patches", job({"vit": size | {"size": "base", "patch": 7, "dropout": 0.2}}, DIGITS),
               [{"model.vit.dropout": 0.201}])


CASES = list(cases())
