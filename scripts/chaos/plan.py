"""Which faults happen in which order, and what each one hits: drawn from the seed alone, so that a seed names one
series of faults. The exact time and target of a fault also depend on the machine's clock."""
import dataclasses
import random
import time

from faults import KINDS

LEAST_BUSY = 3  # faults of every kind in busy moments
TRIES = 4  # attempts at a fault whose effect is not seen


@dataclasses.dataclass
class Planned:
    kind: type
    moment: str  # "steps", "checkpoint" or "start"
    steps: int  # that training must progress before it
    random: random.Random


@dataclasses.dataclass
class Hit:
    """One fault that happened."""
    kind: str
    moment: str  # the actual moment, or "none"
    step: int
    at: float
    what: str
    effect: str  # empty: not seen
    seconds: float

    @property
    def busy(self):
        return self.moment in ("steps", "checkpoint")


def make_plan(seed, count):
    draw = random.Random(seed)
    kinds = [*KINDS] * LEAST_BUSY + draw.choices(KINDS, k=count - LEAST_BUSY * len(KINDS))
    draw.shuffle(kinds)
    plan, busy = [], dict.fromkeys(KINDS, 0)
    for kind in kinds:
        # A fault before the first step is not in a busy moment, so only surplus faults are put there.
        follows_restart = plan and plan[-1].kind.restarts and plan[-1].moment != "start"
        start = "start" in kind.may_hit and busy[kind] >= LEAST_BUSY and follows_restart and draw.random() < 0.5
        moment = "start" if start else draw.choice([one for one in kind.may_hit if one != "start"])
        busy[kind] += not start
        plan.append(Planned(kind, moment, draw.randrange(2, 15), random.Random(draw.random())))
    return plan


def await_moment(training, planned):
    """Waits until the moment seems to have come."""
    if planned.moment == "start":
        training.wait(lambda t: t.attempt.end == float("inf"), "the next attempt")
        time.sleep(planned.random.uniform(0, 0.5))
    else:
        training.wait_until_it_goes_on(planned.steps)


def strike(fault, training, planned):
    """Waits for the moment and strikes; returns the time, the last step and the actual moment; None: not now."""
    await_moment(training, planned)
    if not fault.choose():
        return None
    attempt = training.attempt
    if planned.moment == "checkpoint":
        training.wait_for_checkpoint_under_way()
    fault.since = len(training.events())
    if training.attempt is not attempt or attempt.end < float("inf"):
        return None  # the attempt has ended meanwhile
    at, step, before = time.time(), training.step, training.unfinished()
    fault.strike()
    both = before & training.unfinished()
    training.events()
    if not attempt.steps or attempt.steps[0][1] > at:
        return at, step, "start"
    moment = ("checkpoint" if both else "steps") if attempt.stepped_at(at) else "none"
    return at, step, moment


def others(training, since):
    """What happened instead: the first restarts and warnings."""
    words = [f"{event.get('reason', event['event'])}: {event['message'].splitlines()[0]}"
             for event in training.events(since) if event.get("message")]
    return words[:3]


def happen(planned, training, hosts):
    """Makes the fault happen, again if no effect was seen; yields each try."""
    for _ in range(TRIES):
        fault = planned.kind(training, hosts, planned.random)
        try:
            struck = strike(fault, training, planned)
            effect = struck and fault.effect()
        finally:
            fault.undo()
        if struck is None:
            continue
        at, step, moment = struck
        if not effect:
            if fault.restarts:  # not the expected effect, but caused by this fault
                training.claimed += [event for event in training.events(fault.since)
                                     if event["event"] == "restart" and "reason" in event]
            fault.what += f" ({'; '.join(others(training, fault.since)) or 'nothing'} instead)"
        yield Hit(fault.name, moment, step, at, fault.what, effect or "", time.time() - at)
        if effect:
            return
