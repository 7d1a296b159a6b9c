#!/usr/bin/env python3
"""Draws the tree in which gradients are added, and which rank adds what of it (docs/exactness.md).

    scripts/tree_picture.py            writes docs/pictures/tree.svg
    scripts/tree_picture.py --check    changes nothing; exits with 1 if it is not current
"""
from drawing import Drawing, keep

RANKS = (0, 0, 1, 1, 2, 2, 0, 1)  # of each micro-batch: 3, 3 and 2 of them, as lockstep places 8 on 3 ranks
LEAF, GAP, HEIGHT, BOTTOM = 72, 88, 24, 220
RISE = 56  # from a level to the next


def box(drawing, middle, level, text, rank):
    """A node; `rank` is None where the owner of a slice adds."""
    y = BOTTOM - RISE * level
    style = "empty" if rank is None else f"s{rank} fill"
    drawing.rectangle((middle - LEAF / 2, y, LEAF, HEIGHT), style)
    drawing.text(middle, y + 16, text, "middle strong" if rank is None else "middle light")


def tree():
    drawing = Drawing(760, 300, "8 micro-batches on 3 ranks: the tree of sums is the same on any number of ranks")
    nodes = [(60 + GAP * i, str(i), rank) for i, rank in enumerate(RANKS)]
    level = 0
    while True:
        for middle, text, rank in nodes:
            box(drawing, middle, level, f"gradient {text}" if level == 0 else text, rank)
        if len(nodes) == 1:
            break
        parents = []
        for (left, first, one), (right, second, other) in zip(nodes[::2], nodes[1::2]):
            middle, top = (left + right) / 2, BOTTOM - RISE * (level + 1) + HEIGHT
            for child in (left, right):
                drawing.line([(child, BOTTOM - RISE * level), (middle, top)], "frame")
            parents.append((middle, f"{first.split()[0]} to {second.split()[-1]}", one if one == other else None))
        nodes, level = parents, level + 1
    drawing.keys(24, 284, (("s0 fill", "rank 0"), ("s1 fill", "rank 1"), ("s2 fill", "rank 2"),
                           ("empty", "added by the owner of each slice")))
    return drawing


if __name__ == "__main__":
    keep({"tree": tree()}, "scripts/tree_picture.py")
