"""Losses, optimizers, schedules, clipping, precisions, and what may happen during a run."""
from case import IMAGES, PAIRS, TEXT, Case, job

MLP = ["flatten", {"linear": 12}, "tanh", {"linear": 5}]
WORDS = [{"embedding": {"vocabulary": 11, "width": 12}}, {"linear": 20}, "tanh", {"linear": 11}]
NORMED = [{"conv": {"filters": 6, "kernel": 3, "bias": False}}, "batch_norm", "relu", {"max_pool": 2}, "flatten",
          {"linear": 5}]


def loss_cases():
    def of(name, layers, data, loss, mutants=(), **others):
        return Case(f"loss: {name}", job(layers, data, loss=loss, **others), list(mutants), validation=16)

    yield of("cross_entropy, metrics", MLP, IMAGES | {"classes": 5}, "cross_entropy", [{"seed": 4}],
             metrics=["accuracy", "top5", "perplexity", "macro_precision", "macro_recall", "macro_f1", "mean_iou"])
    yield of("cross_entropy of seven classes, metrics", [*MLP[:-1], {"linear": 7}], IMAGES | {"classes": 7},
             "cross_entropy", metrics=["accuracy", "top2", "top3", "top5"])
    smooth = "loss.cross_entropy.label_smoothing"
    yield of("label smoothing", MLP, IMAGES, {"cross_entropy": {"label_smoothing": 0.1}}, [{smooth: 0.1001}])
    yield of("label smoothing of 1", MLP, IMAGES, {"cross_entropy": {"label_smoothing": 1.0}})
    ignored = "loss.cross_entropy.ignored_index"
    yield of("an ignored label", MLP, IMAGES, {"cross_entropy": {"ignored_index": 3}}, [{ignored: 2}, {ignored: -1}],
             metrics=["accuracy", "perplexity", "macro_f1", "mean_iou"])
    yield of("ignored tokens, smoothing", WORDS, TEXT,
             {"cross_entropy": {"ignored_index": 4, "label_smoothing": 0.2}}, [{ignored: 5}, {smooth: 0.2002}])
    yield of("tokens", WORDS, TEXT, "cross_entropy", metrics=["accuracy", "perplexity"])
    soft = [{"conv": {"filters": 8, "kernel": 3}}, "tanh", {"conv": {"filters": 3, "kernel": 1}}]
    for amount in (0.0, 0.15):
        entry = {"cross_entropy": {"label_smoothing": amount}, "target": "right"}
        model = {"layers": soft, "inputs": "left"}
        yield of(f"soft targets, smoothing {amount}", model, PAIRS, entry, [{smooth: amount + 2e-4}])
    yield of("mean_squared_error", {"layers": soft, "inputs": "left"}, PAIRS,
             {"mean_squared_error": {}, "target": "right"}, [{"convention.gradient": 1.0001}])
    model = {"layers": soft, "inputs": "left"}
    focal = "loss.cross_entropy.focal"
    yield of("focal", MLP, IMAGES, {"cross_entropy": {"focal": 2.0}}, [{focal: 2.002}], metrics=["accuracy"])
    yield of("focal below 1, ignored tokens, smoothing", WORDS, TEXT,
             {"cross_entropy": {"focal": 0.5, "ignored_index": 4, "label_smoothing": 0.2}}, [{focal: 0.501}])
    yield of("focal, soft targets", model, PAIRS, {"cross_entropy": {"focal": 1.5}, "target": "right"},
             [{focal: 1.502}])
    yield of("kl_divergence", model, PAIRS, {"kl_divergence": {}, "target": "right"}, [{"convention.gradient": 1.0001}])
    yield of("binary focal", model, PAIRS, {"binary_cross_entropy": {"focal": 2.0}, "target": "right"},
             [{"loss.binary_cross_entropy.focal": 2.002}])
    yield of("binary focal of labels", [*MLP[:-1], {"linear": 1}], IMAGES | {"classes": 2},
             {"binary_cross_entropy": {"focal": 1.0, "positive_weight": 3.0, "label_smoothing": 0.1}},
             [{"loss.binary_cross_entropy.focal": 1.001}])
    yield of("mean_absolute_error", model, PAIRS, {"mean_absolute_error": {}, "target": "right"},
             [{"convention.gradient": 1.0001}], metrics=["mae", "rmse", "r2"])
    for delta in (1.0, 0.2):
        yield of(f"huber, delta {delta}", model, PAIRS, {"huber": delta, "target": "right"},
                 [{"loss.huber": delta * 0.5}], metrics=["rmse"])
    # Of micro-batches, so not on a whole validation set.
    yield Case("loss: contrastive", job([*MLP[:-1], {"linear": 12}], IMAGES | {"classes": 5},
                                        loss={"contrastive": {"temperature": 0.3}}),
               [{"loss.contrastive.temperature": 0.3003}])
    yield of("triplet", [*MLP[:-1], {"linear": 12}], IMAGES | {"classes": 5}, {"triplet": {"margin": 0.7}},
             [{"loss.triplet.margin": 0.7007}])
    yield of("binary_cross_entropy", model, PAIRS, {"binary_cross_entropy": {}, "target": "right"},
             [{"loss.binary_cross_entropy.label_smoothing": 1e-4}],
             metrics=["binary_accuracy", "precision", "recall", "f1", "iou", "mae"])
    settings = {"positive_weight": 2.5, "label_smoothing": 0.1}
    yield of("binary_cross_entropy of labels", [*MLP[:-1], {"linear": 1}], IMAGES | {"classes": 2},
             {"binary_cross_entropy": settings}, [{"loss.binary_cross_entropy.positive_weight": 2.501},
                                                  {"loss.binary_cross_entropy.label_smoothing": 0.1001}],
             metrics=["auc", "binary_accuracy", "precision", "recall", "f1"])
    yield of("binary_cross_entropy of large logits", [*MLP[:-1], {"linear": 1}, {"scale": 30.0}],
             IMAGES | {"classes": 2}, "binary_cross_entropy", [{"model.layers.4.scale": 30.01}], learning_rate=1e-4)
    yield of("one class", [*MLP[:-1], {"linear": 1}], IMAGES | {"classes": 1}, "cross_entropy", learning_rate=0.1,
             metrics=["accuracy"])
    yield of("large logits and smoothing", [*MLP, {"scale": 100.0}], IMAGES, {"cross_entropy": {"label_smoothing": 0.1}},
             [{smooth: 0.1001}], learning_rate=1e-6)
    yield of("large logits", [*MLP, {"scale": 300.0}], IMAGES, "cross_entropy", [{"model.layers.4.scale": 300.1}],
             learning_rate=1e-6)


