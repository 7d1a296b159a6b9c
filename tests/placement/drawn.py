"""Draws jobs, and ways to place them. A seed gives the same on every machine, with every version of Python."""
import dataclasses
import random

from ranks import Slow


class Draw:
    """Of all that `random` has, only random() is promised to stay the same."""
    def __init__(self, seed):
        self._random = random.Random(seed).random

    def chance(self, probability):
        return self._random() < probability

    def integer(self, low, high):
        return low + int(self._random() * (high - low + 1))

    def one(self, choices):
        return choices[int(self._random() * len(choices))]


@dataclasses.dataclass(frozen=True)
class Job:
    """`cuts`: layers or blocks that a part may end with."""
    text: dict
    cuts: tuple
    blocks: bool

    @property
    def micro_batches(self):
        return self.text["micro_batches"]

    @property
    def steps(self):
        return self.text["steps"]


OPTIMIZERS = ({"sgd": {"momentum": 0.9, "nesterov": True}}, {"sgd": {}}, {"adam": {}}, {"adamw": {"weight_decay": 0.1}},
              {"nadam": {}}, {"rmsprop": {"centered": True, "momentum": 0.5}}, {"lion": {}}, {"adagrad": {"initial": 0.1}},
              {"lamb": {}}, {"lars": {}}, {"muon": {"steps": 2}}, {"adafactor": {}})


def _images(draw, small):
    """Convolutions with batch norm, a residual addition, dropout and augmentation."""
    filters = draw.integer(3, 4 if small else 11)
    stride = 4 if small else draw.one((1, 2))
    norm = draw.one(("batch_norm", "batch_norm", {"group_norm": {"groups": 1}}, None))

    def convolution(name, width, **settings):
        layers = [{"conv": {"filters": width, "kernel": 3, "bias": norm is None, **settings}}]
        return [*layers, *([norm] if norm else []), {"relu": {}, "name": name}]

    layers = convolution("stem", filters, stride=stride)
    cuts = ["stem"]
    if draw.chance(0.7):
        layers += [*convolution("branch", filters), {"conv": {"filters": filters, "kernel": 3}},
                   {"add": {"inputs": ["previous", "stem"]}, "name": "sum"}]
        cuts += ["branch", "sum"]
    if draw.chance(0.6):
        layers += [{"max_pool": {"kernel": 2}}, *convolution("second", 2 * filters)]
        cuts.append("second")
    layers.append("flatten" if not small and draw.chance(0.7) else "global_pool")
    if draw.chance(0.5):
        layers += [{"linear": {"features": draw.integer(5, 67)}}, {"relu": {}, "name": "hidden"}]
        cuts.append("hidden")
    if draw.chance(0.5):
        layers.append({"dropout": 0.2})
    layers.append({"linear": {"features": 10}})
    count = draw.integer(60, 200) if small else draw.integer(200, 700)
    data = {"train": {"digits": {"count": count}},
            "validation": {"digits": {"count": draw.integer(5, 20) if small else draw.integer(20, 90), "first": 1000000}}}
    if draw.chance(0.6):
        data["augment"] = [{"crop": {"padding": 2}}, draw.one(("flip", {"cutout": 9}, {"rotate": 10}))]
    metrics = draw.one((["accuracy"], ["accuracy", "macro_f1"], ["top5"]))
    return {"model": {"layers": layers}, "data": data, "metrics": metrics}, tuple(cuts), False


def _text(draw, small):
    return {"train": {"text": {"path": "text.txt", "tokenizer": "characters", "context": 8 if small else draw.integer(9, 33)}},
            "validation": {"fraction": 0.01 if small else 0.02}}


def _gpt(draw, small):
    """Its head is tied to the embedding."""
    layers = draw.integer(1, 2 if small else 3)
    size = {"layers": layers, "heads": 2, "width": 16 if small else 8 * draw.integer(3, 12),
            "dropout": draw.one((0, 0.1)), "bias": draw.chance(0.7)}
    return ({"model": {"gpt": size}, "data": _text(draw, small), "metrics": ["perplexity"]},
            tuple(f"block{i + 1}" for i in range(layers)), True)


def _lstm(draw, small):
    layers = draw.integer(1, 2)
    size = {"layers": layers, "width": 16 if small else draw.integer(20, 70), "tied": draw.chance(0.5),
            "dropout": draw.one((0, 0.2))}
    return ({"model": {"lstm": size}, "data": _text(draw, small), "metrics": ["perplexity"]},
            tuple(f"lstm{i + 1}" for i in range(layers)), False)


