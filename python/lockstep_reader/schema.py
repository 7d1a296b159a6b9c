"""What a model knows of its data, which exports carry: raw rows, images or texts in, what `lockstep predict` says out.

An export for PyTorch or transformers takes normalised numbers and gives scores: `schema.predict(module, samples)` does
all of it. An ONNX graph normalises and names classes itself; `schema.raw_inputs(samples)` arranges samples for it.
"""
import datetime
import json
import math
import os
import re

from .errors import MissingError, UnsupportedError, optional_module
from .predictions import ClassScore, Prediction
from .raw_images import prepared
from .safetensors import WeightsFile

REMEDY = "export the model with --to torch, huggingface or onnx"


class Schema:
    """`facts`: `data` in the metadata of an exported safetensors file, `lockstep.data` in those of an ONNX file.

    Samples are, of a table: a pandas DataFrame, a mapping from columns to values, or a list of rows such as
    csv.DictReader gives; of a time series such rows in order of time, each of which that ends a window is answered,
    series by series; of images: arrays of bytes [height, width, channels], or of several inputs a mapping from
    their names to such; of texts: a list of texts.
    """

    def __init__(self, facts: dict, place: str = "facts"):
        if "outputs" not in facts:
            raise MissingError(place, "what the model knows of its data", "less than that", REMEDY)
        self.facts, self.place = facts, place
        features = {feature["name"]: feature for feature in facts["features"]}
        self.features = [features[name] for name in facts["inputs"]]
        self.outputs = facts["outputs"]

    def inputs(self, samples) -> dict:
        """What the model's layers take, as numpy arrays by name."""
        numpy = optional_module("numpy", "Schema.inputs()")
        raw = self._arranged(samples, numpy)
        if not self.facts.get("columns"):
            return {name: self._scaled(values, numpy) if values.dtype == numpy.uint8 else values
                    for name, values in raw.items()}
        parts = []
        for column in self.facts["columns"]:
            parts += self._elements(column, raw[column["name"]], numpy)
        values = numpy.concatenate(parts, -1)
        if self.facts["mean"]:  # in double: numbers may be far from 0 and near to one another
            std = numpy.array(self.facts["std"])
            values = (values - numpy.array(self.facts["mean"])) / numpy.where(std == 0, 1, std)
        return {self.features[0]["name"]: numpy.where(numpy.isnan(values), 0, values).astype(numpy.float32)}

    def raw_inputs(self, samples) -> dict:
        """What the graph of an ONNX file takes, unless it was exported with --raw: columns one by one, images as bytes
        after the steps of `prepare`, tokens."""
        numpy = optional_module("numpy", "Schema.raw_inputs()")
        return self._arranged(samples, numpy)

    def answers(self, scores) -> list:
        """From what the last layer gives, the ONNX output `prediction`: a Prediction for each sample, its classes with
        the likeliest first; of a model with several outputs a dictionary of them."""
        numpy = optional_module("numpy", "Schema.answers()")
        rows = numpy.asarray(scores, numpy.float64).reshape(len(scores), -1)
        found = []
        for row in rows:
            of_outputs = {output["name"]: self._answer(output, row, numpy) for output in self.outputs}
            found.append(of_outputs if len(self.outputs) > 1 else of_outputs[self.outputs[0]["name"]])
        return found

    def predict(self, module, samples) -> list:
        """As answers(), of a PyTorch module that was exported, or that transformers has loaded."""
        torch = optional_module("torch", "Schema.predict()")
        arrays = self.inputs(samples)
        tensors = []
        for feature in self.features:
            value = torch.from_numpy(arrays[feature["name"]])
            value = value if value.is_floating_point() else value.long()
            tensors.append(value.permute(0, 3, 1, 2) if feature["kind"] == "image" else value)
        if hasattr(module, "config") and len(tensors) > 1:  # for transformers a length is a mask
            tensors[1] = torch.arange(tensors[0].shape[1]) < tensors[1][:, None]
        with torch.no_grad():
            found = module(*tensors)
        found = getattr(found, "logits", found)
        shape = self.outputs[0]["shape"]
        if len(shape) == 3 and len(self.outputs) == 1 and list(found.shape[1:]) == [shape[2], *shape[:2]]:
            found = found.permute(0, 2, 3, 1)
        return self.answers(found.numpy())

    def __repr__(self) -> str:
        return f"Schema({self.place}: {', '.join(self.facts['inputs'])})"

    # Samples.

    def _arranged(self, samples, numpy) -> dict:
        if self.facts.get("columns"):
            columns = {column["name"]: column for column in self.facts["columns"]}
            window = self.facts.get("window")
            of_series = [window["series"]] if window and window["series"] else []
            values = _by_column(samples, [*columns, *of_series], self.place)
            arranged = {name: self._column(column, values[name], numpy) for name, column in columns.items()}
            if not window:
                return arranged
            rows = _rows_of_windows(next(iter(values.values())), values[of_series[0]] if of_series else None, window)
            return {name: column[numpy.array(rows)] for name, column in arranged.items()}
        if self.features[0]["kind"] == "tokens":
            return self._tokens(samples, numpy)
        of_inputs = samples if isinstance(samples, dict) else {self.features[0]["name"]: samples}
        arranged = {}
        for feature in self.features:
            values = of_inputs[feature["name"]]
            if feature["kind"] == "image":
                arranged[feature["name"]] = numpy.stack([prepared(numpy.asarray(image), feature["shape"][2],
                                                                  self.facts["prepare"], numpy) for image in values])
            else:
                arranged[feature["name"]] = numpy.asarray(values, {"f32": "float32", "i32": "int32"}[feature["dtype"]])
        return arranged

    def _column(self, column, values, numpy):
        """[rows, 1]: doubles, NaN where a value is missing, or texts, "" where one is."""
        if not column["categories"]:
            number = _days if column.get("dates") else float
            numbers = [math.nan if self._is_missing(value) else number(value) for value in values]
            return numpy.array(numbers, numpy.float64)[:, None]
        known = {_category_key(category): category for category in column["categories"]}
        found = [["" if self._is_missing(value) else _category(value, known)] for value in values]
        for place, (value,) in enumerate(found):
            if value and value not in column["categories"] and self.facts.get("unknown") != "ignore":
                some = ", ".join(column["categories"][:10]) + (", ..." if len(column["categories"]) > 10 else "")
                raise UnsupportedError(f"row {place}: column '{column['name']}'",
                                       f"one of {some}, as in the training set", f"'{value}'", "leave the row out")
        return numpy.array(found, object)

    @staticmethod
    def _elements(column, values, numpy):
        """What a column is to the layers: [rows, elements] each."""
        if column["categories"]:
            missing = values == ""
            parts = [(values == numpy.array(column["categories"], object)[None]).astype(numpy.float64)]
        else:
            missing, parts = numpy.isnan(values), [values]
        return [*parts, missing.astype(numpy.float64)] if column["missing"] else parts

    def _is_missing(self, value) -> bool:
        return str(value).strip(" \t") in self.facts["missing"]  # which has None, nan and <NA>

    def _scaled(self, values, numpy):
        """Of images, as lockstep rounds it."""
        mean, std = numpy.array(self.facts["mean"] or [0]), numpy.array(self.facts["std"] or [1])
        factor, shift = 1 / (255 * std), -mean / std
        return values.astype(numpy.float32) * factor.astype(numpy.float32) + shift.astype(numpy.float32)

    def _tokens(self, texts, numpy) -> dict:
        context = self.features[0]["shape"][0]
        encode = self._encoder(context)
        numbers = [encode(text)[:context] for text in texts]
        padded = numpy.array([one + [0] * (context - len(one)) for one in numbers], numpy.int32)
        lengths = numpy.array([len(one) for one in numbers], numpy.int32)
        return {feature["name"]: padded if feature["kind"] == "tokens" else lengths for feature in self.features}

    def _encoder(self, context):
        if self.facts.get("tokenizer"):
            tokenizer = optional_module("tokenizers", "a tokenizer").Tokenizer.from_str(self.facts["tokenizer"])
            tokenizer.no_padding()
            tokenizer.enable_truncation(context)
            return lambda text: tokenizer.encode(text).ids
        if not self.facts["token_text"]:
            return lambda text: list(text.encode())
        numbers = {character: number for number, character in enumerate(self.facts["token_text"])}

        def encode(text):
            unknown = sorted(set(text) - set(numbers))
            if unknown:
                raise UnsupportedError("text", f"characters of the training text ({len(numbers)} of them)",
                                       f"'{unknown[0]}'", "remove it")
            return [numbers[character] for character in text]
        return encode

    # Answers.

    @staticmethod
    def _answer(output, row, numpy) -> Prediction:
        shape, names = output["shape"], output["names"]
        values = row[output["first"]:output["first"] + math.prod(shape)]
        if output["activation"] == "softmax":
            lines = values.reshape(-1, shape[-1])
            powers = numpy.exp(lines - lines.max(1, keepdims=True))
            values = (powers / powers.sum(1, keepdims=True)).ravel()
        elif output["activation"] == "sigmoid":
            values = 1 / (1 + numpy.exp(-values))
        values, classes = values.tolist(), []
        if output["activation"] and len(names) == len(values):
            order = sorted(range(len(values)), key=lambda i: -values[i])
            classes = [ClassScore(names[i], i, values[i], None) for i in order]
        numbers, probabilities = ([], values) if output["activation"] else (values, [])
        return Prediction([], None, None, None, classes, numbers, [] if classes else probabilities)


