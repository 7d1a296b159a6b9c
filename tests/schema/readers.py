"""Small sets for every reader that has files, of the same rows, and what may become of them."""
import dataclasses
import os
import pathlib
import random
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable

RANDOM = random.Random(7)
COLUMNS = ("a", "b", "c", "k", "label")
ROWS = [[f"{RANDOM.gauss(0, 1):.6f}" for _ in "abc"] + [RANDOM.choice(["red", "green"]), RANDOM.choice(["no", "yes"])]
        for _ in range(120)]


def table(path, rows, columns=COLUMNS, called=COLUMNS):
    """`columns`: of a row, in order; `called`: what they are called there."""
    lines = [",".join(columns)]
    for row in rows:
        named = dict(zip(called, row), extra="1.5")
        lines.append(",".join(named[column] for column in columns))
    path.write_text("\n".join(lines) + "\n")


def texts(path, rows, columns=("text", "label"), called=("text", "label")):
    table(path, [(" ".join(row[:3]), row[4]) for row in rows], columns, called)


def text(path, rows):
    path.write_text("\n".join(" ".join(row) for row in rows))


def tokens(path, rows):
    path.write_bytes(" ".join(" ".join(row) for row in rows).encode("utf-16-le"))


def level_of(row):
    return int(abs(float(row[0])) * 60) % 256


def png(level, width=4):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = zlib.compress(b"".join(b"\0" + bytes([level] * width) for _ in range(4)))
    header = struct.pack(">IIBBBBB", width, 4, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def images(path, rows, rename=lambda name: name):
    shutil.rmtree(path, ignore_errors=True)
    for i, row in enumerate(rows):
        (path / rename(row[4])).mkdir(parents=True, exist_ok=True)
        (path / rename(row[4]) / f"{i:03}.png").write_bytes(png(level_of(row)))


def image_table(path, rows, columns=("image", "label"), called=("image", "label")):
    named = []
    for row in rows:
        file = f"level{level_of(row)}.png"
        (path.parent / file).write_bytes(png(level_of(row)))
        named.append((file, row[4]))
    table(path, named, columns, called)


def idx(path, rows):
    path.mkdir(exist_ok=True)
    levels = b"".join(bytes([level_of(row)] * 16) for row in rows)
    (path / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, len(rows), 4, 4) + levels)
    labels = bytes(["no", "yes", "maybe"].index(row[4]) for row in rows)
    (path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, len(rows)) + labels)


def cifar(path, rows):
    path.write_bytes(b"".join(bytes([["no", "yes", "maybe"].index(row[4])]) + bytes([level_of(row)] * 3072)
                              for row in rows))


def packed(path, rows):
    folder = path.with_name("to-pack")
    images(folder, rows)
    path.unlink(missing_ok=True)
    subprocess.run([os.environ["LOCKSTEP"], "data", "pack", "images=to-pack", path.name], cwd=path.parent, check=True,
                   capture_output=True)


def libsvm(path, rows):
    path.write_text("".join(f"{row[0]} 1:{row[1]} 2:{row[2]}\n" for row in rows))


def drawn(_path, _rows):
    """Digits are in no file."""


PLUGIN = pathlib.Path(os.environ["LOCKSTEP_BUILD"], "plugins/libpendulum.so")  # has the reader `libsvm`
MLP = {"model": {"mlp": {"hidden": [8]}}}
CLASSES = {**MLP, "metrics": ["accuracy"]}
GPT = {"model": {"gpt": {"layers": 1, "heads": 2, "width": 8}}}


@dataclasses.dataclass(frozen=True)
class Reader:
    """A row of the table. `path`: what `source` names."""
    name: str
    source: dict
    write: Callable
    job: dict
    path: str = "data"
    columns: tuple = ()  # whose order does not matter, the first of which may be renamed
    classes: bool = True  # each sample has one
    names_classes: bool = True  # in the data
    predicts: bool = True  # from what `write` writes
    words: Callable = lambda rows: ()  # of the command line, that rows are chosen by
    indexed: bool = True  # in the cache


READERS = [
    Reader("table", {"table": {"path": "data", "target": "label"}}, table, CLASSES, columns=COLUMNS),
    Reader("series", {"table": {"path": "data", "target": "a", "features": ["a", "b", "k"], "window": 4, "horizon": 2}},
           table, {**MLP, "loss": "mean_squared_error", "metrics": ["mae"]}, columns=COLUMNS, classes=False),
    Reader("images", {"images": "data"}, images, CLASSES),
    Reader("csv", {"csv": "data.csv"}, image_table, CLASSES, "data.csv", ("image", "label")),
    Reader("idx", {"idx": "data"}, idx, CLASSES, names_classes=False, predicts=False),
    Reader("cifar", {"cifar": "data.bin"}, cifar, CLASSES, "data.bin", names_classes=False, predicts=False),
    Reader("texts", {"texts": {"path": "data.csv", "context": 32}}, texts,
           {"model": {"layers": [{"embedding": {"vocabulary": 256, "width": 8, "inputs": "tokens"}},
                                 {"global_pool": {"inputs": ["previous", "length"]}}, {"linear": {"features": 2}}]},
            "metrics": ["accuracy"]}, "data.csv", ("text", "label")),
    Reader("text", {"text": {"path": "data", "context": 16}}, text, GPT, classes=False, predicts=False),
    Reader("tokens", {"tokens": {"path": "data", "context": 16}}, tokens, {"model": {"gpt": {**GPT["model"]["gpt"],
           "vocabulary": 256}}}, classes=False, predicts=False),
    Reader("packed", {"packed": "data.pack"}, packed, CLASSES, "data.pack", predicts=False),
    Reader("digits", {"digits": {"count": len(ROWS)}}, drawn, CLASSES, classes=False, predicts=False, indexed=False,
           words=lambda rows: (f"data.train.digits.count={len(rows)}",)),
]
if PLUGIN.exists():  # not with sanitizers
    READERS.append(Reader("libsvm", {"libsvm": {"path": "data", "features": 2}}, libsvm, {
        "plugins": str(PLUGIN), "model": {"layers": [{"linear": {"features": 8}}, "relu", {"linear": {"features": 1}}]},
        "loss": "mean_squared_error", "metrics": ["mae"]}, classes=False, indexed=False))