def optimizer_cases():
    def of(name, kind, settings, *mutants, layers=NORMED, rate=None, **others):
        rate = rate or (0.1 if kind == "sgd" else 0.01)
        own = [{f"optimizer.{kind}.{key}": value} for key, value in (m for m in mutants if isinstance(m, tuple))]
        return Case(f"{kind}: {name}", job(layers, optimizer={kind: settings}, learning_rate=rate, steps=6, **others),
                    own + [m for m in mutants if isinstance(m, dict)])

    yield of("plain", "sgd", {}, {"learning_rate": 0.1001})
    yield of("momentum", "sgd", {"momentum": 0.9}, ("momentum", 0.9002), {"convention.dampening": 1e-3})
    yield of("nesterov", "sgd", {"momentum": 0.9, "nesterov": True}, ("nesterov", False), ("momentum", 0.9002))
    yield of("decay", "sgd", {"weight_decay": 0.05}, ("weight_decay", 0.0501), {"convention.bias_decays": True})
    yield of("decay of everything", "sgd", {"weight_decay": 0.05, "decay_all": True}, ("decay_all", False))
    yield of("nesterov and decay", "sgd", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.01},
             ("weight_decay", 0.0101), {"convention.bias_decays": True})
    for kind in ("adam", "adamw"):
        yield of("plain", kind, {"weight_decay": 0.0}, ("beta1", 0.8998), ("beta2", 0.998), ("epsilon", 1e-6))
        yield of("betas", kind, {"beta1": 0.8, "beta2": 0.95}, ("beta1", 0.8002), ("beta2", 0.9502))
        yield of("beta2 near 1", kind, {"beta2": 0.9999}, ("beta2", 0.99991))
        yield of("betas of 0", kind, {"beta1": 0.0, "beta2": 0.0, "epsilon": 0.01}, ("epsilon", 0.01002))
        yield of("epsilon", kind, {"epsilon": 0.001}, ("epsilon", 0.001002))
        yield of("decay", kind, {"weight_decay": 0.1}, ("weight_decay", 0.1002), {"convention.bias_decays": True})
        yield of("decay of everything", kind, {"weight_decay": 0.1, "decay_all": True}, ("decay_all", False))
        yield of("of text", kind, {"weight_decay": 0.1, "epsilon": 1e-6}, layers=WORDS, data=TEXT)
    yield of("decay by default", "adamw", {}, ("weight_decay", 0.0102))
    yield of("plain", "nadam", {}, ("beta1", 0.8998), ("beta2", 0.998), ("momentum_decay", 0.0042))
    yield of("everything", "nadam", {"beta1": 0.8, "beta2": 0.95, "epsilon": 0.001, "momentum_decay": 0.1,
                                     "weight_decay": 0.1, "decay_all": True},
             ("beta1", 0.8002), ("epsilon", 0.001002), ("momentum_decay", 0.1005), ("decay_all", False))
    for name, own, *mutants in (("plain", {}, ("alpha", 0.9899), ("epsilon", 1e-5)),
                                ("momentum", {"momentum": 0.9}, ("momentum", 0.9002)),
                                ("centered", {"centered": True, "alpha": 0.9}, ("alpha", 0.9002)),
                                ("centered, momentum", {"centered": True, "momentum": 0.8, "epsilon": 0.01},
                                 ("epsilon", 0.01002), ("momentum", 0.8002))):
        yield of(name, "rmsprop", own, *mutants)
    yield of("decay", "rmsprop", {"weight_decay": 0.1}, ("weight_decay", 0.1002), {"convention.bias_decays": True})
    yield of("decay of everything", "rmsprop", {"weight_decay": 0.1, "decay_all": True}, ("decay_all", False))
    yield of("plain", "lion", {}, {"learning_rate": 0.00101}, rate=0.001)
    yield of("betas", "lion", {"beta1": 0.8, "beta2": 0.95}, ("beta1", 0.7), ("beta2", 0.9502), rate=0.001)
    yield of("decay", "lion", {"weight_decay": 0.5}, ("weight_decay", 0.501), {"convention.bias_decays": True},
             rate=0.001)
    yield of("decay of everything", "lion", {"weight_decay": 0.5, "decay_all": True}, ("decay_all", False), rate=0.001)
    yield of("plain", "lamb", {}, ("weight_decay", 0.0102), ("epsilon", 1e-4), {"convention.bias_decays": True})
    yield of("betas", "lamb", {"beta1": 0.8, "beta2": 0.95, "epsilon": 0.001}, ("beta1", 0.8002), ("beta2", 0.9502))
    yield of("decay of everything", "lamb", {"weight_decay": 0.1, "decay_all": True}, ("decay_all", False))
    yield of("plain", "lars", {}, ("momentum", 0.9002), ("trust", 0.001001), {"convention.bias_decays": True}, rate=1)
    yield of("decay", "lars", {"momentum": 0.0, "trust": 0.01, "weight_decay": 0.1}, ("weight_decay", 0.1002), rate=1)
    yield of("decay of everything", "lars", {"weight_decay": 0.1, "decay_all": True}, ("decay_all", False), rate=1)
    yield of("plain", "muon", {}, ("momentum", 0.951), ("nesterov", False), ("steps", 4), ("weight_decay", 0.101))
    yield of("momentum", "muon", {"momentum": 0.8, "nesterov": False, "steps": 3, "beta1": 0.8, "beta2": 0.95,
                                  "epsilon": 0.01}, ("momentum", 0.801), ("epsilon", 0.0101), ("beta1", 0.8002))
    yield of("decay of everything", "muon", {"weight_decay": 0.3, "decay_all": True}, ("decay_all", False))
    yield of("of text", "muon", {}, layers=WORDS, data=TEXT)
    yield of("plain", "adafactor", {}, ("beta2_decay", -0.79), ("clip_threshold", 0.9), {"learning_rate": 0.01005})
    yield of("everything", "adafactor", {"beta2_decay": -0.5, "clip_threshold": 0.7, "epsilon1": 0.01, "epsilon2": 0.5,
                                         "weight_decay": 0.1},
             ("epsilon1", 0.0102), ("epsilon2", 0.501), ("weight_decay", 0.101), {"convention.bias_decays": True})
    yield of("decay of everything", "adafactor", {"weight_decay": 0.3, "decay_all": True}, ("decay_all", False))
    yield of("of text", "adafactor", {}, layers=WORDS, data=TEXT)
    yield of("plain", "adagrad", {}, ("initial", 0.001), ("epsilon", 1e-4))
    yield of("initial", "adagrad", {"initial": 0.1, "epsilon": 0.01}, ("initial", 0.1002), ("epsilon", 0.01002))
    yield of("decay", "adagrad", {"weight_decay": 0.1}, ("weight_decay", 0.1002), {"convention.bias_decays": True})
    yield of("decay of everything", "adagrad", {"weight_decay": 0.1, "decay_all": True}, ("decay_all", False))