def _table(draw, _small):
    layers = []
    for _ in range(draw.integer(1, 3)):
        layers += [{"linear": {"features": draw.integer(5, 70)}}, "relu"]
    return ({"model": {"layers": [*layers, {"linear": {"features": 1}}]}, "loss": "mean_squared_error",
             "metrics": ["mae", "rmse"], "data": {"train": {"table": {"path": "houses.csv", "target": "price"}},
                                                  "validation": {"fraction": 0.1}}}, (), False)


def _series(draw, _small):
    horizon = draw.one((1, 2, [3]))
    layer = draw.one(({"lstm": {"features": draw.integer(3, 20)}}, {"gru": {"features": draw.integer(3, 20)}}))
    outputs = horizon if isinstance(horizon, int) else 1
    table = {"path": "houses.csv", "target": "price", "window": draw.integer(1, 9), "horizon": horizon}
    return ({"model": {"layers": [layer, "flatten", {"linear": {"features": outputs}}]}, "loss": "huber",
             "metrics": ["mae", "rmse"], "data": {"train": {"table": table}, "validation": {"fraction": 0.1},
                                                  "normalize_target": draw.chance(0.5)}}, (), False)


def _wide(draw, small):
    """Few micro-batches' worth of work, and many chunks of gradient."""
    hidden = [draw.integer(30, 60) if small else draw.integer(100, 500) for _ in range(draw.integer(1, 3))]
    return ({"model": {"mlp": {"hidden": hidden}}, "data": {"train": {"digits": {"count": draw.integer(100, 600)}},
             "validation": {"digits": {"count": 30, "first": 1000000}}}, "metrics": ["accuracy"]}, (), False)


# Jobs whose sources have settings that choose, order or name samples. Their files: data_files.py.

def _rows(draw):
    table = {"path": "rows.csv", "target": "kind", "unknown": "ignore", "bad_samples": "skip", "categorical": ["zip"],
             "except": draw.one((["note"], ["note", "color"], ["n*", "w"]))}
    other = {"path": "more_rows.csv", "target": "kind", "unknown": "ignore", "bad_samples": "skip"}
    data = {"validation": draw.one(({"table": other}, {"fraction": 0.1, "stratify": True}, {"fold": "2 of 5"}))}
    if draw.chance(0.5):
        table["classes"] = ["b", "c", "a"]
    if draw.chance(0.4):
        data["class_weights"] = "balanced"
    elif "w" not in table["except"] and draw.chance(0.5):
        table["weight"] = "w"
    return {"model": {"mlp": {"hidden": [draw.integer(5, 40)]}}, "data": {"train": {"table": table}, **data},
            "metrics": ["accuracy", "macro_f1"]}


def _folders(draw):
    images = {"path": "shots", "class_folder": draw.one(("outermost", "innermost")), "bad_samples": "skip"}
    classes = {"outermost": ["bee", "ant"], "innermost": ["camera2", "camera0", "camera1"]}[images["class_folder"]]
    if draw.chance(0.6):
        images["classes"] = classes
    if draw.chance(0.3):
        images["count"] = 140
    data = {"train": {"images": images}, "prepare": [{"resize": [8, 8]}], "split_seed": draw.integer(1, 9),
            "validation": {"fraction": 0.1, "stratify": True}}
    if draw.chance(0.4):
        data["mix"] = {"mixup": 0.4}
    layers = [{"conv": {"filters": 3, "kernel": 3}}, "relu", "flatten", {"linear": {"features": len(classes)}}]
    return {"model": {"layers": layers}, "data": data, "metrics": ["accuracy"]}


def _masks(draw):
    masks = {"mask": "mask", "classes": ["ground", "thing"],
             **draw.one(({"path": "black.csv", "values": [0, 255]}, {"path": "void.csv", "ignored": 9}))}
    layers = [{"conv": {"filters": 4, "kernel": 3}}, "relu", {"conv": {"filters": 2, "kernel": 1}}]
    return {"model": {"layers": layers}, "metrics": ["mean_iou"], "loss": {"cross_entropy": {}, "target": "mask"},
            "data": {"train": {"csv": masks}, "validation": {"fraction": 0.1},
                     "augment": draw.one(([], ["flip"], [{"rotate": 10}]))}}


def _texts(draw):
    texts = {"path": "texts.csv", "context": draw.integer(6, 30),
             "classes": draw.one((["true", "false"], ["false", "true"]))}
    layers = [{"embedding": {"vocabulary": 256, "width": 8, "inputs": "tokens"}},
              {"global_pool": {"inputs": ["previous", "length"]}}, {"linear": {"features": 2}}]
    validation = draw.one(({"fraction": 0.1}, {"texts": "more_texts.csv"}))
    return {"model": {"layers": layers}, "data": {"train": {"texts": texts}, "validation": validation},
            "metrics": ["accuracy"]}


