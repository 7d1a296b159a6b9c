"""The disturbed training: `lockstep launch` on emulated hosts, what its events say, and whether it is busy.

A moment is busy only if the events' own times, read after the fault, show it:
  steps       the attempt had done three steps or more, and its newest step was not older than five of its median
              steps (at least 0.25 s)
  checkpoint  in addition, a checkpoint's folder without its manifest existed just before and just after the fault
A fault at the start of an attempt, before its first step, is not busy.
"""
import dataclasses
import os
import pathlib
import statistics
import struct
import subprocess
import time

from launches import Launch, processes_of, wait_until
from store import Store

CONTROL = struct.Struct("iii")  # of shim.c
PATIENCE = 30  # seconds for any effect; few take more than three
FEW_STEPS, RECENT_STEPS, RECENT_SECONDS = 3, 5, 0.25


@dataclasses.dataclass
class Attempt:
    launch: dict
    steps: list = dataclasses.field(default_factory=list)  # (step, time)
    parts: list = dataclasses.field(default_factory=list)  # the ranks of each part; empty: the model is whole
    end: float = float("inf")

    def median_step(self):
        times = [at for _, at in self.steps[-40:]]
        return statistics.median(b - a for a, b in zip(times, times[1:])) if len(times) > 1 else 0.0

    def stepped_at(self, moment):
        """Whether steps were in progress at that time."""
        before = [at for _, at in self.steps if at <= moment]
        recent = max(RECENT_SECONDS, RECENT_STEPS * self.median_step())
        return len(before) >= FEW_STEPS and moment - before[-1] <= recent and moment < self.end


