"""What the events of a run add up to, over all of its starts: pure functions of a list of events."""
import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from .columns import Columns
from .errors import MissingError

# How the metrics of docs/losses-and-metrics.md are better; `loss` is always there.
HIGHER_IS_BETTER = {"accuracy": True, "top5": True, "perplexity": False, "mae": False, "rmse": False,
                    "binary_accuracy": True, "precision": True, "recall": True, "f1": True, "iou": True, "auc": True,
                    "r2": True, "macro_precision": True, "macro_recall": True, "macro_f1": True, "mean_iou": True, "loss": False}
DIRECTIONS = ("auto", "maximize", "minimize")


@dataclasses.dataclass(frozen=True)
class Best:
    """The best evaluation by a metric; of equal ones the first."""
    metric: str
    value: float
    step: int


@dataclasses.dataclass(frozen=True)
class Status:
    """What a run has come to.

    `state` is "not started"; "running", if a process of this machine holds the run directory; "unfinished", if the events
    have no end and no such process is known: it runs on another host, or has died; "given up" by the launch; or the outcome
    of the run's end: "done", "stopped early", "interrupted".
    """
    state: str
    step: int = 0
    steps: int = 0  # of the whole job
    epoch: int = 0
    loss: float = math.nan  # of the last step
    starts: int = 0
    warnings: int = 0
    last_event: float = math.nan  # Unix seconds

    @property
    def is_over(self) -> bool:
        return self.state not in ("not started", "running", "unfinished")


def once(events: Iterable[Any]) -> list[dict]:
    """Steps or evaluations without those that were done again after a restart: the last report of each counts. One that
    does not say its step is damaged, and left out."""
    kept: list[dict] = []
    for event in events:
        if "step" not in event:
            continue
        while kept and kept[-1]["step"] >= event["step"]:
            kept.pop()
        kept.append(event)
    return kept


def columns_of(events: Iterable[Any]) -> Columns:
    """Steps or evaluations, each once, a metric as a column of its own."""
    rows = []
    for event in once(events):
        first = {name: event[name] for name in ("step", "epoch", "loss") if name in event} | event.get("metrics", {})
        rows.append(first | {name: value for name, value in event.items()
                             if name not in ("event", "metrics", "set", *first)})
    return Columns(rows)


def directions_of(starts: Iterable[Any], metrics: Iterable[str]) -> dict[str, bool]:
    """Whether more of a metric is better: as the run's start says of all of the job's but those of a class, as disc/iou;
    else of lockstep's own."""
    said = [start["higher_is_better"].split() for start in starts if "higher_is_better" in start]
    return HIGHER_IS_BETTER | {metric: metric in said[-1] for metric in metrics
                               if said and (metric in said[-1] or "/" not in metric)}


def direction_of(metric: str, known_directions: dict[str, bool]) -> bool | None:
    """Whether more of it is better; None if nobody says so. Of several losses the name of one precedes: kind/accuracy."""
    return known_directions.get(metric, HIGHER_IS_BETTER.get(metric.rpartition("/")[2]))


def best_of(validation: Columns, metric: str, direction: str, known_directions: dict[str, bool], place: str) -> Best:
    """Raises MissingError if the metric was not evaluated, or nobody says whether more of it is better."""
    if direction not in DIRECTIONS:
        raise MissingError("direction", f"one of {', '.join(DIRECTIONS)}", f"'{direction}'", "auto is the default")
    if direction == "auto" and direction_of(metric, known_directions) is None:
        raise MissingError(f"metric '{metric}'", "a metric of lockstep's own", "another",
                           "say direction='maximize' or direction='minimize'")
    higher = direction_of(metric, known_directions) if direction == "auto" else direction == "maximize"
    best = None
    for step, value in zip(validation.get("step", []), validation.get(metric, [])):
        if value is None or math.isnan(value):
            continue
        if best is None or (value > best.value if higher else value < best.value):
            best = Best(metric, value, step)
    if best is None:
        known = ", ".join(name for name in validation if direction_of(name, known_directions) is not None) or "none"
        raise MissingError(place, f"an evaluation with a finite '{metric}'", known,
                           "name one of the job's metrics, and a job with evaluate")
    return best


def is_end(event: Any) -> bool:
    """Whether nothing follows by itself: the run has ended, or its launch has given up."""
    return event["event"] == "end" or (event["event"] == "restart" and event.get("reason") == "given up")


def status_of(events: list[Any], locked: bool | None) -> Status:
    """`locked`: whether somebody is known to hold the run directory."""
    state, starts, warnings = "", 0, 0
    start: dict = {}
    step: dict = {}
    for event in events:
        kind = event["event"]
        if kind in ("start", "launch"):
            state = "unfinished"
            start = event if kind == "start" else start
            starts += kind == "start"
        elif kind == "step":
            step = event
        elif kind == "end":
            state = "done" if event.get("outcome") == "already finished" else event.get("outcome", "done")
        elif is_end(event):
            state = "given up"
        elif kind == "warning":
            warnings += 1
    if state in ("", "unfinished"):
        state = "running" if locked else state or "not started"
    return Status(state, _step_reached(events), start.get("steps", 0), step.get("epoch", 0), step.get("loss", math.nan),
                  starts, warnings, events[-1].get("time", math.nan) if events else math.nan)


def _step_reached(events) -> int:
    """Steps done: a restart goes back to its checkpoint."""
    step = 0
    for event in events:
        if event["event"] == "step" or (event["event"] == "restart" and "path" in event):
            step = event.get("step", step)
        elif event["event"] == "end":
            step = event.get("steps", step)
    return step
