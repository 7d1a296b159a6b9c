"""python -m lockstep_reader summary RUN: what a run has come to, in a few lines. Exits with 65 where it cannot be read."""
import argparse
import math
import sys
import time
from typing import Any

from .errors import ReaderError
from .run import open_run


def summary(path: str) -> str:
    run = open_run(path)
    status = run.status()
    starts = list(run.events("start"))
    start: Any = starts[-1] if starts else {}
    validation = run.validation().last()
    rows = [("run", f"{run.path}: {start.get('job', 'no job yet')}"),
            ("state", f"{status.state}, step {status.step:,} of {status.steps:,}{_age(status)}"),
            ("ranks", _ranks(start) if start else "none yet")]
    rows += [("training", f"loss {status.loss:.4f}, epoch {status.epoch}")] if status.step else []
    if validation:
        rows.append(("validation", "  ".join(f"{name} {_number(value)}" for name, value in validation.items()
                                             if name not in ("step", "time")) + f"  at step {validation['step']:,}"))
        best = run.best(None if validation.keys() >= {run.default_metric()} else "loss")
        rows.append(("best", f"{best.metric} {best.value:.4f} at step {best.step:,}"))
    steps = [f"{int(path.rpartition('-')[2]):,}" for path in run.checkpoints()]
    rows.append(("checkpoints", ", ".join(steps) or "none"))
    if status.warnings:
        rows.append(("warnings", str(status.warnings)))
    if steps or status.is_over:
        rows.append(("sha256", run.parameters_sha256 + ("" if status.is_over else ", of the newest checkpoint")))
    return "\n".join(f"{name:<12} {text}" for name, text in rows)


def _ranks(start) -> str:
    hosts, threads, pieces = (f"{start.get(name, 0)} {one if start.get(name) == 1 else many}" for name, one, many in (
        ("hosts", "host", "hosts"), ("threads", "thread", "threads"), ("micro_batches", "micro-batch", "micro-batches")))
    return f"{start.get('ranks', 0)} on {hosts}, {threads} each; a batch of {start.get('batch_size', 0)} in {pieces}"


def _number(value) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _age(status) -> str:
    age = time.time() - status.last_event
    return "" if status.is_over or math.isnan(age) else f", last heard of {age:.0f} s ago"


def main() -> int:
    parser = argparse.ArgumentParser("python -m lockstep_reader", description="Reads what lockstep leaves behind.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("summary", help="what a run has come to")
    command.add_argument("run", help="its run directory")
    try:
        print(summary(parser.parse_args().run))
        return 0
    except ReaderError as error:
        print(f"lockstep_reader: {error}", file=sys.stderr)
        return 65


if __name__ == "__main__":
    sys.exit(main())
