#!/usr/bin/env python3
"""Draws the reliability diagram of docs/ensembles.md: of confidences, how many were right, for the best member and the
ways to combine all.

    lockstep ensemble eval ensembles/few --set test --log json | scripts/ensemble_picture.py
"""
import json
import sys

from drawing import PICTURES, Drawing

LEFT, TOP, SIDE, GAP = 56, 44, 190, 50  # of the axes of a panel
LEAST = 20  # predictions in a bin; those of fewer are left out


def panel(drawing, left, name, row, color):
    def at(x, y):
        return left + SIDE * x, TOP + SIDE * (1 - y)
    drawing.rectangle((left, TOP, SIDE, SIDE), "frame")
    for tick in (0, 0.5, 1):
        drawing.text(at(tick, 0)[0], TOP + SIDE + 14, f"{tick:g}", "middle")
        drawing.text(left - 6, at(0, tick)[1] + 4, f"{tick:g}", "end")
    most = max(entry["count"] for entry in row["bins"])
    for entry in row["bins"]:
        x, y = at(entry["low"], 0.35 * entry["count"] / most)
        drawing.rectangle((x, y, SIDE / len(row["bins"]) - 1, TOP + SIDE - y), f"{color} fill pale",
                          f"{entry['count']} predictions")
    drawing.line([at(0, 0), at(1, 1)], "grid")
    drawing.line([at(entry["confidence"], entry["accuracy"]) for entry in row["bins"] if entry["count"] >= LEAST],
                 f"{color} line")
    drawing.text(left + 8, TOP + 16, name, "strong")
    drawing.text(left + 8, TOP + 31, f"accuracy {row['metrics']['accuracy']:.4f}  ECE {row['calibration_error']:.4f}")


def main():
    result = json.loads(sys.stdin.read())
    drawing = Drawing(LEFT + 3 * (SIDE + GAP), TOP + SIDE + 40,
                      f"Confidence (across) and the share that is right (up), {result['samples']} {result['set']} samples")
    best = max(range(len(result["members"])), key=lambda m: result["members"][m]["metrics"]["accuracy"])
    rows = [(f"member {best}, the best", result["members"][best])]
    rows += [(row["by"], row) for row in result["combined"] if row["by"] != "weighted"]
    for i, (name, row) in enumerate(rows):
        panel(drawing, LEFT + i * (SIDE + GAP), name, row, f"s{i}")
    drawing.text(LEFT, TOP + SIDE + 32, f"Bars: how many predictions have that confidence. Lines: bins of {LEAST} or more.")
    (PICTURES / "ensemble-reliability.svg").write_text(drawing.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
