"""events.jsonl, and what `--log json` prints: an object a line.

A line is taken when its end is there, so a run may be writing while it is read. Numbers that are not finite, which the
file has as texts, become float('nan'), float('inf') or -float('inf'); numbers by rank have ranks as keys. Kinds and fields
that this version does not know are passed on as they are. docs/events.md lists all.
"""
import contextlib
import json
import os
import re
import typing
from collections.abc import Iterator

from . import event_types
from .errors import DamagedError, MissingError

KINDS: dict[str, dict[str, typing.Any]] = {
    typing.get_type_hints(kind)["event"].__args__[0]: typing.get_type_hints(kind)
    for kind in typing.get_args(event_types.Event)}
_NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_BEGINNING = re.compile(rb'\{"event":"(\w+)"')
_ARTICLES = {bool: "a boolean", int: "an integer", float: "a number", str: "a text", dict[str, float]: "numbers by name",
             dict[int, float]: "numbers by rank"}


def number(value) -> float:
    """A JSON number, or the text of one that is not finite. Raises ValueError for anything else."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(value)
    return float(value)


def _rank(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError(text)
    return int(text)


def _read_field(value, kind):
    if kind is float:
        return number(value)
    if kind in (dict[str, float], dict[int, float]):
        if not isinstance(value, dict):
            raise ValueError(value)
        by_rank = kind == dict[int, float]
        return {_rank(name) if by_rank else name: number(item) for name, item in value.items()}
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(value)
    return value


def parse_event(line: str | bytes, place: str = "an event") -> event_types.Event:
    """The event of a line. Raises DamagedError, which names `place`, if it is none."""
    found: typing.Any = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        text = line if isinstance(line, str) else line.decode("utf-8", "replace")
        raise DamagedError(place, "an event, a JSON object with the key 'event'", repr(text.strip()[:60]),
                           "leave the line out (strict=False)")
    fields = KINDS.get(found["event"])
    if fields is None:
        return typing.cast(event_types.Event, found)
    event: typing.Any = {}
    for name, value in found.items():
        try:
            event[name] = value if name == "event" or name not in fields else _read_field(value, fields[name])
        except ValueError:
            raise DamagedError(place, f"{_ARTICLES[fields[name]]} as '{name}' of '{found['event']}'",
                               json.dumps(value)[:60], "leave the line out (strict=False)") from None
    return event


class EventLog:
    """A file of events that may still be written: new() returns what has been added since the last call.

    With `strict` a line that is no event raises DamagedError; else it is left out and counted in `damaged`, as the
    program does it: a full disk may leave a gap.
    """

    def __init__(self, path: str | os.PathLike, strict: bool = False):
        self.path, self.strict, self.damaged = os.fspath(path), strict, 0
        self._offset, self._line = 0, 0

    def new(self, *kinds: str) -> list[event_types.Event]:
        """The events since the last call, of these kinds, or all. Empty if the file is not there yet."""
        return list(self.iterate(*kinds))

    def iterate(self, *kinds: str) -> Iterator[event_types.Event]:
        """The same, one after the other, so that a long file need not be in memory."""
        require_known(kinds, self.path)
        try:
            file = open(self.path, "rb")
        except FileNotFoundError:
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            if size < self._offset:
                raise DamagedError(self.path, f"at least the {self._offset:,} bytes that were read", f"{size:,}",
                                   "it has been replaced: open it anew")
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # is still being written
                self._offset += len(line)
                self._line += 1
                begins = _BEGINNING.match(line)
                if kinds and begins and begins[1].decode() not in kinds and not self.strict:
                    continue  # as the program writes them: it need not be parsed
                try:
                    event = parse_event(line, f"{self.path}:{self._line}")
                except DamagedError:
                    if self.strict:
                        raise
                    self.damaged += 1
                    continue
                if not kinds or event["event"] in kinds:
                    yield event


def read_events(path: str | os.PathLike, *kinds: str, strict: bool = False) -> list[event_types.Event]:
    """All events of a file, or of a run directory's events.jsonl, or those of some kinds. Raises MissingError if there is
    no such file."""
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "events.jsonl")
    if not os.path.exists(path):
        raise MissingError(path, "the events of a run", "no such file", "name a run directory; a job with checkpoint: never "
                           "keeps no events")
    return EventLog(path, strict).new(*kinds)


def require_known(kinds: tuple[str, ...], path: str) -> None:
    """Raises MissingError for a kind that no event has."""
    for kind in kinds:
        if kind not in KINDS:
            raise MissingError(path, f"a kind of event ({', '.join(KINDS)})", f"'{kind}'", "see docs/events.md")
