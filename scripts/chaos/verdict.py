"""What the faults and the two hashes show: the tables, and why a run does not count."""
import statistics

from plan import LEAST_BUSY


def line(number, hit):
    effect = hit.effect or "NOT SEEN: it does not count"
    return f"{number:4}  {hit.step:6}  {hit.moment:10}  {hit.kind:19}  {hit.what}: {effect}"


def longest_pause(hit, step_times):
    """The longest time between two consecutive steps, from the last one before the fault to the first one after its
    effect."""
    before = [at for at in step_times if at <= hit.at][-1:]
    during = [at for at in step_times if hit.at < at <= hit.at + hit.seconds]
    after = [at for at in step_times if at > hit.at + hit.seconds][:1]
    times = before + during + after
    return max((b - a for a, b in zip(times, times[1:])), default=0.0)


def table(kinds, hits, step_times):
    """For each kind: how many counted, in which moments, and how long training paused."""
    lines = [f"{'kind':19} {'seen':>5} {'steps':>6} {'checkpoint':>11} {'start':>6} {'not seen':>9}  "
             "longest pause between two steps: median, worst"]
    for kind in kinds:
        own = [hit for hit in hits if hit.kind == kind]
        seen = [hit for hit in own if hit.effect]
        moments = [sum(hit.moment == moment for hit in seen) for moment in ("steps", "checkpoint", "start")]
        pauses = [longest_pause(hit, step_times) for hit in seen]
        times = f"{statistics.median(pauses):.2f} s, {max(pauses):.2f} s" if pauses else ""
        lines.append(f"{kind:19} {len(seen):5} {moments[0]:6} {moments[1]:11} {moments[2]:6} "
                     f"{len(own) - len(seen):9}  {times}")
    return lines


def reasons_against(kinds, hits, count, hashes, unexplained):
    """Why the run does not count; empty if it does. `hashes`: those of the disturbed and of the quiet run."""
    against = []
    seen = [hit for hit in hits if hit.effect]
    if len(seen) < count:
        against.append(f"the effect of {len(seen)} faults was seen, expected {count}")
    for kind in kinds:
        busy = sum(hit.kind == kind and hit.busy for hit in seen)
        if busy < LEAST_BUSY:
            against.append(f"'{kind}' hit a busy moment {busy} times, expected at least {LEAST_BUSY}")
    if hashes[0] != hashes[1]:
        against.append(f"the parameters differ: {hashes[0]} after the faults, {hashes[1]} of the quiet run")
    # A hang limit of seconds may be exceeded on a loaded machine, without a fault.
    for event in unexplained:
        if event["reason"] != "hang":
            against.append(f"a restart that no fault explains: {event['reason']} after step {event['step']}: "
                           f"{event['message']}")
    return against
