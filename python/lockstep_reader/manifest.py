"""manifest.json: what a checkpoint holds, and the SHA-256 of every byte of it. docs/checkpoints.md has the format."""
import dataclasses
import hashlib
import json

from .errors import DamagedError, UnsupportedError
from .events import number
from .tensor import elements

FORMAT = 2
REMEDY = "take another checkpoint of the run; 'lockstep checkpoint verify RUN' says which are sound"


@dataclasses.dataclass(frozen=True)
class Piece:
    """Elements [begin, end) of a flat tensor, in a file, under this name."""
    file: str
    name: str
    begin: int
    end: int
    sha256: str  # of its bytes; empty in format 1


@dataclasses.dataclass(frozen=True)
class Saved:
    """A tensor of a checkpoint. `kind` is "parameter", "state" (running statistics) or "optimizer"."""
    shape: tuple[int, ...]
    kind: str
    pieces: tuple[Piece, ...]


@dataclasses.dataclass(frozen=True)
class SavedFile:
    bytes: int
    header_sha256: str  # empty in format 1
    sha256: str  # of the whole file; only in format 1


@dataclasses.dataclass(frozen=True)
class Manifest:
    raw: dict  # all of it, as it is written
    metrics: dict[str, float]
    files: dict[str, SavedFile]
    tensors: dict[str, Saved] | None  # None in format 1: they are those of the files

    @property
    def format(self) -> int:
        return self.raw["format"]


def kind_of(name: str, names) -> str:
    """Of a tensor among all of a checkpoint. A state of the optimizer has its parameter's name before a colon."""
    if name.rpartition(":")[0] in names:
        return "optimizer"
    return "state" if name.endswith((".running_mean", ".running_variance")) else "parameter"


def parse_manifest(text: bytes, path: str) -> Manifest:
    """Raises DamagedError, or UnsupportedError if a newer lockstep wrote it."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise DamagedError(path, "the JSON that was written", f"{len(text):,} bytes of something else", REMEDY)
    found = raw.get("format")
    if not isinstance(found, int) or found < 1:
        raise DamagedError(path, f"a format from 1 to {FORMAT}", repr(found), REMEDY)
    if found > FORMAT:
        raise UnsupportedError(path, f"a format from 1 to {FORMAT}", str(found), "take a newer lockstep_reader")
    if found > 1:
        _require_seal(text, raw, path)
    try:
        return _read(raw, path)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(path, "what a manifest holds", f"something else ({type(error).__name__}: {error})",
                           REMEDY) from None


def _require_seal(text, raw, path):
    at = text.rfind(b'"manifest_sha256"')
    found = hashlib.sha256(text[:at]).hexdigest()
    if at < 0 or raw.get("manifest_sha256") != found:
        raise DamagedError(path, f"the SHA-256 of its last line, {raw.get('manifest_sha256', 'which is missing')}", found,
                           REMEDY)


def _read(raw, path) -> Manifest:
    files = {name: SavedFile(int(entry["bytes"]), entry.get("header_sha256", ""), entry.get("sha256", ""))
             for name, entry in raw["files"].items()}
    for name in files:  # nothing outside of the checkpoint is read, whatever a manifest says
        if not name or "/" in name:
            raise DamagedError(path, "names of files beside it", repr(name), REMEDY)
    tensors = None
    if "tensors" in raw:
        names = raw["tensors"].keys()
        tensors = {name: Saved(tuple(map(int, entry["shape"])), kind_of(name, names), _pieces(name, entry))
                   for name, entry in raw["tensors"].items()}
        for name, saved in tensors.items():
            _require_whole(name, saved, files, path)
    metrics = {name: float("nan") if value is None else number(value) for name, value in raw["metrics"].items()}
    return Manifest(raw | {"step": int(raw["step"]), "samples": int(raw["samples"])}, metrics, files, tensors)


def _pieces(name, entry) -> tuple[Piece, ...]:
    whole = len(entry["pieces"]) == 1
    return tuple(Piece(piece["file"], name if whole else f"{name}[{piece['begin']}:{piece['end']}]", piece["begin"],
                       piece["end"], piece["sha256"]) for piece in entry["pieces"])


def _require_whole(name, saved, files, path):
    at = 0
    for piece in saved.pieces:
        if piece.file not in files:
            raise DamagedError(path, f"tensor '{name}' in files that it lists", repr(piece.file), REMEDY)
        if piece.begin != at or piece.end < at:
            break
        at = piece.end
    else:
        if at == elements(saved.shape):
            return
    raise DamagedError(path, f"pieces that make tensor '{name}' of {list(saved.shape)} whole",
                       ", ".join(f"{piece.begin} to {piece.end}" for piece in saved.pieces) or "none", REMEDY)
