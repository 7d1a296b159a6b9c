#!/usr/bin/env python3
"""Draws one step of a model in parts from its timeline: a lane for each worker with its forwards, backwards and waits,
and an arrow for each message between parts, from the task that produces it to the task that reads it.

    scripts/timeline_picture.py             draws docs/pictures/timeline-parts.svg from tests/trace/recorded/parts
    scripts/timeline_picture.py --check     changes nothing; exits with 1 if it is not current
    scripts/timeline_picture.py --record    runs the job anew first, on an otherwise idle machine, and keeps its
                                            most typical step; the program is $LOCKSTEP, else build/release/bin/lockstep

Ranks have the parts in order, one rank for each part; all are on one host and share its clock.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from drawing import ROOT, Drawing, keep

RECORDED = ROOT / "tests" / "trace" / "recorded" / "parts"
STEPS = (11, 20)  # recorded steps, one of which is kept
RUN = ("--ranks", "2", "parallel.parts=2", "threads=1", "batch_size=16", "micro_batches=8", "checkpoint=never", "evaluate=never",
       "metrics=[]", "steps=20", "model={gpt: {layers: 8, heads: 4, width: 128, bias: false}}", "loss=cross_entropy",
       "data.train.text.context=64")
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
LANES = {"forward": "s0 fill", "backward": "s1 fill", "activations": "s3 fill pale", "activation gradients": "s6 fill pale",
         "sends to other parts": "s7 fill pale", "data wait": "s4 fill pale", "reduce": "s2 fill", "update": "s5 fill"}
KEYS = {"forward": "forward", "backward": "backward", "activations": "waits for activations",
        "activation gradients": "waits for gradients", "reduce": "all-reduce and waiting for it", "update": "update"}
LEFT, RIGHT, TOP, LANE, GAP = 110, 16, 48, 34, 44
WIDTH = 960


def spans_of(path):
    """The spans of a rank's timeline that are drawn, in file order: (name, micro-batch, start, end, step), times in
    seconds."""
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        if event["ph"] == "X" and event["name"] in LANES:
            start = event["ts"] / 1e6
            yield event["name"], event["args"].get("micro_batch", -1), start, start + event["dur"] / 1e6, event["args"]["step"]


def lanes_of(folder):
    """The spans of each rank's only worker and of its phases, by start."""
    return [sorted(spans_of(path), key=lambda span: span[2]) for path in sorted(folder.glob("rank-*.json"))]


def x_of(seconds, total):
    return LEFT + seconds / total * (WIDTH - LEFT - RIGHT)


def draw_lane(drawing, y, spans, begin, total):
    for name, micro_batch, start, end, _ in spans:
        x, width = x_of(start - begin, total), (end - start) / total * (WIDTH - LEFT - RIGHT)
        hint = f"{name}{f' of micro-batch {micro_batch}' if micro_batch >= 0 else ''}: {1e3 * (end - start):.2f} ms"
        drawing.rectangle((x, y, max(width, 0.5), LANE), LANES[name], hint)
        if name in ("forward", "backward") and width > 10:
            drawing.text(x + width / 2, y + LANE / 2 + 4, str(micro_batch), "light middle")


def draw_messages(drawing, lanes, begin, total):
    """Activations go down to the next part, their gradients up."""
    def draw(task, color, sender, receiver):
        """`sender`, `receiver`: a lane, and the y where arrows begin or end."""
        made = {micro_batch: end for name, micro_batch, _, end, _ in sender[0] if name == task}
        for name, micro_batch, start, _, _ in receiver[0]:
            if name == task:
                drawing.arrow((x_of(made[micro_batch] - begin, total), sender[1]), (x_of(start - begin, total), receiver[1]), color,
                              "thin")

    for number, (first, second) in enumerate(zip(lanes, lanes[1:])):
        upper, lower = (first, TOP + number * (LANE + GAP) + LANE), (second, TOP + (number + 1) * (LANE + GAP))
        draw("forward", "s3", upper, lower)
        draw("backward", "s6", lower, upper)


def draw_axis(drawing, y, total):
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if 1e3 * total / size <= 12)
    for at in range(0, int(1e3 * total) + 1, step):
        x = x_of(at / 1e3, total)
        drawing.line([(x, TOP - 8), (x, y)], "grid")
        drawing.text(x, y + 14, f"{at} ms", "middle")


def picture(lanes):
    begin = min(spans[0][2] for spans in lanes)
    total = max(spans[-1][3] for spans in lanes) - begin
    bottom = TOP + len(lanes) * (LANE + GAP) - GAP
    drawing = Drawing(WIDTH, bottom + 56, "A step of a model in two parts: numbers are micro-batches, arrows are messages")
    draw_axis(drawing, bottom + 6, total)
    for rank, spans in enumerate(lanes):
        y = TOP + rank * (LANE + GAP)
        drawing.text(LEFT - 8, y + LANE / 2 + 4, f"part {rank}, rank {rank}", "strong end")
        draw_lane(drawing, y, spans, begin, total)
    draw_messages(drawing, lanes, begin, total)
    drawing.keys(LEFT, bottom + 44, [(LANES[name], text) for name, text in KEYS.items()])
    return drawing


def record():
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text.txt"
        text.write_text("".join(f"{i} plus {i * 7 % 13} is {i + i * 7 % 13}.\n" for i in range(2000)))
        subprocess.run([PROGRAM, "train", str(ROOT / "examples/shakespeare-gpt.yaml"), *RUN, f"data.train.text.path={text}",
                        f"run_directory={folder}/run", "--profile", "-".join(map(str, STEPS))], check=True)
        lanes = lanes_of(pathlib.Path(folder) / "run/trace")
        seconds = {}
        for step in range(STEPS[0], STEPS[1] + 1):
            own = [span for spans in lanes for span in spans if span[4] == step]
            seconds[step] = max(span[3] for span in own) - min(span[2] for span in own)
        print({step: f"{1e3 * value:.1f} ms" for step, value in seconds.items()})
        kept = min(seconds, key=lambda step: abs(seconds[step] - statistics.median_low(seconds.values())))
        RECORDED.mkdir(exist_ok=True)
        for path in sorted((pathlib.Path(folder) / "run/trace").glob("rank-*.json")):
            trace = json.loads(path.read_text(encoding="utf-8"))
            trace["traceEvents"] = [event for event in trace["traceEvents"]
                                    if event["ph"] == "M" or event.get("args", {}).get("step") == kept]
            (RECORDED / path.name).write_text(json.dumps(trace, separators=(",", ":")), encoding="utf-8")


def main():
    if "--record" in sys.argv[1:]:
        record()
    keep({"timeline-parts": picture(lanes_of(RECORDED))}, "scripts/timeline_picture.py")


if __name__ == "__main__":
    main()
