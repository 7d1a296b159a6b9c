"""A sweep's directory: its trials and the best of them, from trials.json or trials.csv, which the sweep replaces whole."""
import csv
import dataclasses
import json
import os

from .columns import Columns
from .errors import DamagedError, MissingError
from .run import Run, open_run

_REMEDY = "name the directory of a sweep, sweeps/<name> by default"
_FIXED = ("trial", "state", "value", "steps", "device_seconds", "failures", "message", "parameters_sha256")
_COPIED = ("from_trial", "from_step")  # of a population


@dataclasses.dataclass(frozen=True)
class Trial:
    """`state` is "waiting", "paused", "done" or "failed"; `value` that of the sweep's metric, None before the first."""
    number: int
    state: str
    value: float | None
    steps: int
    settings: dict[str, object]
    metrics: dict[str, float]
    device_seconds: float
    failures: int
    message: str
    parameters_sha256: str
    directory: str  # where the sweep has its run; "" where that is not known
    copied: tuple[int, int] | None = None  # in a population, the trial and the step that it went on from; None: step 0

    def run(self) -> Run:
        """Its run directory. Raises MissingError if it is not there."""
        return open_run(self.directory or f"trials/{self.number:04}")


@dataclasses.dataclass(frozen=True)
class Sweep:
    path: str
    name: str
    method: str
    metric: str
    direction: str
    seed: int
    trials: list[Trial]
    best: Trial | None  # as the sweep says; None before the first trial has a value

    def table(self) -> Columns:
        """A row for each trial: number, state, value, steps, its settings, and validation_<metric>."""
        settings = dict.fromkeys(name for trial in self.trials for name in trial.settings)
        return Columns([_row(trial, settings) for trial in self.trials])

    def ranked(self) -> list[Trial]:
        """Trials with a value, the best first. A paused trial was trained less than one that is done."""
        sign = -1 if self.direction == "maximize" else 1
        found = [(sign * trial.value, trial.number) for trial in self.trials if trial.value is not None]
        return [self.trials[number] for _, number in sorted(found)]


def _row(trial: Trial, settings) -> dict:
    return {"trial": trial.number, "state": trial.state, "value": trial.value, "steps": trial.steps,
            **{name: trial.settings.get(name) for name in settings},
            **{f"validation_{name}": value for name, value in trial.metrics.items()},
            "device_seconds": trial.device_seconds, "failures": trial.failures,
            "parameters_sha256": trial.parameters_sha256}


def open_sweep(path: str | os.PathLike) -> Sweep:
    """Reads a sweep's trials.json. Raises MissingError or DamagedError."""
    directory = os.fspath(path).rstrip("/")
    file = f"{directory}/trials.json"
    try:
        with open(file, encoding="utf-8") as opened:
            found = json.load(opened)
        trials = [_trial(entry, directory) for entry in found["trials"]]
        best = None if found["best"] is None else trials[found["best"]]
        return Sweep(directory, found["sweep"], found["method"], found["metric"], found["direction"], found["seed"], trials,
                     best)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError(file, "the trials of a sweep", "no such file", _REMEDY) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DamagedError(file, "the trials of a sweep", f"something else ({type(error).__name__}: {error})",
                           "run the sweep's command again, which writes it anew") from None


def _trial(entry: dict, directory: str) -> Trial:
    copied = entry.get("from")
    return Trial(entry["trial"], entry["state"], entry["value"], entry["steps"], entry["settings"], entry["metrics"],
                 entry["device_seconds"], entry["failures"], entry["message"], entry["parameters_sha256"],
                 f"{directory}/trials/{entry['trial']:04}", (copied["trial"], copied["step"]) if copied else None)


def read_trials_csv(path: str | os.PathLike) -> list[Trial]:
    """The trials of a trials.csv alone, such as one that was mailed. Settings are numbers where they look so."""
    path = os.fspath(path)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [_trial_of_row(row) for row in rows]
    except FileNotFoundError:
        raise MissingError(path, "the trials of a sweep", "no such file", _REMEDY) from None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(path, f"columns {', '.join(_FIXED)}", f"something else ({type(error).__name__}: {error})",
                           "run the sweep's command again, which writes it anew") from None


def _trial_of_row(row: dict) -> Trial:
    others = {name: text for name, text in row.items() if name not in _FIXED + _COPIED and text != ""}
    metrics = {name.removeprefix("validation_"): float(text) for name, text in others.items() if _is_metric(name)}
    settings = {name: _value(text) for name, text in others.items() if not _is_metric(name)}
    copied = (int(row["from_trial"]), int(row["from_step"])) if row.get("from_trial") else None
    return Trial(int(row["trial"]), row["state"], float(row["value"]) if row["value"] else None, int(row["steps"]), settings,
                 metrics, float(row["device_seconds"]), int(row["failures"]), row["message"], row["parameters_sha256"], "",
                 copied)


def _is_metric(name: str) -> bool:
    return name.startswith("validation_")


def _value(text: str):
    """A cell of settings: JSON, or a text without its quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text
