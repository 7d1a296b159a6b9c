#!/usr/bin/env python3
"""Draws what ranks store and what moves between them: data parallelism, a model in parts, branches, and what may be
sharded among the ranks of a part (docs/parallelism.md).

    scripts/strategy_picture.py            writes docs/pictures/strategy-*.svg
    scripts/strategy_picture.py --check    changes nothing; exits with 1 if one is not current
"""
from drawing import Drawing, keep

KINDS = (("parameters", "s0"), ("gradients", "s1"), ("optimizer states", "s2"))
SEGMENTS = 4  # of a drawn model
BOX, BAR, SEGMENT, LEFT = 236, 13, 30, 102  # widths and heights inside a rank's box


def draw_rank(drawing, place, name, kept, micro_batches):
    """A box with a bar for each kind of memory; the segments of the model that the rank stores are filled."""
    x, y = place
    height = 34 + len(KINDS) * (BAR + 6) + 20
    drawing.rectangle((x, y, BOX, height), "frame")
    drawing.text(x + 10, y + 19, name, "strong")
    for row, (kind, color) in enumerate(KINDS):
        at = y + 30 + row * (BAR + 6)
        drawing.text(x + LEFT - 6, at + 10, kind, "end")
        for segment in range(SEGMENTS):
            style = f"{color} fill" if segment in kept[kind] else "empty"
            drawing.rectangle((x + LEFT + segment * SEGMENT, at, SEGMENT - 3, BAR), style)
    drawing.text(x + 10, y + height - 9, micro_batches)
    return height


def same(segments):
    """The same segments of parameters, gradients and optimizer states."""
    return {kind: set(segments) for kind, _ in KINDS}


def arrow(drawing, start, end, color, text):
    """An arrow with its text above; from left to right or from right to left."""
    drawing.arrow(start, end, color)
    drawing.text((start[0] + end[0]) / 2, start[1] - 5, text, "middle")


def data():
    drawing = Drawing(760, 178, "Data parallelism: each rank has the whole model and some of the micro-batches")
    draw_rank(drawing, (16, 44), "rank 0", same(range(4)), "computes micro-batches 0 to 3")
    draw_rank(drawing, (508, 44), "rank 1", same(range(4)), "computes micro-batches 4 to 7")
    arrow(drawing, (258, 84), (502, 84), "s1", "gradients: partial sums")
    arrow(drawing, (502, 122), (258, 122), "s1", "gradients: finished sums")
    drawing.text(380, 146, "once a step, while compute goes on", "middle")
    return drawing


def parts():
    drawing = Drawing(760, 178, "A model in parts: each rank has some of the layers, for all micro-batches")
    draw_rank(drawing, (16, 44), "part 0, rank 0", same((0, 1)), "computes micro-batches 0 to 7")
    draw_rank(drawing, (508, 44), "part 1, rank 1", same((2, 3)), "computes micro-batches 0 to 7")
    arrow(drawing, (258, 84), (502, 84), "s3", "activations at the cut")
    arrow(drawing, (502, 122), (258, 122), "s6", "their gradients")
    drawing.text(380, 146, "for each micro-batch, while others compute", "middle")
    return drawing


def branches():
    drawing = Drawing(760, 314, "Branches: parts that do not depend on each other compute side by side")
    draw_rank(drawing, (16, 44), "part 0, rank 0: one tower", same((0,)), "computes micro-batches 0 to 7")
    draw_rank(drawing, (16, 180), "part 1, rank 1: the other tower", same((1,)), "computes micro-batches 0 to 7")
    draw_rank(drawing, (508, 112), "part 2, rank 2: head and loss", same((2, 3)), "computes micro-batches 0 to 7")
    for start, end in ((84, 140), (222, 182)):
        drawing.arrow((258, start), (502, end), "s3")
        drawing.arrow((502, end + 18), (258, start + 18), "s6")
    drawing.keys(300, 296, (("s3 fill", "activations"), ("s6 fill", "their gradients")))
    return drawing


def sharding():
    to_owners, to_all = "gradients: slices to their owners", "parameters: updated slices to all"
    modes = (("optimizer states", ("optimizer states",), to_owners, to_all),
             ("gradients, too", ("gradients", "optimizer states"), to_owners, to_all),
             ("parameters, too", ("parameters", "gradients", "optimizer states"), to_owners,
              "parameters: gathered for each layer"))
    drawing = Drawing(760, 476, "What ranks with the same part, or the whole model, may divide: the steps of ZeRO")
    for row, (name, divided, first, second) in enumerate(modes):
        y = 58 + row * 140
        drawing.text(16, y - 8, f"{row + 1}: {name}", "strong")
        for rank, (x, own) in enumerate(((16, (0, 1)), (508, (2, 3)))):
            kept = {kind: set(own) if kind in divided else set(range(SEGMENTS)) for kind, _ in KINDS}
            draw_rank(drawing, (x, y), f"rank {rank}", kept, f"computes micro-batches {4 * rank} to {4 * rank + 3}")
        drawing.arrow((258, y + 34), (502, y + 34), "s1")
        drawing.arrow((502, y + 42), (258, y + 42), "s1")
        drawing.text(380, y + 24, first, "middle")
        drawing.arrow((258, y + 80), (502, y + 80), "s0")
        drawing.arrow((502, y + 88), (258, y + 88), "s0")
        drawing.text(380, y + 70, second, "middle")
    return drawing


def main():
    keep({"strategy-data": data(), "strategy-parts": parts(), "strategy-branches": branches(),
          "strategy-sharding": sharding()}, "scripts/strategy_picture.py")


if __name__ == "__main__":
    main()