def _by_column(samples, names, place) -> dict:
    by_column = hasattr(samples, "keys") and not isinstance(samples, (list, tuple))  # a mapping, or a DataFrame
    has = set(samples.keys()) if by_column else set(samples[0]) if samples else set(names)
    lacks = [name for name in names if name not in has]
    if lacks:
        raise MissingError(place, f"the columns {', '.join(names)}", f"none called {', '.join(lacks)}",
                           "samples need all columns that the model reads")
    return {name: list(samples[name]) if by_column else [row[name] for row in samples] for name in names}


def _rows_of_windows(rows, series, window) -> list:
    """Of each window the places of its rows."""
    of_series = {}
    for place in range(len(rows)):
        of_series.setdefault(series[place] if series else None, []).append(place)
    length = window["rows"]
    found = [places[i:i + length] for places in of_series.values() for i in range(len(places) - length + 1)]
    if not found:
        raise UnsupportedError("samples", f"{length} rows for a window", f"{len(rows)}", "give more of them")
    return found


def _days(value) -> float:
    """Since 1970-01-01, of a date and perhaps a time, as texts or objects have it; numbers are days."""
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, datetime.datetime):
        when = value
    else:
        text = re.sub(r"([.,][0-9]{6})[0-9]+", r"\1", str(value).strip(" \t")).replace("Z", "+00:00")
        when = datetime.datetime.fromisoformat(text)
    if when.tzinfo is not None:
        when = when.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return (when - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)


