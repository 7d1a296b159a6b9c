#!/usr/bin/env python3
"""Writes python/lockstep_reader/event_types.py: the events of a run as types, as the program describes them.

    scripts/python_events.py            rewrites it in place
    scripts/python_events.py --check    changes nothing; exits with 1 and shows what is not current

The program is $LOCKSTEP, or build/release/bin/lockstep by default.
"""
import os
import pathlib
import re
import subprocess
import textwrap

from current import keep_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = {"text": "str", "integer": "int", "number": "float", "boolean": "bool", "numbers by rank": "dict[int, float]",
         "numbers by name": "dict[str, float]"}
WIDTH = 125  # of a line
HEAD = '''"""The events of a run. Written by scripts/python_events.py from `lockstep events --markdown`."""
from collections.abc import Iterator
from typing import Literal, NotRequired, TypedDict, overload
'''
SOURCE = '''

class EventSource:
    """Whatever has events: for a type checker, events("step") gives steps."""

    def _iterate(self, kinds: tuple[str, ...], strict: bool) -> Iterator[Event]:
        raise NotImplementedError
{overloads}
    @overload
    def events(self, *kinds: str, strict: bool = ...) -> Iterator[Event]: ...

    def events(self, *kinds, strict=False):
        """All events so far in the order of the file, or those of some kinds; repeated steps are in it twice. Lines that
        are damaged are left out, or raise DamagedError with `strict`."""
        return self._iterate(kinds, strict)
'''
OVERLOAD = '''
    @overload
    def events(self, kind: Literal["{event}"], /, *, strict: bool = ...) -> Iterator[{name}]: ...
'''


def rows():
    """(event, field, type, unit, meaning) of each line of the table; the field of an event's own line is empty."""
    program = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
    table = subprocess.run([program, "events", "--markdown"], capture_output=True, check=True, text=True).stdout
    event = ""
    for line in table.splitlines()[2:]:
        name, field, kind, unit, meaning = (cell.strip("`") for cell in line[1:-1].split("|"))
        event = name or event
        yield event, field, kind, unit, meaning


def class_name(event):
    return "".join(word.capitalize() for word in event.split("_"))


def field_of(name, python, comment):
    """The comment stands behind it, or above it where the line would be too long."""
    line = f"    {name}: {python}"
    if len(line) + len(comment) + 4 <= WIDTH:
        return f"{line}  # {comment}\n"
    above = textwrap.wrap(comment, WIDTH, initial_indent="    # ", subsequent_indent="    # ")
    return "\n".join([*above, line]) + "\n"


def text_of(table):
    text, names = HEAD, []
    for event, field, kind, unit, meaning in table:
        if not field:
            if names:
                text += "    time: NotRequired[float]  # Unix seconds; in events.jsonl only\n"
            names.append(class_name(event))
            text += f'\n\nclass {names[-1]}(TypedDict):\n    """{meaning}"""\n    event: Literal["{event}"]\n'
            continue
        found = re.fullmatch(r"(.*?)(\?)?", kind)
        python = TYPES[found[1]]
        text += field_of(field, f"NotRequired[{python}]" if found[2] else python, f"{unit}; {meaning}" if unit else meaning)
    text += "    time: NotRequired[float]  # Unix seconds; in events.jsonl only\n"
    union = " | ".join(names).replace(" | Checkpoint", "\n         | Checkpoint")
    events = dict.fromkeys(row[0] for row in table)
    overloads = "".join(OVERLOAD.format(event=event, name=class_name(event)) for event in events)
    return f"{text}\n\nEvent = ({union})\n" + SOURCE.format(overloads=overloads)


if __name__ == "__main__":
    keep_files({ROOT / "python/lockstep_reader/event_types.py": text_of(list(rows()))}, "scripts/python_events.py")
