"""The fifteen kinds of faults. Each fault is created while training runs; then these are called in turn:
  choose()  what to hit; may take its time. False: not now
  strike()  hits it, at once; `what` says what was done
  effect()  waits, and returns a description of how training reacted; None: it did not
  undo()    always, at the end
"""
import errno
import json
import os
import pathlib
import signal
import statistics
import struct
import threading
import time

from emulated_hosts import run
from launches import SMALL_PIPE

MICRO_BATCHES = 16  # from job.yaml


class Fault:
    name = ""
    may_hit = ("steps",)  # moments: "steps", "checkpoint", "start"
    restarts = False

    def __init__(self, training, hosts, random):
        self.training, self.hosts, self.random = training, hosts, random
        self.what = ""
        self.since = 0  # number of the first event after the strike

    def choose(self):
        return True

    def undo(self):
        pass

    def launched(self, since, condition):
        return self.training.wait_for_event(since, lambda event: event["event"] == "launch" and condition(event["on"]),
                                            "a launch")

    def use_all_hosts(self):
        since = len(self.training.events())
        say_hosts(self.hosts, ",".join(f"{name}:1" for name in self.hosts.names))
        self.training.wait_for_restart(since, ("resize",))

    def step_of(self, event):
        return f"after step {event['step']}" if event["step"] >= 0 else "before a step"


class KillRank(Fault):
    name, may_hit, restarts = "kill a rank", ("steps", "checkpoint", "start"), True

    def choose(self):
        self.rank = self.random.randrange(self.training.ranks())
        self.process = self.training.process_of_rank(self.rank)
        self.what = f"rank {self.rank} of {self.training.ranks()}"
        return self.process is not None

    def strike(self):
        os.kill(self.process, signal.SIGKILL)

    def effect(self):
        # At the start the rank may not have connected yet: then mpirun reports the death.
        early = not self.training.attempt.steps
        fields = {} if early else {"rank": self.rank}
        found = self.training.wait_for_restart(self.since, ("death", "error") if early else ("death",), **fields)
        return found and f"restart ({found['reason']}) {self.step_of(found)}: {' '.join(found['message'].split())[:200]}"


class KillMpirun(Fault):
    name, may_hit, restarts = "kill mpirun", ("steps", "checkpoint", "start"), True

    def choose(self):
        self.process = self.training.launch.mpirun()
        self.what = f"with {self.training.ranks()} ranks"
        return self.process is not None

    def strike(self):
        os.kill(self.process, signal.SIGKILL)

    def effect(self):
        found = self.training.wait_for_restart(self.since, ("mpirun",))
        return found and f"restart ({found['reason']}) {self.step_of(found)}: {found['message']}"


class StopRank(Fault):
    """All ranks should wait, and nothing else happen: no restart."""
    name, may_hit = "stop a rank", ("steps", "checkpoint", "start")

    def choose(self):
        self.rank = self.random.randrange(self.training.ranks())
        self.process = self.training.process_of_rank(self.rank)
        self.attempt = self.training.attempt
        # Longer than steps could pause by chance; shorter than the hang limit, which also adapts to the steps.
        self.seconds = max(self.random.uniform(0.3, 0.8), 8 * self.attempt.median_step())
        self.what = f"rank {self.rank} of {self.training.ranks()}, {self.seconds:.2f} s"
        return self.process is not None

    def strike(self):
        os.kill(self.process, signal.SIGSTOP)

    def effect(self):
        def steps():
            return sum(event["event"] == "step" for event in self.training.events(self.since))
        time.sleep(self.seconds)
        stopped, still = self.training.state_of(self.process) == "T", steps()
        self.undo()
        again = self.training.wait(lambda _: steps() >= still + 3, "steps after the stop")
        if not stopped or still > 2 or not again or self.training.attempt is not self.attempt:
            return None
        return f"the steps stood still ({still} more), then went on; no restart"

    def undo(self):
        go_on(self.process)