def group_cases():
    groups = [{"match": ["conv1.*", "batch_norm1.bias"], "rate": 3, "weight_decay": 0.2}, {"match": ["*.bias"], "rate": 0.5},
              {"match": ["batch_norm1.weight"], "weight_decay": 0.3}]
    for kind, settings in (("sgd", {"momentum": 0.9, "weight_decay": 0.05}), ("adamw", {"weight_decay": 0.1})):
        optimizer = {kind: settings, "groups": groups}
        yield Case(f"groups of parameters, {kind}",
                   job(NORMED, optimizer=optimizer, steps=6, learning_rate={"peak": 0.01, "schedule": "linear"}),
                   [{"optimizer.groups.0.rate": 3.01}, {"optimizer.groups.0.weight_decay": 0.21},
                    {"optimizer.groups.1.rate": 0.502}])
    groups = [{"match": ["conv1.*"], "freeze_until": "3 steps"}, {"match": ["batch_norm1.*"], "rate": 2, "freeze_until": "1 step"}]
    for kind in ("sgd", "adamw", "nadam", "lamb", "muon", "adafactor"):
        momentum = {"momentum": 0.9} if kind == "sgd" else {}
        yield Case(f"groups that are frozen for a while, {kind}",
                   job(NORMED, optimizer={kind: {"weight_decay": 0.1} | momentum, "groups": groups}, steps=6,
                       clip_norm=0.5, learning_rate={"peak": 0.01, "schedule": "linear"}),
                   [{"optimizer.groups.0.freeze_until": "4 steps"}, {"optimizer.groups.1.freeze_until": "2 steps"}])


