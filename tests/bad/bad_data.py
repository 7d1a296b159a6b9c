#!/usr/bin/env python3
"""Makes bad data sets: bad_data.py FOLDER. Standard library only."""
import gzip
import io
import pathlib
import struct
import sys
import tarfile
import zlib


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width=8, height=8, colour=0, shade=0):
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    channels = 3 if colour == 2 else 1
    rows = b"".join(b"\0" + bytes([(y * 8 + shade * 31) % 256]) * (width * channels) for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def classes(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def members(path, mode, files):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def main():
    out = pathlib.Path(sys.argv[1])
    good = png()
    classes(out / "good", {"a/1.png": good, "a/2.png": good, "b/1.png": good, "b/2.png": good})
    classes(out / "truncated_png", {"a/1.png": good, "b/1.png": good[:-14]})
    classes(out / "truncated_jpeg", {"a/1.png": good, "b/1.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0"})
    classes(out / "foreign", {"a/1.png": good, "b/1.png": b"hello, I am a text"})
    classes(out / "empty_file", {"a/1.png": good, "b/1.png": b""})
    (out / "empty_folder").mkdir()
    (out / "empty.txt").write_bytes(b"")
    (out / "short.txt").write_bytes(b"short")
    (out / "not_utf8.txt").write_bytes(b"caf\xe9 " * 100)
    (out / "odd.bin").write_bytes(b"\1\2\3")
    (out / "no.tar").write_bytes(b"no archive at all" * 100)
    (out / "images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 10, 4, 4) + bytes(50))
    (out / "labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, 10) + bytes(10))
    (out / "broken.gz").write_bytes(gzip.compress(bytes(1000))[:20])
    (out / "table.csv").write_bytes(b"image,label\nmissing.png,a\n")
    (out / "no_label.csv").write_bytes(b"image,class\ngood/a/1.png,a\n")
    (out / "lonely").mkdir()
    (out / "lonely/train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 1, 4, 4) + bytes(16))
    record = bytes(3073)
    members(out / "cifar.tar.gz", "w:gz", {"c/data_batch_1.bin": record * 8})
    members(out / "images.tar", "w", {"a/1.png": good, "b/1.png": good})
    (out / "cut.tar").write_bytes((out / "images.tar").read_bytes()[:1000])
    (out / "cut.tar.gz").write_bytes((out / "cifar.tar.gz").read_bytes()[:60])
    classes(out / "other_classes", {"a/1.png": good, "c/1.png": good})
    (out / "list.txt").write_bytes(b"a/1.png\nz/9.png\n")
    (out / "no.pack").write_bytes(b"no pack" * 100)


if __name__ == "__main__":
    main()
