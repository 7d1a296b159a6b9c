"""A checkpoint: a folder with a manifest and safetensors files. Each tensor's bytes are held against the manifest's SHA-256
when they are read, so what read() returns is what the run had."""
import hashlib
import json
import os
import re

from .errors import DamagedError, MissingError
from .manifest import REMEDY, Piece, Saved, kind_of, parse_manifest
from .safetensors import Entry, Header, Tensors, no_tensor, open_file, read_bytes, read_header
from .tensor import Tensor, elements

GONE = "it may have been removed meanwhile (checkpoint.keep): take a newer one"
_CHUNK = 1 << 20


class Checkpoint(Tensors):
    """Tensors by name: parameters, running statistics, and the optimizer's states.

    Opening reads the manifest and looks at the files' sizes; reading a tensor reads its bytes alone.
    """

    def __init__(self, path: str | os.PathLike):
        """Raises MissingError, DamagedError or UnsupportedError."""
        self.path = os.fspath(path).rstrip("/")
        manifest = f"{self.path}/manifest.json"
        try:
            with open(manifest, "rb") as file:
                text = file.read()
        except (FileNotFoundError, NotADirectoryError):
            raise MissingError(manifest, "the manifest of a checkpoint", "no such file",
                               "name a folder such as RUN/checkpoints/step-00000100; one without a manifest was not "
                               "finished") from None
        self.manifest = parse_manifest(text, manifest)
        self._headers: dict[str, Header] = {}
        for name, saved in self.manifest.files.items():
            self._require_size(name, saved)
        self._tensors = self.manifest.tensors if self.manifest.tensors is not None else self._tensors_of_files()

    # What the run knew.

    @property
    def step(self) -> int:
        """Steps done."""
        return self.manifest.raw["step"]

    @property
    def metrics(self) -> dict[str, float]:
        """Of the last evaluation before it; empty if there was none."""
        return self.manifest.metrics

    @property
    def job(self) -> dict:
        """The job with every default, as a dictionary."""
        return json.loads(self.manifest.raw["job"]).get("job", {})

    @property
    def data(self) -> dict:
        """What using the model takes to know of its data: features, class_names, token_text, mean, std."""
        return self.manifest.raw.get("data", {})

    @property
    def metadata(self) -> dict[str, str]:
        """Texts by name, for what a run keeps besides."""
        return self.manifest.raw.get("metadata", {})

    # Tensors.

    def shapes(self, *kinds: str) -> dict[str, tuple[int, ...]]:
        """By name, in the model's order: of all tensors, or of kinds "parameter", "state", "optimizer"."""
        return {name: saved.shape for name, saved in self._tensors.items() if not kinds or saved.kind in kinds}

    def weights(self) -> dict[str, tuple[int, ...]]:
        """The shapes of what the model consists of: parameters and states."""
        return self.shapes("parameter", "state")

    def read(self, name: str) -> Tensor:
        """Raises DamagedError if its bytes are not those that the manifest has the SHA-256 of."""
        saved = self._tensors.get(name)
        if saved is None:
            raise no_tensor(self.path, name, self._tensors)
        data = bytearray(4 * elements(saved.shape))
        for piece in saved.pieces:
            self._read_piece(piece, saved, memoryview(data)[4 * piece.begin:4 * piece.end])
        return Tensor(name, "F32", saved.shape, data)

    def parameters_sha256(self) -> str:
        """The hash of all parameters, as a run's last line has it; running statistics are not in it."""
        sha = hashlib.sha256()
        for name in sorted(self.shapes("parameter"), key=str.encode):
            sha.update(self.read(name).data)
        return sha.hexdigest()

    def damage(self) -> list[str]:
        """Reads everything, as `lockstep checkpoint verify` does; a message for each file that is not as it was written."""
        found = []
        for file in self.manifest.files:
            try:
                self._verify(file)
            except (DamagedError, MissingError) as error:
                found.append(str(error))
        return found

    def verify(self) -> None:
        """Reads everything. Raises DamagedError or MissingError at the first damage."""
        for file in self.manifest.files:
            self._verify(file)

    def __repr__(self) -> str:
        return f"Checkpoint({self.path}: step {self.step}, {len(self)} tensors)"

    def _require_size(self, name, saved):
        path = f"{self.path}/{name}"
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            raise MissingError(path, f"the {saved.bytes:,} bytes that the manifest lists", "no such file", GONE) from None
        if size != saved.bytes:
            what = "truncated" if size < saved.bytes else "longer than it was written"
            raise DamagedError(path, f"{saved.bytes:,} bytes, as the manifest says", f"{size:,}, it is {what}", REMEDY)

    def _header(self, name, file) -> Header:
        if name not in self._headers:
            path, saved = f"{self.path}/{name}", self.manifest.files[name]
            header = read_header(file, path, REMEDY)
            if saved.header_sha256:
                _require_sha(hashlib.sha256(header.raw).hexdigest(), saved.header_sha256, f"{path}: header")
            self._headers[name] = header
        return self._headers[name]

    def _read_piece(self, piece: Piece, saved: Saved, into: memoryview) -> None:
        path = f"{self.path}/{piece.file}"
        if self.manifest.files[piece.file].sha256:
            self._verify(piece.file)  # format 1: of whole files
        with open_file(path, GONE) as file:
            entry = self._header(piece.file, file).entries.get(piece.name)
            shape = saved.shape if len(saved.pieces) == 1 else (piece.end - piece.begin,)
            if entry is None or (entry.dtype, entry.shape) != ("F32", shape):
                found = "none" if entry is None else f"{entry.dtype} {list(entry.shape)}"
                raise DamagedError(path, f"a tensor '{piece.name}', F32 {list(shape)}", found, REMEDY)
            read_bytes(file, entry, into, path, REMEDY)
        if piece.sha256:
            _require_sha(hashlib.sha256(into).hexdigest(), piece.sha256, f"{path}: tensor '{piece.name}'")

    def _verify(self, name):
        saved = self.manifest.files[name]
        self._require_size(name, saved)
        if saved.sha256:
            path = f"{self.path}/{name}"
            sha = hashlib.sha256()
            with open_file(path, GONE) as file:
                while chunk := file.read(_CHUNK):
                    sha.update(chunk)
            _require_sha(sha.hexdigest(), saved.sha256, path)
            return
        for tensor in self._tensors.values():
            for piece in tensor.pieces:
                if piece.file == name:
                    self._read_piece(piece, tensor, memoryview(bytearray(4 * (piece.end - piece.begin))))

    def _tensors_of_files(self) -> dict[str, Saved]:
        entries: dict[str, tuple[str, Entry]] = {}
        for file in self.manifest.files:
            with open_file(f"{self.path}/{file}", GONE) as opened:
                entries |= {name: (file, entry) for name, entry in self._header(file, opened).entries.items()}
        return {name: Saved(entry.shape, kind_of(name, entries), (Piece(file, name, 0, elements(entry.shape), ""),))
                for name, (file, entry) in entries.items()}


def _require_sha(found: str, expected: str, place: str) -> None:
    if found != expected:
        raise DamagedError(place, f"the manifest's SHA-256, {expected}", found, REMEDY)


def step_of(name: str) -> int | None:
    """The step of a checkpoint's folder; None for any other name."""
    found = re.fullmatch(r"step-(\d+)", name)
    return int(found[1]) if found else None


def list_checkpoints(folder: str) -> list[str]:
    """Folders in a run's `checkpoints` that have a manifest, newest first; none if there is no such folder."""
    try:
        steps = {name: step for name in os.listdir(folder) if (step := step_of(name)) is not None}
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [f"{folder}/{name}" for name in sorted(steps, key=steps.__getitem__, reverse=True)
            if os.path.exists(f"{folder}/{name}/manifest.json")]


def open_checkpoint(path: str | os.PathLike) -> Checkpoint:
    """Opens a checkpoint's folder."""
    return Checkpoint(path)
