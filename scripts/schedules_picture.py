#!/usr/bin/env python3
"""Draws the schedules of docs/optimizers.md, from the learning rates that the program reports for short trainings.

    scripts/schedules_picture.py            writes docs/pictures/schedules.svg
    scripts/schedules_picture.py --check    changes nothing; exits with 1 if it is not current

The program is $LOCKSTEP, or build/release/bin/lockstep by default.
"""
import json
import os
import subprocess

from current import ROOT
from drawing import Drawing, keep

STEPS, WARMUP = 100, 10
SCHEDULES = {"constant": "constant", "linear": "{linear: {final: 0}}", "cosine": "{cosine: {final: 0}}",
             "steps": "{steps: {milestones: [50 steps, 80 steps], factor: 0.4}}",
             "exponential": "{exponential: {factor: 0.5, every: 30 steps}}", "polynomial": "{polynomial: {power: 2}}",
             "one_cycle": "one_cycle", "cosine_restarts": "{cosine_restarts: {first: 30 steps, growth: 1}}",
             "wsd": "{wsd: {decay: 0.3}}"}
JOB = ["data={train: {digits: {count: 800}}}", "model={layers: [flatten, {linear: 10}]}", "batch_size=8", "micro_batches=1",
       f"steps={STEPS}", "evaluate=never", "checkpoint=never"]
COLUMNS, WIDTH, HEIGHT = 5, 128, 74  # of the panels


def rates(schedule):
    """The rate of each step, with a peak of 1; one_cycle has no warm-up but its own."""
    warmup = "" if schedule == "one_cycle" else f", warmup: {WARMUP} steps"
    program = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
    done = subprocess.run([program, "train", *JOB, f"learning_rate={{peak: 0.001{warmup}, schedule: {SCHEDULES[schedule]}}}",
                           "--log", "json"], capture_output=True, check=True, text=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [1000 * event["learning_rate"] for event in events if event["event"] == "step"]


def schedules():
    drawing = Drawing(760, 250, f"Learning rates over {STEPS} steps, most after a warm-up of {WARMUP}")
    for index, name in enumerate(SCHEDULES):
        left, top = 16 + index % COLUMNS * (WIDTH + 20), 58 + index // COLUMNS * (HEIGHT + 30)
        drawing.rectangle((left, top, WIDTH, HEIGHT), "frame")
        drawing.text(left, top - 6, name, "strong")
        drawing.line([(left + WIDTH * step / (STEPS - 1), top + HEIGHT - (HEIGHT - 6) * rate)
                      for step, rate in enumerate(rates(name))], "s0 line")
    return drawing


if __name__ == "__main__":
    keep({"schedules": schedules()}, "scripts/schedules_picture.py")
