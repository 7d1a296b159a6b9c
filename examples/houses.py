#!/usr/bin/env python3
"""Makes houses.csv, a small table of made-up houses and their prices: houses.py > houses.csv. Standard library only.

Numbers, categories and missing values; the price follows from them by a formula that is not linear, and has noise that
nothing predicts, with a standard deviation of 15.
"""
import random

ROWS = 800
KINDS = {"flat": 0.0, "terrace": 25.0, "detached": 80.0}
HEATINGS = {"gas": 0.0, "pump": 20.0, "oil": -15.0}


def house(draw):
    kind = draw.choice(list(KINDS))
    heating = draw.choice(list(HEATINGS))
    area = round(draw.uniform(30, 90) if kind == "flat" else draw.uniform(70, 220))
    rooms = max(1, round(area / 28 + draw.uniform(-1, 1)))
    year = draw.randrange(1900, 2021)
    distance = round(draw.expovariate(1 / 6), 1)
    price = 40 + 2.2 * area + KINDS[kind] + HEATINGS[heating] + 6 * rooms + 0.4 * max(0, year - 1960)
    price = price * (0.6 + 0.8 / (1 + distance / 5)) + draw.gauss(0, 15)
    return [area, rooms, year if draw.random() > 0.1 else "", kind, heating if draw.random() > 0.05 else "", distance,
            round(price, 1)]


def main():
    draw = random.Random(1)
    print("area,rooms,year,kind,heating,distance,price")
    for _ in range(ROWS):
        print(",".join(str(value) for value in house(draw)))


if __name__ == "__main__":
    main()
