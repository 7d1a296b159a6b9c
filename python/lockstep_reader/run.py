"""A run directory: what its job is, how far it has come, its curves, its checkpoints.

Every call reads the files anew, and none writes or locks anything: a run may go on while it is read.
"""
import json
import os
import time
from collections.abc import Iterator

from . import history
from .checkpoint import Checkpoint, list_checkpoints
from .columns import Columns
from .errors import DamagedError, MissingError, ReaderError
from .event_types import Event, EventSource
from .events import EventLog, require_known
from .locks import is_locked

_SIGNS = ("events.jsonl", "checkpoints", "lock", "launch.lock", "job.yaml")


class Run(EventSource):
    def __init__(self, path: str | os.PathLike):
        """Raises MissingError if it is not a run directory."""
        self.path = os.fspath(path).rstrip("/") or "/"
        if not os.path.isdir(self.path):
            raise MissingError(self.path, "a run directory", "no such folder",
                               "name the job's run_directory, runs/<name> by default")
        if not any(os.path.exists(f"{self.path}/{sign}") for sign in _SIGNS):
            raise MissingError(self.path, f"a run directory, with {' or '.join(_SIGNS[:2])}", "a folder without them",
                               "name the job's run_directory; a job with checkpoint: never leaves nothing there")

    # Events.

    def log(self, strict: bool = False) -> EventLog:
        """Its events, from the first on; log().new() can be asked again and again."""
        return EventLog(f"{self.path}/events.jsonl", strict)

    def _iterate(self, kinds: tuple[str, ...], strict: bool) -> Iterator[Event]:
        return self.log(strict).iterate(*kinds)

    def follow(self, *kinds: str, every: float = 1.0, timeout: float | None = None) -> Iterator[Event]:
        """All events so far, then new ones as they come, until the run ends; at most until nothing has come for
        `timeout` seconds. Looks `every` so many seconds."""
        log, heard = self.log(), time.monotonic()
        require_known(kinds, log.path)
        while True:
            ended = False
            for event in log.new():
                heard = time.monotonic()
                ended = history.is_end(event) or (ended and event["event"] not in ("start", "launch"))
                if not kinds or event["event"] in kinds:
                    yield event
            if ended or (timeout is not None and time.monotonic() - heard > timeout):
                return
            time.sleep(every)

    # What they add up to.

    def status(self) -> history.Status:
        """How far it has come, and whether it is over."""
        locked = is_locked(f"{self.path}/lock") or is_locked(f"{self.path}/launch.lock")
        return history.status_of(list(self.events()), locked)

    def training(self) -> Columns:
        """A row for each step that the events have: step, epoch, loss, learning_rate, each metric, and what the event
        has besides. Steps that were done again after a restart are there once."""
        return history.columns_of(self.events("step"))

    def validation(self, name: str = "validation") -> Columns:
        """A row for each evaluation of a set: step, loss, each metric."""
        return history.columns_of(event for event in self.events("eval") if event.get("set", name) == name)

    def best(self, metric: str | None = None, direction: str = "auto") -> history.Best:
        """The best evaluation by a metric: checkpoint.best of the job, else its first metric, else the loss. `direction`
        is "maximize" or "minimize" where neither the run nor lockstep's own list of metrics says which it is."""
        validation = self.validation()
        known = history.directions_of(self.events("start"), [name for name in validation if name not in ("step", "loss", "time")])
        return history.best_of(validation, metric or self.default_metric(), direction, known, self.path)

    @property
    def parameters_sha256(self) -> str:
        """The hash of the trained parameters, which is the run's result: of the last `end`, else of the newest checkpoint.
        """
        ends = list(self.events("end"))
        if ends and "parameters_sha256" in ends[-1] and self.status().is_over:
            return ends[-1]["parameters_sha256"]
        return self.checkpoint("newest").parameters_sha256()

    # The job and its checkpoints.

    def job(self) -> dict:
        """The job with every default, of the newest checkpoint, or as `lockstep launch` or a sweep wrote it."""
        for path in self.checkpoints():
            try:
                return Checkpoint(path).job
            except ReaderError:
                continue
        found = "none"
        try:
            with open(f"{self.path}/job.yaml", encoding="utf-8") as file:
                return json.load(file)["job"]
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError):
            found = "a job.yaml that is not JSON"
        raise MissingError(self.path, "a checkpoint or a job.yaml of 'lockstep launch', which have the job", found,
                           "wait for the first checkpoint")

    def checkpoints(self) -> list[str]:
        """The folders of its checkpoints, newest first."""
        return list_checkpoints(f"{self.path}/checkpoints")

    def checkpoint(self, which: str | int = "auto", verify: bool = False) -> Checkpoint:
        """The "newest" checkpoint whose manifest and sizes are as they were written, the "best" one (of checkpoint.best),
        or that of a step. "auto" is what every command of lockstep uses: the best if the job has early_stop.restore_best,
        else the newest. With `verify` all of its bytes are read, and a newest one that is damaged is passed over, too.
        Raises MissingError or DamagedError."""
        if which == "auto":
            which = "best" if (self._newest(False).job.get("early_stop") or {}).get("restore_best") else "newest"
        if which == "newest":
            return self._newest(verify)
        if isinstance(which, str) and which != "best":
            raise MissingError(f"{self.path}: checkpoint", "'auto', 'newest', 'best' or a step", repr(which),
                               "open_checkpoint() takes a folder")
        name = self._best_name() if which == "best" else f"step-{which:08}"
        path = f"{self.path}/checkpoints/{name}"
        if not os.path.exists(f"{path}/manifest.json"):
            steps = ", ".join(str(int(other.rpartition("-")[2])) for other in self.checkpoints()) or "none"
            raise MissingError(self.path, f"the checkpoint {name}", f"those of steps {steps}",
                               "checkpoint.keep says how many stay")
        checkpoint = Checkpoint(path)
        if verify:
            checkpoint.verify()
        return checkpoint

    def _newest(self, verify) -> Checkpoint:
        damaged = []
        for path in self.checkpoints():
            try:
                checkpoint = Checkpoint(path)
                if verify:
                    checkpoint.verify()
                return checkpoint
            except (DamagedError, MissingError) as error:  # it may have been removed meanwhile
                damaged.append(str(error))
        found = f"only damaged ones: {'; '.join(damaged)}" if damaged else "none"
        raise MissingError(f"{self.path}/checkpoints", "a checkpoint", found, "wait for the first one, or train the job")

    def _best_name(self) -> str:
        try:
            with open(f"{self.path}/checkpoints/best", encoding="utf-8") as file:
                name = file.read().strip()
        except FileNotFoundError:
            raise MissingError(f"{self.path}/checkpoints/best", "the name of the best checkpoint", "no such file",
                               "set checkpoint.best to a metric when training") from None
        if not name or "/" in name:
            raise DamagedError(f"{self.path}/checkpoints/best", "the name of a checkpoint", repr(name),
                               "name its step instead")
        return name

    def default_metric(self) -> str:
        """What best() asks for where nobody says: checkpoint.best of the job, else its first metric, else the loss."""
        try:
            job = self.job()
        except MissingError:
            return "loss"
        wanted = job.get("checkpoint")
        if isinstance(wanted, dict) and isinstance(wanted.get("best"), str) and wanted["best"] != "never":
            return wanted["best"]
        first = next(iter(job.get("metrics", [])), "loss")
        return first if isinstance(first, str) else next(iter(first))

    def __repr__(self) -> str:
        return f"Run({self.path})"


def open_run(path: str | os.PathLike) -> Run:
    """Opens a run directory."""
    return Run(path)