def _masked(draw):
    text = {"path": "text.txt", "context": draw.integer(8, 20), "masked": 0.2, "masked_span": draw.one((1, 3)),
            **draw.one(({}, {"mask_token": 5}))}
    return {"model": {"bert": {"layers": 1, "heads": 2, "width": 16}}, "metrics": [],
            "data": {"train": {"text": text}, "validation": draw.one(({"fraction": 0.02}, {"text": {"path": "more_text.txt",
                     "masked": 0.2}}))},
            "loss": {"cross_entropy": {"ignored_index": -100}}}


def _tokens(draw):
    tokens = {"path": "tokens.bin", "dtype": draw.one(("uint32", "int32")), "context": draw.integer(5, 17)}
    return {"model": {"gpt": {"layers": 1, "heads": 2, "width": 16, "vocabulary": 60}}, "metrics": ["perplexity"],
            "data": {"train": {"tokens": tokens}, "validation": draw.one(({"fraction": 0.1}, {"tokens": {
                     "path": "more_tokens.bin", "dtype": tokens["dtype"]}}))}}


def _learning_rate(draw, evaluates):
    schedules = ["constant", "cosine", {"cosine_restarts": {"first": "3 steps"}}, "one_cycle", "wsd",
                 {"exponential": {"factor": 0.9, "every": "1 step"}}]
    if evaluates:
        schedules += 2 * [{"plateau": {"metric": "loss", "patience": 1, "factor": 0.5, "min_delta": 0.5}}]
    return {"peak": draw.one((0.0003, 0.003)), "schedule": draw.one(schedules), "warmup": f"{draw.integer(0, 2)} steps"}


def _optimizer(draw):
    optimizer = dict(draw.one(OPTIMIZERS))
    if draw.chance(0.4):
        optimizer["average"] = draw.one((0.5, "mean", {"decay": 0.9, "start": "1 step", "every": "2 steps", "evaluate": False}))
    if draw.chance(0.4):
        optimizer["groups"] = [{"match": ["*weight*"] if draw.chance(0.5) else ["*bias*", "*1.*"], "rate": 0.5,
                                **draw.one(({}, {"weight_decay": 0}, {"freeze_until": "2 steps"}))}]
    return optimizer


