"""Small sets for every reader that has files, of the same rows, and what may become of them."""
import dataclasses
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tarfile
import zipfile
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


def archive(path, rows):
    """A tar or a zip."""
    folder = path.with_name("to-archive")
    images(folder, rows)
    files = sorted(folder.glob("*/*.png"))
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as whole:
            for file in files:
                whole.write(file, file.relative_to(folder))
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as whole:
            for file in files:
                whole.add(file, file.relative_to(folder))


def masks(path, rows, columns=("image", "mask"), called=("image", "mask")):
    named = []
    for i, row in enumerate(rows):
        level, cut = f"level{level_of(row)}.png", f"mask{i}-{row[4]}.png"
        (path.parent / level).write_bytes(png(level_of(row)))
        (path.parent / cut).write_bytes(png(["no", "yes", "maybe"].index(row[4])))
        named.append((level, cut))
    table(path, named, columns, called)


def parquet(path, rows, columns=COLUMNS, called=COLUMNS):
    """Columns of doubles, and of text, in one row group without compression (https://parquet.apache.org/docs)."""
    def varint(number):
        out = b""
        while number > 127:
            out += bytes([number & 127 | 128])
            number >>= 7
        return out + bytes([number])

    def integer(number):
        return varint(number << 1 ^ number >> 63)

    def text(word):
        return varint(len(word)) + word.encode()

    def struct_of(*fields):  # (number, type of thrift's compact protocol, value)
        out, last = b"", 0
        for number, kind, value in fields:
            out += bytes([number - last << 4 | kind]) + value
            last = number
        return out + b"\0"

    def list_of(kind, items):
        return (bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))) + b"".join(items)

    i32, i64, binary, lists, structs = 5, 6, 8, 9, 12
    named = [dict(zip(called, row), extra="1.5") for row in rows]
    body, chunks, schema = b"PAR1", [], [struct_of((4, binary, text("schema")), (5, i32, integer(len(columns))))]
    for column in columns:
        numbers = column not in ("k", "label")
        values = b"".join(struct.pack("<d", float(row[column])) if numbers else
                          struct.pack("<I", len(row[column])) + row[column].encode() for row in named)
        page = struct_of((1, i32, integer(0)), (2, i32, integer(len(values))), (3, i32, integer(len(values))),
                         (5, structs, struct_of((1, i32, integer(len(rows))), (2, i32, integer(0)), (3, i32, integer(3)),
                                                (4, i32, integer(3)))))
        kind, at = (5 if numbers else 6), len(body)
        body += page + values
        size = len(page) + len(values)
        about = struct_of((1, i32, integer(kind)), (2, lists, list_of(i32, [integer(0)])), (3, lists, list_of(binary, [text(column)])),
                          (4, i32, integer(0)), (5, i64, integer(len(rows))), (6, i64, integer(size)), (7, i64, integer(size)),
                          (9, i64, integer(at)))
        chunks.append(struct_of((2, i64, integer(at)), (3, structs, about)))
        of_text = () if numbers else ((6, i32, integer(0)),)
        schema.append(struct_of((1, i32, integer(kind)), (3, i32, integer(0)), (4, binary, text(column)), *of_text))
    group = struct_of((1, lists, list_of(structs, chunks)), (2, i64, integer(len(body))), (3, i64, integer(len(rows))))
    footer = struct_of((1, i32, integer(1)), (2, lists, list_of(structs, schema)), (3, i64, integer(len(rows))),
                       (4, lists, list_of(structs, [group])))
    path.write_bytes(body + footer + struct.pack("<I", len(footer)) + b"PAR1")


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
    Reader("parquet", {"table": {"path": "data.parquet", "target": "label"}}, parquet, CLASSES, "data.parquet", COLUMNS),
    Reader("series", {"table": {"path": "data", "target": "a", "features": ["a", "b", "k"], "window": 4, "horizon": 2}},
           table, {**MLP, "loss": "mean_squared_error", "metrics": ["mae"]}, columns=COLUMNS, classes=False),
    Reader("images", {"images": "data"}, images, CLASSES),
    Reader("tar", {"images": "data.tar"}, archive, CLASSES, "data.tar", predicts=False),
    Reader("tgz", {"images": "data.tgz"}, archive, CLASSES, "data.tgz", predicts=False),
    Reader("zip", {"images": "data.zip"}, archive, CLASSES, "data.zip", predicts=False),
    Reader("masks", {"csv": {"path": "data.csv", "mask": "mask", "classes": ["no", "yes"]}}, masks,
           {"model": {"layers": [{"conv": {"filters": 2, "kernel": 1}}]}, "metrics": ["mean_iou"],
            "loss": {"cross_entropy": {}, "target": "mask"}}, "data.csv", ("image", "mask"), classes=False,
           predicts=False),
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
