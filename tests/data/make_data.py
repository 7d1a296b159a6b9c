"""Small data sets of every kind for tests of the program; all samples of a set have the same length. Standard library
only."""
import pathlib
import struct
import tarfile
import zlib

CIFAR_CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def png(width, height, value, channels=3):
    """Not compressed, so that all images of one size have the same length."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((value + x + y) % 256 for x in range(width * channels)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


def folder(path, count, classes=("cat", "dog")):
    """Images in class folders; returns the size of one file."""
    for i in range(count):
        file = pathlib.Path(path) / classes[i % len(classes)] / f"{i:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(8, 8, 7 * i))
    return len(png(8, 8, 0))


def tar(path, source, mode="w"):
    with tarfile.open(path, mode) as archive:
        archive.add(source, arcname=".")


def tokens(path, count, vocabulary=50):
    pathlib.Path(path).write_bytes(b"".join(struct.pack("<H", (i * i + 3 * i) % vocabulary) for i in range(count)))


def cifar_records(count, shift=0):
    return b"".join(bytes([(i + shift) % 10]) + bytes((i + shift) % 200 + c for c in range(3) for _ in range(1024))
                    for i in range(count))


def cifar(path, train, test):
    """A folder like that of the official archive, with two training batches."""
    folder = pathlib.Path(path) / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    (folder / "batches.meta.txt").write_text("\n".join(CIFAR_CLASSES) + "\n")
    (folder / "data_batch_1.bin").write_bytes(cifar_records(train // 2))
    (folder / "data_batch_2.bin").write_bytes(cifar_records(train - train // 2, shift=5))
    (folder / "test_batch.bin").write_bytes(cifar_records(test, shift=50))
    return folder


def idx(path, train, test):
    """MNIST's four files, of 4 x 4."""
    folder = pathlib.Path(path)
    folder.mkdir(parents=True)
    for name, count in (("train", train), ("t10k", test)):
        pixels = b"".join(bytes((i + k) % 256 for k in range(16)) for i in range(count))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 4, 4) + pixels)
        labels = bytes(i % 10 for i in range(count))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