def draw_job(seed, on_gpus=False):
    """All that a result depends on. Interpreted GPUs want small ones."""
    draw = Draw(f"{seed}")
    text, cuts, blocks = draw.one((_images, _images, _gpt, _gpt, _lstm, _table, _series, _wide))(draw, on_gpus)
    sources = Draw(f"sources {seed}")  # of its own: what else is drawn stays the same
    if not on_gpus and sources.chance(0.4):
        text, cuts, blocks = sources.one((_rows, _folders, _masks, _texts, _masked, _tokens))(sources), (), False
        text["data"]["cache"] = sources.one(("memory", "memory", "none"))
    micro_batches = draw.one((4, 6)) if on_gpus else draw.one((1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 12, 13, 16, 24))
    text |= {"seed": draw.integer(0, 999), "micro_batches": micro_batches,
             "batch_size": micro_batches * draw.integer(1, 2 if on_gpus or micro_batches > 12 else 4),
             "steps": draw.integer(2, 3) if on_gpus else draw.integer(3, 9), "optimizer": _optimizer(draw)}
    if not text["model"].get("gpt", {}).get("bias", True):
        for group in text["optimizer"].get("groups", ()):
            group["match"] = [pattern.replace("*bias*", "*norm*") for pattern in group["match"]]
    if text["batch_size"] == micro_batches:
        text["data"].pop("mix", None)  # a sample is mixed with another of its micro-batch
    evaluates = draw.chance(0.3 if on_gpus else 0.7)
    text["evaluate"] = {"every": f"{draw.integer(1, 3)} steps"} if evaluates else "never"
    text["learning_rate"] = _learning_rate(draw, evaluates)
    if evaluates and draw.chance(0.25):
        text["early_stop"] = {"metric": "loss", "patience": draw.integer(1, 2), "min_delta": draw.one((0, 0.5))}
    if draw.chance(0.6):
        text["clip_norm"] = draw.one((0.05, 0.5, 100))
    precision = draw.one(("fp32", "fp32", "bf16", {"fp16": {"initial_scale": 16777216, "growth_interval": 2}}))
    text |= {"precision": precision, "checkpoint": {"every": "1000 steps"}}
    if on_gpus:
        text["device"] = "cuda"
    more = Draw(f"steps {seed}")
    if not on_gpus and more.chance(0.15):
        text["steps"] = more.integer(50, 100)
    return Job(text, cuts, blocks)


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where and how a job, or some of its steps, is computed. `speeds`: what `balance: auto` believes at the start of a
    run that is resumed, seconds a micro-batch of each rank."""
    hosts: tuple
    words: tuple
    threads: int
    slow: Slow | None = None
    speeds: tuple = ()

    def __str__(self):
        parts = [f"{len(self.hosts)} ranks on {' '.join(self.hosts)}:", *(f"'{word}'" for word in self.words)]
        if self.slow:
            parts.append(f"(rank {self.slow.rank} runs {self.slow.runs} s and stops {self.slow.stops} s in turn)")
        if self.speeds:
            parts.append(f"(resumed with the speeds {self.speeds})")
        return " ".join(parts)


def _hosts(draw, ranks):
    count = draw.integer(1, ranks)
    if draw.chance(0.2):
        return tuple(f"h{draw.integer(0, count - 1)}" for _ in range(ranks))
    return tuple(f"h{rank * count // ranks}" for rank in range(ranks))


def _parts(draw, job, ranks):
    """A number, or a list with uneven cuts and numbers of ranks."""
    if not job.cuts or ranks == 1 or draw.chance(0.7):
        return draw.one((1, 1, 1, 2, 3))
    ends = sorted({draw.integer(0, len(job.cuts) - 1) for _ in range(min(2, ranks - 1))})
    parts = [{"until": job.cuts[end]} for end in ends] + [{}]
    if draw.chance(0.7):
        counts = [1] * len(parts)
        for _ in range(ranks - len(parts)):
            counts[draw.integer(0, len(parts) - 1)] += 1
        for part, own in zip(parts, counts):
            part["ranks"] = own
    return parts


def _telemetry(draw):
    """What is written of a run, or nothing of it."""
    if draw.chance(0.7):
        return ()
    every = draw.one(("1 step", "2 steps", "1 epoch"))
    return (f"telemetry={flow({'every': every, 'tensorboard': {'histograms': draw.one(('1 step', '3 steps'))}})}",)


def draw_placement(draw, job, on_gpus=False, resumed=False):
    ranks = min(job.micro_batches, draw.integer(1, 3) if on_gpus else draw.one((1, 2, 2, 3, 3, 4, 4)))
    hosts = _hosts(draw, ranks)
    share = -(-job.micro_batches // ranks)
    threads = draw.one((1, 2)) if on_gpus else min(8, draw.one((1, 1, 2, 3, 4, share, share + 1)))
    balance = draw.one(("auto", "auto", "equal", "equal", "weights"))
    if balance == "weights":
        balance = {"weights": {host: draw.integer(1, 4) for host in sorted(set(hosts))}}
    parallel = {"parts": _parts(draw, job, ranks), "sharding": draw.one(("none", "optimizer", "gradients", "parameters")),
                "in_flight": draw.one(("auto", "auto", 1, 2, 5))}
    recompute = draw.one(("never", "never", "cheap", "blocks" if job.blocks else "cheap"))
    bucket = draw.one((2048, 8192, 32768, 1048576))
    slow = None
    if ranks > 1 and draw.chance(0.25):
        slow = Slow(draw.integer(0, ranks - 1), draw.one((0.01, 0.02)), draw.one((0.02, 0.05)))
    speeds = ()
    if resumed and balance == "auto" and draw.chance(0.6):
        speeds = tuple(draw.one((0.01, 0.01, 0.03, 0.2)) for _ in hosts)
    words = (f"threads={threads}", f"balance={flow(balance)}", f"parallel={flow(parallel)}", f"recompute={recompute}",
             f"bucket_bytes={bucket}")
    return Placement(hosts, words, threads, slow, speeds)


def draw_way(seed, number, job, on_gpus=False):
    """Placements, and the steps that the run is stopped at before it goes on with the next: every third way has some."""
    draw = Draw(f"{seed} {number}")
    stops = []
    if number % 3 == 2:
        stops = sorted({draw.integer(1, job.steps - 1) for _ in range(1 if on_gpus else 2)})
    legs = [(draw_placement(draw, job, on_gpus, resumed=leg > 0), stop) for leg, stop in enumerate([*stops, None])]
    shown = _telemetry(Draw(f"telemetry {seed} {number}"))  # of its own: what is drawn above stays the same
    return [(dataclasses.replace(placement, words=(*placement.words, *shown)), stop) for placement, stop in legs]


def flow(value):
    """YAML's flow style, as people write it on a command line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
