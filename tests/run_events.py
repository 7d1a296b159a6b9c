"""What runs and sweeps record while they go on, for tests in several folders. A line that is still being written is left
out: its first bytes may be seen before the rest."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from lockstep_reader import EventLog  # noqa: E402  pylint: disable=wrong-import-position


def events_of(directory, *kinds):
    """All events so far, or those of some kinds; none before the run has begun. A line that is no event is an error. Numbers
    by rank have integers as keys."""
    return EventLog(pathlib.Path(directory) / "events.jsonl", strict=True).new(*kinds)


def records_of(directory, kind):
    """Records of one kind in a sweep's journal so far; none before the sweep has begun."""
    file = pathlib.Path(directory) / "journal.jsonl"
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [record for record in map(json.loads, lines) if record["record"] == kind]
