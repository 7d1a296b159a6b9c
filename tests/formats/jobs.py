"""Small jobs, of every model of the zoo and every op that can be exported."""


def image_job(model, count=64, steps=2, **more):
    return {"model": model, "data": {"train": {"digits": {"count": count}}, "validation": {"digits": {"count": 32,
            "first": 1000000}}}, "batch_size": 16, "micro_batches": 1, "steps": steps, "seed": 3, "checkpoint": {"every": "100 steps"},
            "telemetry": {"tensorboard": False}, **more}


def text_job(model, context=16, **more):
    return {"model": model, "data": {"train": {"text": {"path": "text.txt", "tokenizer": "characters", "context": context}},
            "validation": {"fraction": 0.1}}, "batch_size": 8, "micro_batches": 2, "steps": 2, "seed": 3, "loss": "cross_entropy",
            "metrics": ["perplexity"], "telemetry": {"tensorboard": False}, **more}


def texts_job(model, context=11, **more):
    """Of texts of several lengths, each with one of three classes."""
    return {"model": model, "data": {"train": {"texts": {"path": "texts.csv", "tokenizer": "characters", "context": context}},
            "validation": {"fraction": 0.2}}, "batch_size": 8, "micro_batches": 2, "steps": 2, "seed": 3, "loss": "cross_entropy",
            "telemetry": {"tensorboard": False}, **more}


MASKS = {"digits": {"count": 64, "masks": True}}
UNET = image_job({"unet": {"width": 4, "depth": 2}, "inputs": "image"},
                 loss={"binary_cross_entropy": {}, "target": "mask"}, metrics=["iou"])
UNET["data"] = {"train": MASKS, "validation": {"digits": {"count": 32, "first": 1000000, "masks": True}},
                "normalize": "never"}
AUTOENCODER = image_job({"autoencoder": {"code": 8, "width": 8}, "inputs": "image"},
                        loss={"mean_squared_error": {}, "target": "image"}, metrics=["rmse"])
AUTOENCODER["data"]["normalize"] = "never"

IMAGE_LAYERS = [
    {"pad": {"sides": [1, 2, 3, 0], "mode": "reflect"}},
    {"conv": {"filters": 8, "kernel": [3, 5], "stride": [2, 1], "dilation": [2, 1], "padding": "valid"}, "name": "stem"},
    {"group_norm": 4}, {"leaky_relu": 0.2, "name": "grouped"},
    {"global_pool": "average"}, {"linear": 8}, "sigmoid", {"mul": {"inputs": ["grouped", "previous"]}},
    {"conv": {"filters": 8, "kernel": 4, "groups": 4, "bias": False}}, {"instance_norm": {"affine": True}}, "elu",
    {"conv": {"filters": 8, "kernel": 1}, "name": "side"}, "hardswish",
    {"sub": {"inputs": ["previous", "side"]}}, "softplus",
    {"concat": {"inputs": ["previous", "side"], "axis": -1}},
    {"avg_pool": {"kernel": 3, "stride": 2, "padding": 1, "count_include_pad": False}},
    {"prelu": 0.1, "name": "forward"},  # as a member of torch.nn.Module is called, as are "type" and "training"
    {"conv_transpose": {"filters": 6, "kernel": 3, "stride": 2, "padding": 1, "output_padding": 1}}, "sigmoid",
    {"matmul": {"inputs": ["previous", "previous"], "transpose": True}}, {"scale": 0.2},
    {"slice": {"axis": 1, "begin": 1, "end": -1}}, {"upsample": {"factor": [2, 3], "mode": "bilinear"}},
    {"scale": {"factor": 0.5, "shift": -0.3}}, {"pad": 1}, "silu", {"avg_pool": {"kernel": 2, "padding": "same"}},
    {"conv_transpose": {"filters": 4, "kernel": 2, "stride": 2}}, {"upsample": 2}, {"mul": {"inputs": ["previous", "previous"]}},
    {"max_pool": {"kernel": 3, "stride": 2, "padding": 1}}, {"conv_transpose": {"filters": 4, "kernel": 3, "stride": 2}},
    {"max": {"axis": 1}}, {"batch_norm": {}, "name": "type"}, {"layer_norm": {}, "name": "training"}, {"transpose": [2, 1]},
    {"mean": {"axis": -1}}, {"batch_norm": {}}, {"dropout": 0.3}, "tanh", {"linear": 10}, "softmax"]
SEQUENCE_LAYERS = [
    {"reshape": [28, 28]}, {"linear": 12}, {"position_embedding": 40}, {"lstm": 9}, {"gru": {"features": 6, "bias": False}},
    {"gru": {"features": 5, "bidirectional": True}}, {"linear": {"features": 8, "bias": False}, "name": "x"}, {"rope": 2}, {"rms_norm": {}},
    {"attention": {"heads": 4, "kv_heads": 2, "inputs": ["previous", "x4", "x4"]}},
    {"gelu": {"approximate": "none"}}, {"reshape": [4, 7, 8]}, {"global_pool": "max"}, {"linear": 10}]