def plateau_cases():
    """With a min_delta that no evaluation reaches, so that no rounding decides, or with none."""
    def of(name, plateau, *mutants, **rate):
        changed = [{"learning_rate.schedule": {"plateau": plateau | other}} for other in mutants]
        rate = {"peak": 0.2, "schedule": {"plateau": plateau}} | rate
        return Case(f"schedule: plateau{name}", job(MLP, steps=8, learning_rate=rate, metrics=["accuracy"]), changed,
                    validation=16, evaluate=1)

    falling = {"factor": 0.5, "patience": 2, "min_delta": 100}
    yield of("", falling, {"factor": 0.501}, {"patience": 3})
    cooling = falling | {"patience": 1, "cooldown": 1, "min_rate": 0.06}
    yield of(", cool-down, lowest rate, warm-up", cooling, {"cooldown": 0}, {"min_rate": 0.0601}, warmup="2 steps")
    yield of(" of accuracy", falling | {"metric": "accuracy"}, {"patience": 1})
    yield of(", not reached", {"min_delta": 0, "patience": 1}, {"min_delta": 100}, peak=0.02)


def schedule_cases():
    def of(name, rate, *mutants, steps=8, **others):
        changed = [{f"learning_rate.{path}": value} for path, value in mutants]
        return Case(f"schedule: {name}", job(MLP, steps=steps, learning_rate={"peak": 0.2} | rate, **others), changed)

    yield of("constant with warm-up", {"warmup": "3 steps"}, ("warmup", "4 steps"))
    yield of("warm-up of one step", {"warmup": "1 steps", "schedule": "cosine"})
    yield of("linear", {"schedule": "linear"}, ("schedule", "cosine"))
    yield of("linear to a rate, warm-up", {"warmup": "1 epoch", "schedule": {"linear": {"final": 0.05}}},
             ("schedule", {"linear": {"final": 0.0501}}))
    yield of("cosine", {"schedule": "cosine"}, ("schedule", "linear"))
    yield of("cosine to a rate, warm-up", {"warmup": "0.75 epochs", "schedule": {"cosine": {"final": 0.02}}},
             ("schedule", {"cosine": {"final": 0.0201}}))
    yield of("steps", {"schedule": {"steps": {"milestones": ["2 steps", "3 epochs"], "factor": 0.3}}},
             ("schedule", {"steps": {"milestones": ["3 steps", "3 epochs"], "factor": 0.3}}))
    yield of("steps, warm-up", {"warmup": "2 steps", "schedule": {"steps": {"milestones": ["4 steps", "6 steps"]}}},
             ("schedule", {"steps": {"milestones": ["4 steps", "6 steps"], "factor": 0.1001}}))
    yield of("exponential", {"schedule": {"exponential": {"factor": 0.5}}}, ("schedule", {"exponential": 0.5001}))
    stairs = {"factor": 0.3, "every": "3 steps", "staircase": True}
    yield of("exponential in stairs, warm-up", {"warmup": "2 steps", "schedule": {"exponential": stairs}},
             ("schedule", {"exponential": stairs | {"every": "2 steps"}}))
    yield of("polynomial", {"schedule": {"polynomial": 2}}, ("schedule", {"polynomial": 2.001}))
    to = {"power": 0.5, "final": 0.05}
    yield of("polynomial to a rate, warm-up", {"warmup": "2 steps", "schedule": {"polynomial": to}},
             ("schedule", {"polynomial": to | {"final": 0.0501}}))
    yield of("one cycle", {"schedule": "one_cycle"}, ("schedule", {"one_cycle": {"rise": 0.301}}), steps=12)
    cycle = {"rise": 0.4, "start_divisor": 10, "final_divisor": 20, "anneal": "linear"}
    yield of("one cycle, settings", {"schedule": {"one_cycle": cycle}},
             ("schedule", {"one_cycle": cycle | {"start_divisor": 10.1}}),
             ("schedule", {"one_cycle": cycle | {"final_divisor": 20.1}}), steps=12)
    yield of("one cycle of two steps", {"schedule": "one_cycle"}, steps=2)
    yield of("cosine restarts", {"schedule": {"cosine_restarts": "3 steps"}},
             ("schedule", {"cosine_restarts": "4 steps"}))
    growing = {"first": "0.5 epochs", "growth": 2, "final": 0.02}
    yield of("cosine restarts, growing", {"warmup": "1 steps", "schedule": {"cosine_restarts": growing}},
             ("schedule", {"cosine_restarts": growing | {"growth": 3}}),
             ("schedule", {"cosine_restarts": growing | {"final": 0.0201}}))
    yield of("wsd", {"warmup": "2 steps", "schedule": {"wsd": {"decay": 0.6}}}, ("schedule", {"wsd": {"decay": 0.601}}))
    for form in ("cosine", "sqrt"):
        fall = {"decay": 0.7, "form": form, "final": 0.02}
        yield of(f"wsd, {form}", {"schedule": {"wsd": fall}}, ("schedule", {"wsd": fall | {"final": 0.0201}}),
                 ("schedule", {"wsd": fall | {"form": "linear"}}))
    yield from plateau_cases()
    yield of("reference batch", {"peak": 0.1, "reference_batch": 24, "schedule": "cosine"}, ("reference_batch", 23))
    yield of("adamw along a cosine", {"peak": 0.01, "warmup": "2 steps", "schedule": "cosine"},
             ("peak", 0.01002), optimizer="adamw")


