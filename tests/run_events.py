"""The events of a run directory, for tests in several folders: read by python/lockstep_reader."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from lockstep_reader import EventLog  # noqa: E402  pylint: disable=wrong-import-position


def events_of(directory, *kinds):
    """All events so far, or those of some kinds; none before the run has begun. A line that is no event is an error. Numbers
    by rank have integers as keys."""
    return EventLog(pathlib.Path(directory) / "events.jsonl", strict=True).new(*kinds)
