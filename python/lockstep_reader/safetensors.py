"""Files in the safetensors format: 8 bytes of little-endian length, a header in JSON, then the tensors' bytes."""
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping

from .errors import DamagedError, MissingError, UnsupportedError
from .tensor import DTYPES, Tensor, elements

MAX_HEADER = 100_000_000  # bytes, as in the format's own library


@dataclasses.dataclass(frozen=True)
class Entry:
    """A tensor of a file: [begin, end) in bytes of the file."""
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclasses.dataclass(frozen=True)
class Header:
    raw: bytes  # length and JSON
    entries: dict[str, Entry]
    metadata: dict[str, str]



def read_header(file, path: str, remedy: str) -> Header:
    """From an open file. Every place that the header names is checked against the file's size. Raises DamagedError."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, MAX_HEADER):
        found = "a zip archive (.pt, .npz or .keras)" if start.startswith(b"PK\x03\x04") else f"{size:,} bytes without one"
        raise DamagedError(path, "a safetensors file, which begins with a header", found, remedy)
    text = file.read(length)
    try:
        header = json.loads(text)
        metadata = header.pop("__metadata__", {})
        entries = {name: _entry(entry, 8 + length) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DamagedError(path, "a header of JSON, as the safetensors format asks for", "another text", remedy) from None
    for name, entry in entries.items():
        wanted = elements(entry.shape) * DTYPES[entry.dtype][0] if entry.dtype in DTYPES else entry.end - entry.begin
        if not 8 + length <= entry.begin <= entry.end <= size or entry.end - entry.begin != wanted:
            raise DamagedError(f"{path}: tensor '{name}'", f"{wanted:,} bytes for {entry.dtype} {list(entry.shape)} within "
                               f"the file's {size:,}", f"bytes {entry.begin:,} to {entry.end:,}", remedy)
    return Header(start + text, entries, metadata)


def _entry(entry, start) -> Entry:
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if not all(isinstance(value, int) and value >= 0 for value in (begin, end, *shape)):
        raise ValueError(entry)
    return Entry(str(entry["dtype"]), shape, start + begin, start + end)


def open_file(path: str, remedy: str):
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingError(path, "a safetensors file", "no such file", remedy) from None


def read_bytes(file, entry: Entry, into: memoryview, path: str, remedy: str) -> None:
    """Fills `into` with an entry's bytes."""
    file.seek(entry.begin)
    count = file.readinto(into)
    if count != len(into):
        raise DamagedError(path, f"{entry.end:,} bytes", f"{entry.begin + count:,}", remedy)


class Tensors(Mapping[str, Tensor]):
    """Tensors by name, each read when it is asked for: `source["conv1.weight"].numpy()`."""

    path: str

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor, without reading it."""
        raise NotImplementedError

    def read(self, name: str) -> Tensor:
        """Reads a tensor. Raises MissingError if there is none of this name."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.shapes():
            raise KeyError(name)
        return self.read(name)

    def __contains__(self, name) -> bool:
        return name in self.shapes()

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes())

    def __len__(self) -> int:
        return len(self.shapes())


class WeightsFile(Tensors):
    """A safetensors file of anybody: what `lockstep checkpoint export` writes, or PyTorch's. It has no digests."""

    REMEDY = "write it again, such as with lockstep checkpoint export RUN FILE"

    def __init__(self, path: str | os.PathLike):
        self.path = os.fspath(path)
        with open_file(self.path, self.REMEDY) as file:
            header = read_header(file, self.path, self.REMEDY)
        self.entries, self.metadata = header.entries, header.metadata

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: entry.shape for name, entry in self.entries.items()}

    def read(self, name: str) -> Tensor:
        entry = self.entries.get(name)
        if entry is None:
            raise no_tensor(self.path, name, self.entries)
        if entry.dtype not in DTYPES:
            raise UnsupportedError(f"{self.path}: tensor '{name}'", f"one of {', '.join(DTYPES)}", entry.dtype,
                                   "convert it first")
        data = bytearray(entry.end - entry.begin)
        with open_file(self.path, self.REMEDY) as file:
            read_bytes(file, entry, memoryview(data), self.path, self.REMEDY)
        return Tensor(name, entry.dtype, entry.shape, data)

    def __repr__(self) -> str:
        return f"WeightsFile({self.path}: {len(self)} tensors)"


def no_tensor(path: str, name: str, names) -> MissingError:
    known = sorted(names)
    shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
    return MissingError(path, f"a tensor '{name}'", f"none among {shown}", "its shapes() has all names")


def open_weights(path: str | os.PathLike) -> WeightsFile:
    """Opens a single safetensors file."""
    return WeightsFile(path)