class CutLink(Fault):
    name, may_hit, restarts = "cut a link", ("steps", "checkpoint"), True

    def choose(self):
        used = set(self.training.hosts_of_ranks())
        self.host = self.random.choice([i for i in range(1, self.hosts.count) if self.hosts.names[i] in used])
        self.host_name = self.hosts.names[self.host]
        self.what = f"of {self.host_name}"
        self.is_cut = False
        return True

    def strike(self):
        self.is_cut = True
        self.hosts.cut(self.host)

    def effect(self):
        found = self.training.wait_for_restart(self.since, ("hang",), host=self.host_name)
        if not found:
            return None
        without = self.launched(self.since, lambda on: self.host_name not in on)
        self.training.wait_until_it_goes_on(1)
        self.undo()
        back = self.launched(self.since, lambda on: self.host_name in on)
        resize = self.training.wait_for_restart(self.since, ("resize",))
        if not without or not back or not resize:
            return None
        return (f"hang of rank {found['rank']} {self.step_of(found)}, went on with {without['ranks']} ranks; mended: "
                f"the host is back {self.step_of(resize)}")

    def undo(self):
        if self.is_cut:
            self.hosts.mend(self.host)
        self.is_cut = False


class DamageCheckpoint(Fault):
    """Also kills rank 0, so that the checkpoint is needed before a newer one is finished."""
    name, may_hit, restarts = "damage a checkpoint", ("steps", "checkpoint"), True
    WAYS = ("flip", "shorten", "remove")

    def choose(self):
        self.process = self.training.process_of_rank(0)
        self.way = self.random.choice(self.WAYS)
        # Without a manifest it would not be a checkpoint at all, and nothing would be reported.
        names = ["model.safetensors", "optimizer.safetensors"]
        self.file = self.random.choice(names if self.way == "remove" else [*names, "manifest.json"])
        self.at = self.random.random()
        self.path = None
        return self.process is not None and len(self.training.finished()) >= 2

    def strike(self):
        newest = self.training.finished()[0]
        self.path = newest / self.file
        self.what = f"{self.way} {newest.name}/{self.file}"
        size = self.path.stat().st_size
        if self.way == "remove":
            self.path.unlink()
        elif self.way == "shorten":
            os.truncate(self.path, int(size * self.at))
        else:
            with open(self.path, "r+b") as file:
                file.seek(int(size * self.at))
                byte = file.read(1)[0]
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte ^ (1 << self.random.randrange(8))]))
        os.kill(self.process, signal.SIGKILL)

    def effect(self):
        death = self.training.wait_for_restart(self.since, ("death",))
        rejected = death and self.training.wait_for_event(self.since, lambda event: event["event"] == "warning" and
                                                          event["message"].startswith("passed over a damaged") and
                                                          str(self.path.parent) in event["message"], "the warning")
        taken = rejected and self.training.wait_for_event(self.since, lambda event: event["event"] == "restart" and
                                                          "path" in event, "a checkpoint to be taken")
        if not taken or taken["path"] > str(self.path.parent):
            return None
        fetched = [event["step"] for event in self.training.events(self.since)
                   if event["event"] == "copy" and event.get("fetched")]
        if taken["step"] not in fetched and taken["path"] == str(self.path.parent):
            return None
        return f"rejected; {pathlib.Path(taken['path']).name} was taken{', from the store' * (taken['step'] in fetched)}"