def clip_cases():
    for norm in (0.05, 1.0):
        yield Case(f"clipping at {norm}", job(MLP, steps=6, clip_norm=norm, optimizer={"sgd": {"momentum": 0.9}}),
                   [{"clip_norm": norm * 1.0002}, {"convention.clip_by": 1.0}])
    yield Case("clipping, adamw", job(NORMED, steps=6, clip_norm=0.1, optimizer={"adamw": {"epsilon": 0.01}},
                                      learning_rate=0.01), [{"clip_norm": 0.1001}])
    yield Case("no clipping", {key: value for key, value in job(MLP).items() if key != "clip_norm"})


def run_cases():
    yield Case("two ranks", job(NORMED, micro_batches=4, steps=6, optimizer={"adamw": {}}, learning_rate=0.01), validation=16,
               ranks=2)
    yield Case("resumed in the middle", job([*NORMED[:-1], {"dropout": 0.2}, NORMED[-1]], steps=6, optimizer={
        "sgd": {"momentum": 0.9}}, learning_rate={"peak": 0.1, "schedule": "cosine"}), validation=16, stop_at=3)
    yield Case("two ranks, resumed, adam", job(NORMED, micro_batches=4, steps=6, optimizer="adam", learning_rate=0.01),
               ranks=2, stop_at=4)
    frozen = {"layers": NORMED, "freeze": ["conv1.*", "batch_norm1.bias"]}
    yield Case("frozen layers", job(frozen, optimizer={"sgd": {"momentum": 0.9, "weight_decay": 0.1}}),
               [{"model.freeze": ["conv1.*"]}])
    yield Case("recomputation", job(NORMED, recompute="cheap"))
    block = [{**(layer if isinstance(layer, dict) else {layer: {}}), "block": "most"} for layer in NORMED[:-1]]
    yield Case("recomputation of a block", job([*block, NORMED[-1]], recompute="blocks"))
    yield Case("eight micro-batches of two samples", job(MLP, micro_batches=8))
    yield Case("a batch of everything", job(MLP, batch_size=32, micro_batches=4, steps=3))
    for name, normalize in (("auto", "auto"),
                            ("given", {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.25, 0.3]})):
        yield Case(f"normalised, {name}", job(MLP), normalize=normalize, validation=16)