def is_here(process):
    try:
        return os.readlink(f"/proc/{process}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


class Training:
    def __init__(self, command, files, store):
        self.command, self.files, self.store = command, files, store
        self.launch = command()
        self.checkpoints = self.launch.directory / "checkpoints"
        self.heard = 0
        self.attempts, self.step, self.furthest_before, self.shares, self.claimed = [], 0, 0, None, []

    @classmethod
    def start(cls, hosts, directory, job, *words):
        """`job`: the job file, and settings that override it."""
        folder = pathlib.Path(directory).parent
        files, shim = folder / "files", folder / "shim.so"
        files.write_bytes(bytes(CONTROL.size))
        source = pathlib.Path(__file__).with_name("shim.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
        store, agent = Store(hosts, folder), folder / "agent"
        agent.write_text(f'#!/bin/sh\n[ ! -e {folder}/unfit-$1 ] || . {folder}/unfit-$1\nexec {hosts.agent} "$@"\n',
                         encoding="utf-8")
        agent.chmod(0o755)
        environment = {"LD_PRELOAD": str(shim), "CHAOS_FILES": str(files), **store.environment}
        job = [*job, "checkpoint.copy_to=s3://chaos/runs"]
        return cls(lambda: Launch(directory, "--agent", str(agent), *words, job=job, prefix=hosts.prefix(0),
                                  environment=environment, piped=True), files, store)

    def disturb_files(self, error=0, calls=0, milliseconds=0):
        """What shim.c does to calls on files of checkpoints from now on."""
        with open(self.files, "r+b") as file:
            file.write(CONTROL.pack(error, calls, milliseconds))

    def make_unfit(self, host, lines=None):
        """The lines are run on this host before each command of the launch; without them it is fit again."""
        file = self.files.with_name(f"unfit-{host}")
        if lines is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(lines + "\n", encoding="utf-8")

    def processes(self, here=False):
        """Those of the launch, the supervisor first; `here`: without those of other hosts."""
        found = [process for process, _ in processes_of(self.launch.directory)]
        return [self.launch.process.pid, *(process for process in found if not here or is_here(process))]

    def start_again(self):
        """Awaits the end of the launch, which something has asked to stop, and runs the same command again. Returns the
        step of the newest checkpoint in between; None if it did not end with 75."""
        if self.launch.wait(PATIENCE) != 75:
            return None
        self.events()
        self.attempt.end = time.time()
        newest, seen = self.finished(), self.launch.seen
        self.launch.abandon()
        self.launch = self.command()
        self.launch.seen = seen
        return int(newest[0].name.removeprefix("step-")) if newest else 0

    def events(self, since=0):
        """All events from this number on; processes new ones."""
        events = self.launch.events()
        for event in events[self.heard:]:
            self._take(event)
        self.heard = len(events)
        return events[since:]

    def _take(self, event):
        if event["event"] == "launch":
            self.attempts.append(Attempt(event))
            self.furthest_before, self.shares = max(self.furthest_before, self.step), None
        elif event["event"] == "step":
            self.attempts[-1].steps.append((event["step"], event["time"]))
            self.step = event["step"]
        elif event["event"] == "part":
            self.attempts[-1].parts.append([int(rank) for rank in event["ranks"].split()])
        elif event["event"] == "balance":
            self.shares = event["shares_by_rank"]
        elif event["event"] == "restart" and "reason" in event:
            self.attempts[-1].end = event["time"]

    @property
    def attempt(self):
        return self.attempts[-1]

    def wait(self, condition, what, patience=PATIENCE):
        """The first true value of `condition(training)`; None after `patience`."""
        def reached():
            self.events()
            if self.launch.process.poll() is not None:
                raise SystemExit(f"chaos: the training ended with {self.launch.process.returncode} while it was to "
                                 f"go on ({what}):\n{self.launch.output()[-4000:]}")
            return condition(self)
        try:
            return wait_until(reached, what, patience)
        except AssertionError:
            return None

    def wait_for_event(self, since, condition, what, patience=PATIENCE):
        """The first event from number `since` on that meets the condition; None after `patience`."""
        return self.wait(lambda _: next((event for event in self.events(since) if condition(event)), None), what,
                         patience)

    def wait_for_restart(self, since, reasons, **fields):
        """The restart caused by a fault; recorded, so that unexplained restarts can be found."""
        found = self.wait_for_event(since, lambda event: event["event"] == "restart" and event.get("reason") in reasons
                                    and all(event[name] == value for name, value in fields.items()),
                                    f"a restart: {' or '.join(reasons)}")
        if found:
            self.claimed.append(found)
        return found

    def wait_until_it_goes_on(self, steps):
        """Waits for this many steps that were not done before."""
        now = self.step

        def further(training):
            return training.attempts and training.attempt.end == float("inf") and \
                len(training.attempt.steps) >= FEW_STEPS and \
                training.step >= max(now, training.furthest_before) + steps
        if not self.wait(further, "steps"):
            raise SystemExit(f"chaos: no further than step {self.step}:\n{self.launch.output()[-4000:]}")

    def unfinished(self):
        """The checkpoints being written."""
        try:
            return {folder.name for folder in os.scandir(self.checkpoints) if folder.name.startswith("step-")
                    and not os.path.exists(f"{folder.path}/manifest.json")}
        except FileNotFoundError:
            return set()

    def finished(self):
        """The complete checkpoints, newest first."""
        return sorted((path.parent for path in self.checkpoints.glob("step-*/manifest.json")), reverse=True)

    def wait_for_checkpoint_under_way(self):
        """Polls without a pause, since writing takes milliseconds; gives up after some seconds."""
        end = time.monotonic() + 5
        while time.monotonic() < end and not self.unfinished():
            time.sleep(0.0002)

    def process_of_rank(self, rank):
        return next((process for process, one in processes_of(self.launch.directory) if one == rank), None)

    def ranks(self):
        return self.attempt.launch["ranks"]

    def hosts_of_ranks(self):
        """The host of each rank: mpirun fills the slots in the list's order."""
        words = (word.split(":") for word in self.attempt.launch["on"].split(","))
        return [host for host, slots in words for _ in range(int(slots))]

    def state_of(self, process):
        """The state of the whole process: R, S, T, ..."""
        try:
            return pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except OSError:
            return "gone"