class FillDisk(Fault):
    name, may_hit = "fill the disk", ("steps", "checkpoint")

    def choose(self):
        self.ballast = self.training.launch.directory / "ballast"
        self.what = "of the run directory"
        return True

    def strike(self):
        with open(self.ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def effect(self):
        def refused(event):
            return event["event"] == "warning" and "no checkpoint" in event["message"] and \
                "No space left on device" in event["message"]

        def still_refused(_):
            self.strike()  # files that could not be written have been removed again
            return next((event for event in self.training.events(self.since) if refused(event)), None)
        found = self.training.wait(still_refused, "a checkpoint to be refused")
        self.undo()
        freed = time.time()
        written = found and self.training.wait_for_event(
            self.since, lambda event: event["event"] == "checkpoint" and event["time"] > freed, "a checkpoint")
        if not written:
            return None
        return f"{found['message'].split(':')[0]}: no checkpoint, no space; room again: one after step {written['step']}"

    def undo(self):
        self.ballast.unlink(missing_ok=True)


class FailingFiles(Fault):
    """Calls on files of checkpoints fail, as on a disk that errs or a file server that has forgotten a file."""
    name, may_hit = "fail file calls", ("steps", "checkpoint")
    ERRORS = (errno.EIO, errno.ESTALE, errno.EDQUOT, errno.ENOSPC)

    def choose(self):
        self.error = self.random.choice(self.ERRORS)
        self.call = self.random.choice(("open", "write", "fsync"))
        self.attempt = self.training.attempt
        self.what = f"{self.call}() with {errno.errorcode[self.error]}"
        return True

    def strike(self):
        self.training.disturb_files(error=self.error, calls={"open": 1, "write": 2, "fsync": 4}[self.call])

    def effect(self):
        def refused(event):
            return event["event"] == "warning" and "no checkpoint" in event["message"] and \
                os.strerror(self.error) in event["message"]
        found = self.training.wait_for_event(self.since, refused, "a checkpoint to be refused")
        self.undo()
        mended = time.time()
        written = found and self.training.wait_for_event(
            self.since, lambda event: event["event"] == "checkpoint" and event["time"] > mended, "a checkpoint")
        if not written or self.training.attempt is not self.attempt:
            return None
        return f"{found['message'].split(':')[0]}: no checkpoint; mended: one after step {written['step']}; no restart"

    def undo(self):
        self.training.disturb_files()


class SlowDisk(Fault):
    """Training goes on while its checkpoint is written."""
    name, may_hit = "slow the disk", ("steps", "checkpoint")

    def choose(self):
        self.seconds = self.random.uniform(0.2, 0.6)
        self.attempt = self.training.attempt
        self.what = f"{self.seconds:.2f} s for each fsync()"
        return True

    def strike(self):
        self.training.disturb_files(milliseconds=int(1000 * self.seconds))

    def effect(self):
        found = self.training.wait_for_event(
            self.since, lambda event: event["event"] == "checkpoint" and event["seconds"] > self.seconds, "a slow checkpoint")
        self.undo()
        if not found or self.training.attempt is not self.attempt:
            return None
        return f"the checkpoint of step {found['step']} took {found['seconds']:.2f} s; no restart"

    def undo(self):
        self.training.disturb_files()


class FailingStore(Fault):
    """The object store answers 503 or not at all, is slow, its clock is off, or the key ends and a new one is given."""
    name, may_hit = "disturb the store", ("steps", "checkpoint")

    def choose(self):
        self.way, self.seconds = self.random.choice(self.training.store.WAYS), self.random.uniform(0.5, 2)
        self.attempt = self.training.attempt
        self.what = f"{self.way}, {self.seconds:.2f} s"
        return True

    def strike(self):
        self.before = self.training.store.asked()
        self.training.store.disturb(self.way)

    def effect(self):
        asked = self.training.wait(lambda training: training.store.asked() >= self.before + 2, "requests to the store")
        time.sleep(self.seconds)
        self.undo()
        mended = time.time()
        copied = asked and self.training.wait_for_event(
            self.since, lambda event: event["event"] == "copy" and event["time"] > mended, "a copy")
        if not copied or self.training.attempt is not self.attempt:
            return None
        return f"mended: a copy of step {copied['step']}; no restart"

    def undo(self):
        self.training.store.mend()


class Suspend(Fault):
    """All processes are stopped for longer than the hang limit, as by a batch system or `docker pause`. Not while MPI
    starts: some of Open MPI's daemons then give up on each other, and the launch starts them again."""
    name, may_hit = "suspend everything", ("steps", "checkpoint")

    def choose(self):
        self.seconds = self.random.uniform(2.5, 4)
        self.attempt = self.training.attempt
        self.what = f"for {self.seconds:.2f} s"
        return True

    def strike(self):
        self.processes = self.training.processes()
        for process in self.processes:
            send(process, signal.SIGSTOP)

    def effect(self):
        time.sleep(self.seconds)
        stopped = [self.training.state_of(process) for process in self.processes].count("T")
        self.undo()
        seen = len(self.training.events())
        again = self.training.wait(lambda training: sum(event["event"] == "step" for event in training.events(seen)) >= 3,
                                   "steps after the stop")
        if stopped == 0 or not again or self.training.attempt is not self.attempt:
            return None
        return f"{stopped} processes stood still, then the steps went on; no restart"

    def undo(self):
        for process in self.processes:
            go_on(process)


class StartAgain(Fault):
    """The launch is ended as a terminal, a person or a service manager does it, and the same command is run again."""
    name, may_hit, restarts = "end it, start again", ("steps", "checkpoint", "start"), True
    WAYS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGTERM to all of its host")

    def choose(self):
        self.way = self.random.choice(self.WAYS)
        self.what = self.way
        return True

    def strike(self):
        number = getattr(signal, self.way.split()[0])
        for process in self.training.processes(here=True) if "all" in self.way else [self.training.launch.process.pid]:
            send(process, number)

    def effect(self):
        former, newest = self.training.attempt, self.training.start_again()
        if newest is None:
            return None
        first = self.training.wait(lambda training: training.attempt is not former and training.attempt.steps, "a step")
        if not first or first[0][0] <= newest:
            return None
        return f"75; again: from step {first[0][0]} on, the newest checkpoint was of step {newest}"


class UnreadPipe(Fault):
    """Nobody reads what the launch prints. Steps go on, and are printed later."""
    name, may_hit = "read no output", ("steps", "checkpoint")

    def choose(self):
        self.seconds = self.random.uniform(1, 2.5)
        self.attempt, self.reader = self.training.attempt, self.training.launch.reader.pid
        self.what = f"for {self.seconds:.2f} s"
        return True

    def strike(self):
        os.kill(self.reader, signal.SIGSTOP)
        self.stopped = time.time()

    def effect(self):
        time.sleep(self.seconds)
        read = time.time()
        self.undo()
        self.training.wait_for_event(self.since, lambda event: event["time"] > read, "what comes later")
        unread = [event for event in self.training.events(self.since) if self.stopped < event["time"] < read]
        steps = sum(event["event"] == "step" for event in unread)
        if sum(len(json.dumps(event)) for event in unread) < 2 * SMALL_PIPE or self.training.attempt is not self.attempt:
            return None
        return f"{steps} steps meanwhile; no restart"

    def undo(self):
        go_on(self.reader)


class UnfitHost(Fault):
    """A host loses the run directory, or gets another processor or version, and the rank there dies."""
    name, may_hit, restarts = "make a host unfit", ("steps", "checkpoint"), True
    WAYS = {"no run directory": "", "another processor": "export ONEDNN_MAX_CPU_ISA=SSE41",
            "another version": 'case "$*" in *--end*) ;; *--keep*) exit 79;; *version*) echo lockstep 0.0.1; exit 0;; esac'}

    def choose(self):
        self.way, self.is_unfit = self.random.choice(sorted(self.WAYS)), False
        names = self.training.hosts_of_ranks()
        here = [rank for rank, name in enumerate(names) if name != self.hosts.names[0]]
        if not here or len(set(names)) == 1:
            self.use_all_hosts()
            return False
        rank = self.random.choice(here)
        self.name_of_host = names[rank]
        self.host = self.hosts.names.index(self.name_of_host)
        self.process = self.training.process_of_rank(rank)
        self.what = f"{self.way} on {self.name_of_host}"
        return self.process is not None

    def strike(self):
        self.is_unfit = True
        if self.WAYS[self.way]:
            self.training.make_unfit(self.name_of_host, self.WAYS[self.way])
        else:
            run(*self.hosts.prefix(self.host), "mount", "-t", "tmpfs", "tmpfs", self.training.launch.directory)
        os.kill(self.process, signal.SIGKILL)

    def effect(self):
        death = self.training.wait_for_restart(self.since, ("death", "mpirun"))
        warning = death and self.training.wait_for_event(
            self.since, lambda event: event["event"] == "warning" and f"host {self.name_of_host}" in event["message"] and
            "left out" in event["message"], "the host to be left out")
        without = warning and self.launched(self.since, lambda on: self.name_of_host not in on)
        if not without:
            return None
        # With another fingerprint its ranks were refused first.
        self.training.claimed += [event for event in self.training.events(self.since)
                                  if event["event"] == "restart" and event.get("reason") == "error"]
        self.training.wait_until_it_goes_on(1)
        mended = len(self.training.events())
        self.undo()
        back = self.launched(mended, lambda on: self.name_of_host in on)
        resize = back and self.training.wait_for_restart(self.since, ("resize",))
        return resize and f"left out, went on with {without['ranks']} ranks; mended: the host is back {self.step_of(resize)}"

    def undo(self):
        if self.is_unfit and self.WAYS[self.way]:
            self.training.make_unfit(self.name_of_host)
        elif self.is_unfit:
            run(*self.hosts.prefix(self.host), "umount", "--lazy", self.training.launch.directory)
        self.is_unfit = False


class ChangeShares(Fault):
    """A rank gets a seventh of its CPU time; micro-batches must move away from it."""
    name = "change the shares"

    def choose(self):
        self.stop, self.slower = threading.Event(), threading.Thread(target=self.slow)
        self.training.events()
        self.attempt = self.training.attempt
        parts = self.attempt.parts or [range(self.training.ranks())]
        equal = {str(rank): MICRO_BATCHES // len(ranks) + (i < MICRO_BATCHES % len(ranks))
                 for ranks in parts for i, rank in enumerate(ranks)}
        self.before = self.training.shares or equal
        sharing = [rank for ranks in parts if len(ranks) > 1 for rank in ranks]
        if not sharing:
            self.use_all_hosts()
            return False
        most = max(self.before[str(rank)] for rank in sharing)
        self.rank = self.random.choice([rank for rank in sharing if self.before[str(rank)] == most])
        self.process = self.training.process_of_rank(self.rank)
        self.what = f"rank {self.rank} of {self.training.ranks()} slows down"
        return self.process is not None

    def slow(self):
        try:
            while not self.stop.wait(0.006):
                os.kill(self.process, signal.SIGSTOP)
                time.sleep(0.034)
                os.kill(self.process, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def strike(self):
        self.step = self.training.step
        self.slower.start()

    def effect(self):
        def fewer(event):
            """This rank has fewer micro-batches because it was measured to be slow: two steps or more after it became so."""
            if event["event"] != "balance" or event["step"] < self.step + 2:
                return False
            seconds = dict(event.get("micro_batch_seconds_by_rank", {}))
            own = seconds.pop(str(self.rank), 0)
            return own > 1.5 * statistics.median(seconds.values()) and \
                event["shares_by_rank"][str(self.rank)] < self.before[str(self.rank)]
        found = self.training.wait_for_event(self.since, fewer, "a move of micro-batches", 20)
        self.undo()
        if not found or self.training.attempt is not self.attempt:
            return None
        before, after = (" ".join(f"{share:.0f}" for share in shares.values())
                         for shares in (self.before, found["shares_by_rank"]))
        return f"after step {found['step']}: {found['reason']}, shares {before} to {after}"

    def undo(self):
        self.stop.set()
        if self.slower.ident:
            self.slower.join()


class ChangeHosts(Fault):
    name, restarts = "change the hosts", True
    SLOTS = ((2, 1, 0), (1, 1, 1), (1, 2, 0), (1, 0, 2), (0, 1, 1), (2, 1, 1), (0, 2, 1))

    def choose(self):
        now = self.training.attempt.launch["on"]
        lists = [",".join(f"{name}:{slots}" for name, slots in zip(self.hosts.names, row) if slots)
                 for row in self.SLOTS]
        self.wanted = self.random.choice([one for one in lists if one != now])
        self.what = f"{now} to {self.wanted}"
        return True

    def strike(self):
        say_hosts(self.hosts, self.wanted)

    def effect(self):
        found = self.training.wait_for_restart(self.since, ("resize",))
        launched = found and self.training.wait_for_event(
            self.since, lambda event: event["event"] == "launch" and event["on"] == self.wanted, "the new hosts")
        first = launched and self.training.wait(lambda training: training.attempt.steps, "a step")
        if not first or first[0][0] != found["step"] + 1:
            return None
        return f"resize {self.step_of(found)}, {launched['ranks']} ranks, no step lost or repeated"


def send(process, number):
    """Does nothing if the process has ended."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def go_on(process):
    if process is not None:
        send(process, signal.SIGCONT)


def say_hosts(hosts, slots):
    """Sets the hosts that the discovery script prints from now on."""
    script = pathlib.Path(hosts.folder.name) / "discover"
    new = script.with_suffix(".new")
    new.write_text("#!/bin/sh\n" + "".join(f"echo {word}\n" for word in slots.split(",")), encoding="utf-8")
    new.chmod(0o755)
    new.rename(script)
    return str(script)


KINDS = (KillRank, KillMpirun, StopRank, CutLink, DamageCheckpoint, FillDisk, ChangeShares, ChangeHosts, FailingFiles,
         SlowDisk, FailingStore, Suspend, StartAgain, UnreadPipe, UnfitHost)
