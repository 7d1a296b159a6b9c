#!/usr/bin/env python3
"""Writes pendulum.libsvm, as `pendulum.py >pendulum.libsvm`: the period of pendulums, measured within 1 %, with their
length, gravity and the angle at which they turn. A pendulum that turns at 0 has no third feature: the period of small
swings."""
import math
import random

SAMPLES = 800


def period(length, gravity, angle):
    """By the arithmetic-geometric mean, which is exact for any angle."""
    a, b = 1.0, math.cos(angle / 2)
    while abs(a - b) > 1e-12:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return 2 * math.pi * math.sqrt(length / gravity) / a


def main():
    draw = random.Random(1)
    for _ in range(SAMPLES):
        length, gravity, angle = draw.uniform(0.2, 4), draw.uniform(1.6, 25), draw.uniform(0, 2.5)
        angle = 0 if draw.random() < 0.1 else angle
        measured = period(length, gravity, angle) * draw.gauss(1, 0.01)
        swing = f" 3:{angle:.4g}" if angle else ""
        print(f"{measured:.4g} 1:{length:.4g} 2:{gravity:.4g}{swing}")


if __name__ == "__main__":
    main()
