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


def tables(out):
    good = "age,kind,price\n30,flat,1\n40,house,2\n50,flat,3\n60,house,4\n"
    for name, text in {
            "good_table": good,
            "table_weight": "age,price,w\n30,1,2\n40,2,-1\n50,3,0\n",
            "table_word": good.replace("40,", "old,"),
            "table_target_missing": good.replace(",2\n", ",\n").replace(",4\n", ",NaN\n"),
            "table_infinite": good.replace("50,", "inf,"),
            "table_long_row": good.replace("40,house,2", "40,house,2,9"),
            "table_decimal_commas": 'age,price\n"30,5",1\n"40,5",2\n',
            "table_no_header": good.split("\n", 1)[1].replace("flat", "1").replace("house", "2"),
            "table_other_kind": good.replace("60,house", "60,barn"),
            "table_empty_column": good.replace("flat", "").replace("house", "NA"),
            "table_three_kinds": good.replace("60,house", "60,barn"),
            "table_tags": "x,calm,live\n1,0,1\n2,1,0\n3,1,3\n4,0,1\n",
            "table_header_only": "age,kind,price\n"}.items():
        (out / f"{name}.csv").write_text(text)
    job = "job:\n  model: {layers: [{linear: 1}]}\n  loss: mean_squared_error\n  batch_size: 2\n  epochs: 1\n  data:\n" \
          "    train: {table: {path: good_table.csv, target: price}}\n" \
          "    validation: {table: {path: table_other_kind.csv, target: price}}\n"
    (out / "table_job.yaml").write_text(job)
    for name, train in {"tags": "table: {path: table_tags.csv, target: [calm, live]}",
                        "kinds": "table: {path: table_three_kinds.csv, target: kind}",
                        "image_tags": "csv: {path: image_tags.csv, target: [calm, live]}",
                        "image_kinds": "csv: image_kinds.csv"}.items():
        outputs = 2 if "tags" in name else 1
        (out / f"{name}_job.yaml").write_text(
            f"job:\n  model: {{layers: [{'flatten, ' if 'image' in name else ''}{{linear: {outputs}}}]}}\n  data: {{train: {{{train}}}}}\n"
            "  loss: binary_cross_entropy\n  batch_size: 2\n  epochs: 1\n")
    (out / "image_tags.csv").write_text("image,calm,live\ngood/a/1.png,0,1\ngood/a/2.png,-1,0\n")
    (out / "image_kinds.csv").write_text("image,label\ngood/a/1.png,cat\ngood/a/2.png,dog\ngood/b/1.png,owl\ngood/b/2.png,dog\n")


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
    tables(out)


if __name__ == "__main__":
    main()