def precision_cases():
    for precision in ("bf16", "fp16"):
        def of(name, layers, data=IMAGES, mutants=(), precision=precision, **others):
            return Case(f"{precision}: {name}", job(layers, data, **({"precision": precision} | others)), list(mutants))

        yield of("mlp", MLP, mutants=[{"learning_rate": 0.11}])
        yield of("conv, batch norm", NORMED, mutants=[{"learning_rate": 0.13}])
        yield of("attention", [WORDS[0], "position_embedding", "layer_norm", {"linear": 36}, {"attention": {"heads": 3, "causal": True}},
                               {"linear": 12}, "gelu", {"linear": 11}], TEXT, mutants=[{"learning_rate": 0.11}])
        # Sizes that oneDNN multiplies in bf16 natively, if the processor can.
        yield of("wide linear layers", ["flatten", {"linear": 256}, "gelu", {"linear": 256}, "tanh", {"linear": 5}],
                 {"images": [16, 16, 3], "samples": 128}, batch_size=64)
        yield of("wide conv layers", [{"conv": {"filters": 32, "kernel": 3}}, "tanh", {"conv": {
            "filters": 64, "kernel": 3, "stride": 2}}, "tanh", {"global_pool": "average"}, {"linear": 5}],
                 {"images": [16, 16, 3], "samples": 32})
        yield of("adamw", MLP, optimizer={"adamw": {"epsilon": 0.01}}, learning_rate=0.01)
    fixed = {"fp16": {"loss_scale": 1024}}
    yield Case("fp16: a scale that stays", job(MLP, precision=fixed))
    high = {"fp16": {"initial_scale": 262144, "growth_interval": 2}}
    yield Case("fp16: skipped updates", job([*MLP[:-1], {"linear": 5}, {"scale": 30.0}], precision=high, steps=10,
                                             learning_rate=0.001, optimizer={"adam": {"epsilon": 0.01}}))


CASES = [case for family in (loss_cases, optimizer_cases, group_cases, schedule_cases, clip_cases, run_cases, precision_cases)
         for case in family()]
