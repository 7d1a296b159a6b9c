#!/usr/bin/env python3
"""Draws a preemption on Slurm: which job is on which node when, and where training goes on.

    scripts/slurm_picture.py             draws docs/pictures/slurm-preemption.svg from tests/slurm/recorded/preemption.json
    scripts/slurm_picture.py --check     changes nothing; exits with 1 if it is not current
    scripts/slurm_picture.py --record    runs it anew first, on a real Slurm on emulated hosts (tests/slurm); the program
                                         is $LOCKSTEP, else build/release/bin/lockstep
"""
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile
import time

from drawing import ROOT, Drawing, keep

RECORDED = ROOT / "tests" / "slurm" / "recorded" / "preemption.json"
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
JOB = ("data.train.digits.count=64", "data.validation.digits.count=16", "batch_size=8", "micro_batches=8", "threads=1",
       "learning_rate=0.002", "evaluate=never", "checkpoint={every: 10 steps}", "steps=3000")
INTERRUPTED_AT, URGENT_SECONDS = 1000, 5
WIDTH, LEFT, RIGHT, TOP, LANE, GAP = 960, 80, 24, 56, 34, 10


def events_of(directory):
    file = directory / "events.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def nodes_of(text):
    return re.findall(r"([^:,]+):\d+", text)


def record():
    """{"nodes", "bars": [{"job", "nodes", "start", "end", "text"}]}, times in seconds from the first start."""
    sys.path.insert(0, str(ROOT / "tests" / "slurm"))
    import slurm_cluster  # pylint: disable=import-outside-toplevel
    if slurm_cluster.missing():
        sys.exit(f"cannot emulate Slurm: {slurm_cluster.missing()}")
    with slurm_cluster.SlurmCluster(3) as cluster, tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder) / "run"
        job = cluster.submit(f"--output={folder}/log", ROOT / "examples/slurm/launch.sbatch", *JOB,
                             environment={"LOCKSTEP": PROGRAM, "RUN_DIRECTORY": str(directory)})
        while not any(event.get("step", 0) >= INTERRUPTED_AT for event in events_of(directory)):
            time.sleep(0.1)
        urgent = cluster.submit("--partition=urgent", "--nodes=3", "--exclusive", f"--output={folder}/urgent", "--wrap",
                                f"sleep {URGENT_SECONDS}")
        shown = cluster.wait(urgent, "COMPLETED")
        cluster.wait(job, "COMPLETED")
        return picture_of(cluster.names, events_of(directory), shown)


def picture_of(names, events, urgent):
    bars, step = [], 0
    for event in events:
        if event["event"] == "launch":
            bars.append({"job": "training", "nodes": nodes_of(event["on"]), "start": event["time"], "from": step})
        elif event["event"] == "step":
            step = event["step"]
        elif event["event"] == "end":
            bars[-1] |= {"end": event["time"], "text": f"steps {bars[-1].pop('from') + 1:,} to {step:,}"}
    times = [datetime.datetime.fromisoformat(urgent[name]).timestamp() for name in ("StartTime", "EndTime")]
    bars.append({"job": "urgent", "nodes": list(names), "start": times[0], "end": times[1], "text": "urgent"})
    first = min(bar["start"] for bar in bars)
    for bar in bars:
        bar["nodes"] = [f"node{names.index(name) + 1}" for name in bar["nodes"]]
        bar["start"], bar["end"] = round(bar["start"] - first, 2), round(bar["end"] - first, 2)
    return {"nodes": [f"node{i + 1}" for i in range(len(names))], "bars": bars}


def drawing_of(recorded):
    nodes, bars = recorded["nodes"], recorded["bars"]
    bottom = TOP + len(nodes) * (LANE + GAP)
    drawing = Drawing(WIDTH, bottom + 52, "A training of two nodes gives way to an urgent job of all, and goes on with the same bits")
    total = max(bar["end"] for bar in bars)

    def x_of(seconds):
        return LEFT + seconds / total * (WIDTH - LEFT - RIGHT)

    for tick in range(0, int(total) + 1, 5):
        drawing.line([(x_of(tick), TOP - 8), (x_of(tick), bottom)], "grid")
        drawing.text(x_of(tick), bottom + 14, f"{tick} s", "middle")
    for row, node in enumerate(nodes):
        y = TOP + row * (LANE + GAP)
        drawing.text(LEFT - 10, y + LANE / 2 + 4, node, "end strong")
        for bar in bars:
            if node in bar["nodes"]:
                width = x_of(bar["end"]) - x_of(bar["start"])
                drawing.rectangle((x_of(bar["start"]), y, width, LANE), "s0 fill" if bar["job"] == "training" else "s1 fill")
                if width > 6.2 * len(bar["text"]):
                    drawing.text(x_of(bar["start"]) + width / 2, y + LANE / 2 + 4, bar["text"], "middle light")
    drawing.keys(LEFT, bottom + 38, [("s0 fill", "the training, requeued after a checkpoint"), ("s1 fill", "the urgent job")])
    return drawing


def main():
    if "--record" in sys.argv:
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
    keep({"slurm-preemption": drawing_of(json.loads(RECORDED.read_text(encoding="utf-8")))}, "scripts/slurm_picture.py")


if __name__ == "__main__":
    main()