def _category_key(text: str) -> str:
    """What the spellings of a category have in common: those of true, of 3 and 3.0, but not of 03."""
    if text.lower() in ("true", "false"):
        return text.lower()
    number = re.fullmatch(r"([+-]?)(0|[1-9][0-9]*)(?:\.([0-9]*))?", text, re.ASCII)
    if not number:
        return text
    sign, whole, fraction = number[1].replace("+", ""), number[2], (number[3] or "").rstrip("0")
    if fraction:
        return f"{sign}{whole}.{fraction}"
    return whole if number[3] is not None and whole == "0" else sign + whole


def _category(value, known) -> str:
    """The one that is meant, as `predict` finds it: pandas makes 3.0 of 3 where values are missing."""
    text = str(value).strip(" \t")
    return known.get(_category_key(text), text)


def schema_of(source) -> Schema:
    """Of an exported safetensors file, opened or its path, or of an onnxruntime.InferenceSession.

    Raises MissingError."""
    if hasattr(source, "get_modelmeta"):
        place, metadata, key = "the ONNX file", source.get_modelmeta().custom_metadata_map, "lockstep.data"
    else:
        if isinstance(source, (str, os.PathLike)):
            source = WeightsFile(source)
        place, metadata, key = source.path, source.metadata, "data"
    if key not in metadata:
        raise MissingError(place, "what the model knows of its data", "nothing", REMEDY)
    return Schema(json.loads(metadata[key]), place)
