"""Generated data sets: written as files that lockstep reads, and kept as arrays for PyTorch.

A case has `images: [height, width, channels]` (or [height, width]: grey), `pairs: [[...], [...]]` (two images per
sample, called left and right, from a CSV file and PNGs), `tokens: vocabulary` with `context`, or `texts: letters` with
`context`, the longest; `classes` and `samples` (for tokens: windows).
"""
import numpy
import PIL.Image

import streams


def idx(path, values):
    header = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    path.write_bytes(header + values.tobytes())


class Images:
    """Bytes are converted to numbers by `normalize`: never (divided by 255), a mean and a standard deviation, or the
    set's own."""

    def __init__(self, spec, normalize, random, like=None):
        count, classes = spec["samples"], spec.get("classes", 5)
        shapes = {"left": spec["pairs"][0], "right": spec["pairs"][1]} if "pairs" in spec else {"image": spec["images"]}
        shapes = {name: [*shape, 1] if len(shape) == 2 else shape for name, shape in shapes.items()}
        self.bytes = {name: random.integers(0, 256, (count, *shape), numpy.uint8) for name, shape in shapes.items()}
        self.measured = self.bytes if like is None else like.bytes
        self.labels = random.permutation(numpy.arange(count) % classes).astype(numpy.uint8)  # every class occurs
        self.normalize = normalize
        self.size = count

    def write(self, folder):
        """Writes the files; returns the job's entry under data.train (or validation)."""
        folder.mkdir(parents=True)
        if "image" in self.bytes:
            values = self.bytes["image"]
            idx(folder / "train-images-idx3-ubyte", values.squeeze(-1) if values.shape[-1] == 1 else values)
            idx(folder / "train-labels-idx1-ubyte", self.labels)
            return {"idx": {"path": str(folder), "part": "train"}}
        rows = ["left,right,label"]
        for i, label in enumerate(self.labels):
            for name, values in self.bytes.items():
                PIL.Image.fromarray(values[i]).save(folder / f"{name}{i}.png")
            rows.append(f"left{i}.png,right{i}.png,{label}")
        (folder / "pairs.csv").write_text("\n".join(rows) + "\n")
        return {"csv": str(folder / "pairs.csv")}

    def statistics(self, name):
        """Mean and standard deviation by channel, measured on the training set."""
        if self.normalize == "never":
            return 0.0, 1.0
        if self.normalize == "auto":
            scaled = self.measured[name].astype(numpy.float64) / 255
            return scaled.mean((0, 1, 2)), scaled.std((0, 1, 2))
        return numpy.array(self.normalize["mean"]), numpy.array(self.normalize["std"])

    def read(self, ids, epoch):  # pylint: disable=unused-argument
        """The features of these samples, in fp64."""
        out = {"label": self.labels[ids].astype(numpy.int64)}
        for name, values in self.bytes.items():
            mean, std = self.statistics(name)
            out[name] = (values[ids] / 255.0 - mean) / std
        return out


class Tokens:
    """Windows of a file of tokens; each epoch starts at another offset, and `epoch` None at the beginning."""

    def __init__(self, spec, random, seed):
        self.context, self.seed, self.size = spec["context"], seed, spec["samples"]
        self.tokens = random.integers(0, spec["tokens"], self.size * self.context + 1, numpy.uint16)

    def write(self, folder):
        folder.mkdir(parents=True)
        (folder / "tokens.bin").write_bytes(self.tokens.astype("<u2").tobytes())
        return {"tokens": {"path": str(folder / "tokens.bin"), "context": self.context}}

    def read(self, ids, epoch):
        offset = 0 if epoch is None else streams.window_offset(self.seed, epoch, self.context)
        first = offset + numpy.array(ids)[:, None] * self.context + numpy.arange(self.context)
        at = first % (len(self.tokens) - 1)
        return {"tokens": self.tokens[at].astype(numpy.int64), "target": self.tokens[at + 1].astype(numpy.int64)}


class Texts:
    """Words of 1 to `context` letters, as bytes, with a class each; 0 stands behind a word's end."""

    def __init__(self, spec, random):
        self.context, self.size = spec["context"], spec["samples"]
        self.lengths = random.permutation(numpy.arange(self.size) % self.context + 1)
        self.letters = 97 + random.integers(0, spec["texts"], (self.size, self.context))
        self.labels = random.permutation(numpy.arange(self.size) % spec.get("classes", 5))

    def write(self, folder):
        folder.mkdir(parents=True)
        rows = [f"{bytes(map(int, letters[:length])).decode()},{label}"
                for letters, length, label in zip(self.letters, self.lengths, self.labels)]
        (folder / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
        return {"texts": {"path": str(folder / "texts.csv"), "context": self.context}}

    def read(self, ids, epoch):  # pylint: disable=unused-argument
        there = numpy.arange(self.context) < self.lengths[ids][:, None]
        return {"tokens": numpy.where(there, self.letters[ids], 0), "length": self.lengths[ids], "label": self.labels[ids]}


def make(spec, normalize, seed, like=None):
    """The training set, or, if `like` is that set, a validation set of other samples."""
    random = numpy.random.default_rng([seed, like is not None])
    if "texts" in spec:
        return Texts(spec, random)
    return Tokens(spec, random, seed) if "tokens" in spec else Images(spec, normalize, random, like)