SEQUENCE_LAYERS.insert(9, {"linear": {"features": 4, "inputs": ["x"]}, "name": "x4"})
SEQUENCE_LAYERS[10]["attention"]["inputs"] = ["x", "x4", "x4"]
SEQUENCE_LAYERS[12:12] = [{"matmul": {"inputs": ["previous", "x"], "transpose": True}}, {"scale": 0.1},
                          {"matmul": {"inputs": ["previous", "x"]}, "name": "tokens"}, {"mean": 1},
                          {"mul": {"inputs": ["tokens", "previous"]}}]
PADDED_LAYERS = [
    {"embedding": {"vocabulary": 17, "width": 6}, "inputs": "tokens", "name": "words"},
    {"linear": 12, "name": "x"}, {"linear": {"features": 6, "inputs": ["x"]}, "name": "x6"},
    {"attention": {"heads": 4, "kv_heads": 2, "causal": True, "inputs": ["x", "x6", "x6", "length"]}, "name": "before"},
    {"linear": 36}, {"attention": {"heads": 2, "inputs": ["previous", "length"]}, "name": "seen"},
    {"lstm": {"features": 5, "bidirectional": True, "inputs": ["previous", "length"]}},
    {"last": {"inputs": ["previous", "length"]}, "name": "len"},
    {"reverse": {"inputs": ["seen", "length"]}}, {"gru": 5}, {"reverse": {"inputs": ["previous", "length"]}},
    {"mask": {"inputs": ["previous", "length"]}}, {"max": {"axis": 1, "inputs": ["previous", "length"]}, "name": "most"},
    {"global_pool": {"kind": "max", "inputs": ["seen", "length"]}, "name": "highest"}, {"reverse": {"inputs": ["before"]}},
    {"mask": {"inputs": ["previous"]}}, {"last": {"inputs": ["previous"]}, "name": "first"},
    {"mean": {"axis": 1, "inputs": ["seen", "length"]}, "name": "middle"},
    {"concat": {"inputs": ["len", "most", "highest", "first", "middle"]}}, {"linear": 3}]

TABLE = {"model": {"layers": [{"linear": 8}, "tanh", {"linear": 2}]},
         "data": {"train": {"table": {"path": "table.csv", "target": ["price", "size"]}}, "validation": {"fraction": 0.2},
                  "normalize_target": True},
         "batch_size": 8, "micro_batches": 1, "steps": 2, "seed": 3, "loss": "mean_squared_error", "metrics": ["mae"],
         "telemetry": {"tensorboard": False}}

PREPARED = image_job({"layers": [{"conv": {"filters": 4, "kernel": 3, "stride": 2}}, "relu", "flatten", {"linear": 10}]})
PREPARED["data"]["prepare"] = [{"center_crop": {"size": [24]}}, {"resize": {"size": [12, 24]}}]

# A table of numbers, categories and missing values; some columns are called as other things are.
KINDS = ("flat", "house", '"loft, large"')
FLATS = "area,city,label,prediction,linear1.weight,kind,price,sold\n" + "".join(
    f"{40 + i * 7 % 60 if i % 9 else ''},{('Köln', 'Bonn', 'NA')[i % 3]},{('top', '1', 'x y')[i % 4 % 3]},"
    f"{i % 5 * 0.25},{i * i % 13},{KINDS[i // 2 % 3]},{200000 + i * 7 % 60 * 3000},{('no', 'yes')[i % 3 % 2]}\n"
    for i in range(60))
NEW_FLATS = "area,city,label,prediction,linear1.weight\n" \
    "61,Bonn,top,0.5,3\n,Köln,1,1.25,12\n88.5,NA,x y,,0\n52,,top,0,7\n70,Köln,,0.5,1\n"

JOBS = {
    "mlp": image_job({"mlp": {"hidden": [16, 12]}}),
    "lenet": image_job("lenet"),
    "resnet": image_job({"resnet": 20}),
    "resnet18": image_job({"resnet": 18}, steps=1),
    "resnet50": image_job({"resnet": 50}, steps=1),
    "mobilenet": image_job("mobilenet", steps=1),
    "mobilenet-small": image_job({"mobilenet": {"width": 0.25, "small": True}}),
    "unet": UNET,
    "autoencoder": AUTOENCODER,
    "vit": image_job({"vit": {"layers": 2, "width": 16, "heads": 2}}),
    "vit-token": image_job({"vit": {"layers": 2, "width": 16, "heads": 2, "pool": "token"}}),
    "gpt": text_job({"gpt": {"layers": 2, "heads": 2, "width": 16}}),
    "bert": text_job({"bert": {"layers": 2, "heads": 2, "width": 16}}),
    "bert-types": text_job({"bert": {"layers": 2, "heads": 2, "width": 16, "types": 2, "positions": 20}}),
    "llama": text_job({"llama": {"layers": 2, "heads": 4, "kv_heads": 2, "width": 32}}),
    "lstm": text_job({"lstm": {"layers": 2, "width": 12, "dropout": 0.1}}),
    "lstm-tied": text_job({"lstm": {"width": 12, "tied": True}}),
    "bert-classes": texts_job({"bert": {"layers": 2, "heads": 2, "width": 16, "types": 2}}),
    "padded": texts_job({"layers": PADDED_LAYERS}),
    "images": image_job({"layers": IMAGE_LAYERS}),
    "prepared": PREPARED,
    "table": TABLE,
    "sequences": image_job({"layers": SEQUENCE_LAYERS}),
}
