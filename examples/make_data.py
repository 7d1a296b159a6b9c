#!/usr/bin/env python3
"""Makes the data of some examples: make_data.py churn reviews symbols, or all. Standard library only.

Each set is made up, by a rule that a model can find and with noise that it cannot; the numbers that come out are the same on
every machine. They lie in data/, or in the folder that --to names, where the examples look for them.
"""
import argparse
import csv
import math
import pathlib
import random
import struct
import sys
import zlib

DRAWN = 28  # pixels: height and width of drawn images, as of the program's own digits


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def write_table(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def churn(folder, draw):
    """Customers, an eighth of whom leave; values are missing."""
    plans, nets = {"monthly": 1.0, "yearly": -0.6, "two years": -1.6}, {"fibre": 0.7, "cable": 0.0, "none": -0.9}

    def customer():
        months, plan, net = draw.randrange(1, 73), draw.choice(list(plans)), draw.choice(list(nets))
        fee = 20 + 35 * (net != "none") + 25 * (net == "fibre") + draw.uniform(-8, 8)
        calls = min(9, int(draw.expovariate(0.8)))
        score = plans[plan] + nets[net] - months / 18 + 0.9 * calls - 1.6 + draw.gauss(0, 0.6)
        shown_net = net if draw.random() > 0.06 else ""
        return [months, plan, shown_net, round(fee, 2) if draw.random() > 0.08 else "", calls,
                "yes" if draw.random() < sigmoid(2 * score) else "no"]

    write_table(folder / "churn.csv", ["months", "plan", "internet", "fee", "calls", "left"],
                [customer() for _ in range(5000)])


def species(folder, draw):
    """Four numbers of each of three kinds of birds, which overlap."""
    kinds = {"auk": (38.8, 18.3, 190, 3700), "tern": (48.8, 18.4, 196, 3730), "gull": (47.5, 15.0, 217, 5080)}
    spread = (2.9, 1.1, 7, 420)

    def bird():
        kind, size = draw.choice(list(kinds)), draw.gauss(0, 0.7)
        return [*(round(mean + s * (0.6 * size + draw.gauss(0, 0.8)), 1) for mean, s in zip(kinds[kind], spread)), kind]

    write_table(folder / "species.csv", ["bill_length", "bill_depth", "flipper", "mass", "species"],
                [bird() for _ in range(600)])


def songs(folder, draw):
    """Five numbers of a song, and three tags, of which it has none to all."""
    def song():
        x = [draw.gauss(0, 1) for _ in range(5)]
        tempo, loudness, energy, acoustic, length = x
        scores = [1.5 * tempo + energy - 0.4 * tempo * tempo, -1.2 * energy - 0.9 * loudness + 0.3,
                  2 * abs(acoustic) - 1.5 + 0.4 * length]
        return [round(v, 3) for v in x] + [int(score + draw.gauss(0, 0.4) > 0) for score in scores]

    write_table(folder / "songs.csv", ["tempo", "loudness", "energy", "acoustic", "length", "dance", "calm", "live"],
                [song() for _ in range(3000)])


def trips(folder, draw):
    """Minutes and fare of a taxi's trip; a traffic jam now and then makes minutes that nothing predicts."""
    def trip():
        distance, hour, rain = round(draw.expovariate(1 / 5) + 0.5, 2), draw.randrange(24), draw.choice(["yes", "no", "no"])
        speed = 32 - 12 * math.exp(-((hour - 8) / 2) ** 2) - 14 * math.exp(-((hour - 17.5) / 2.5) ** 2) - 5 * (rain == "yes")
        minutes = 2 + 60 * distance / speed + draw.gauss(0, 1) + (draw.uniform(20, 90) if draw.random() < 0.05 else 0)
        fare = 3.5 + 1.9 * distance + 0.3 * minutes + (2 if hour < 6 else 0) + draw.gauss(0, 0.5)
        return [distance, hour, rain, round(max(1, minutes), 1), round(fare, 2)]

    write_table(folder / "trips.csv", ["distance", "hour", "rain", "minutes", "fare"], [trip() for _ in range(4000)])


def homes(folder, draw):
    """A home's size, age, garden and place, of which follow both what it is and its price."""
    def home():
        size, age, place = round(draw.uniform(25, 180)), draw.randrange(120), draw.choice(["centre", "town", "village"])
        garden = round(draw.expovariate(1 / (30 if place == "centre" else 250)))
        score = size / 45 + garden / 120 - 3.2 - 1.2 * (place == "centre") + draw.gauss(0, 0.5)
        kind = "flat" if score < 0 else "terrace" if score < 1.6 else "villa"
        price = size * {"centre": 0.062, "town": 0.041, "village": 0.028}[place] * (1.25 - age / 300) + garden / 900
        return [size, age, garden, place, kind, round(price * (1.2 if kind == "villa" else 1) + draw.gauss(0, 0.3), 2)]

    write_table(folder / "homes.csv", ["size", "age", "garden", "place", "kind", "price"], [home() for _ in range(3000)])


def ratings(folder, draw):
    """What 150 users think of 100 films, from 1 to 5: both have three hidden tastes."""
    users, films = ([[draw.gauss(0, 1) for _ in range(3)] for _ in range(count)] for count in (150, 100))
    kind = [draw.gauss(0, 0.4) for _ in films]

    def rating():
        user, film = draw.randrange(len(users)), draw.randrange(len(films))
        liking = 3.2 + kind[film] + 0.6 * sum(a * b for a, b in zip(users[user], films[film])) + draw.gauss(0, 0.3)
        return [f"u{user:03}", f"f{film:03}", round(2 * min(5, max(1, liking))) / 2]

    write_table(folder / "ratings.csv", ["user", "film", "rating"], [rating() for _ in range(6000)])


def load(folder, draw):
    """A town's electricity by the hour, as windows: 48 hours, and the next one. Validation is the time after training."""
    series, weather = [], 0.0
    for hour in range(24 * 7 * 20):
        weather = 0.97 * weather + draw.gauss(0, 1)
        day = math.sin((hour % 24 - 9) / 24 * 2 * math.pi) + 0.4 * math.sin((hour % 24 - 3) / 12 * 2 * math.pi)
        weekend = 0.7 if hour // 24 % 7 >= 5 else 1.0
        series.append(round(50 + 12 * day * weekend + 8 * weekend + 1.5 * weather + draw.gauss(0, 0.7), 2))
    header = [f"h{back:02}" for back in range(48, 0, -1)] + ["next"]
    windows = [series[i:i + 49] for i in range(len(series) - 48)]
    split = len(windows) * 4 // 5
    write_table(folder / "load.csv", header, windows[:split])
    write_table(folder / "load-later.csv", header, windows[split + 48:])  # without hours that both would have


def gestures(folder, draw):
    """64 readings of a sensor that is waved, shaken, or turned, at any time of the window."""
    def readings(kind):
        start, speed, sign = draw.uniform(4, 28), draw.uniform(0.8, 1.25), draw.choice([-1, 1])
        shape = {"wave": lambda t: math.sin(t / 3), "shake": lambda t: math.sin(t * 1.3),
                 "turn": lambda t: 1.3 * math.tanh((t - 14) / 3)}[kind]
        tail = [shape(speed * t) if 0 <= (t := i - start) < 28 else 0 for i in range(64)]
        return [round(sign * value + draw.gauss(0, 0.35), 2) for value in tail]

    kinds = [draw.choice(["wave", "shake", "turn"]) for _ in range(2400)]
    write_table(folder / "gestures.csv", [f"r{i:02}" for i in range(64)] + ["gesture"],
                [[*readings(kind), kind] for kind in kinds])


def faults(folder, draw):
    """32 readings of a smooth course, and for each whether it is a fault: the sensor is stuck, or jumps."""
    def window():
        phase, slope, values = draw.uniform(0, 6.3), draw.uniform(0.15, 0.45), []
        marks = [0] * 32
        for i in range(32):
            values.append(math.sin(phase + slope * i) + draw.gauss(0, 0.05))
        if draw.random() < 0.6:
            first, length = draw.randrange(2, 26), draw.randrange(3, 7)
            for i in range(first, first + length):
                values[i], marks[i] = values[first - 1], 1
        for _ in range(draw.randrange(3)):
            i = draw.randrange(32)
            values[i], marks[i] = values[i] + draw.choice([-1, 1]) * draw.uniform(0.8, 1.5), 1
        return [round(v, 2) for v in values] + marks

    write_table(folder / "faults.csv", [f"r{i:02}" for i in range(32)] + [f"fault{i:02}" for i in range(32)],
                [window() for _ in range(2500)])


GOOD = "great lovely bright charming moving clever funny warm honest fresh gripping superb".split()
BAD = "dull awful clumsy boring weak noisy tired cold messy slow empty dreadful".split()
PLAIN = "film story actor scene music end camera script hour room friend city night part line voice word idea".split()


def reviews(folder, draw):
    """Reviews of films as a bag of words: how often each word of the vocabulary stands in the text; and the verdict."""
    def review():
        verdict, words = draw.choice(["good", "bad"]), []
        for _ in range(draw.randrange(8, 30)):
            kind = draw.random()
            right = (verdict == "good") == (kind > 0.06)  # a fifth of the words that judge are against the verdict
            words.append(draw.choice(PLAIN) if kind > 0.3 else draw.choice(GOOD if right else BAD))
        return words, verdict

    vocabulary = sorted(GOOD + BAD + PLAIN)
    texts = [review() for _ in range(3000)]
    write_table(folder / "reviews.csv", [*vocabulary, "verdict"],
                [[*(words.count(word) for word in vocabulary), verdict] for words, verdict in texts])


FAULTS = {"water": ["pipe", "tap", "drain", "hydrant"], "lights": ["lamp", "bulb", "lantern", "signal"],
          "roads": ["pavement", "kerb", "bridge", "crossing"], "parks": ["bench", "swing", "hedge", "fountain"]}


def complaints(folder, draw):
    """Letters to a town, of one to seven sentences: which office should act? Things of several offices are named, and one of
    them is broken."""
    def sentence(office, broken):
        state = draw.choice(["is broken", "does not work", "fell down", "is damaged"] if broken else ["is fine", "works well", "looks good", "was mended"])
        return f"The {draw.choice(FAULTS[office])} {draw.choice(['at our corner', 'in Mill Lane', 'by the school', 'here'])} {state}."

    def letter():
        office, others = draw.choice(list(FAULTS)), []
        for _ in range(draw.randrange(4)):
            others.append(sentence(draw.choice(list(FAULTS)), False))
        others.insert(draw.randrange(len(others) + 1), sentence(office, True))
        greeting = draw.choice(["", "", "Dear Sir or Madam,", "Hello!", "I have lived here for twenty years."])
        end = draw.choice(["", "", "Yours, a neighbour", "Please hurry.", "Thank you for looking into this."])
        return [" ".join(part for part in [greeting, *others, end] if part), office]

    write_table(folder / "complaints.csv", ["text", "office"], [letter() for _ in range(3000)])


def png(rows):
    """A grey image of 8 bits."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(r) for r in rows)))
            + chunk(b"IEND", b""))


SYMBOLS = {  # strokes from point to point, in a square from -1 to 1
    "plus": [(-1, 0, 1, 0), (0, -1, 0, 1)], "minus": [(-1, 0, 1, 0)], "times": [(-.8, -.8, .8, .8), (-.8, .8, .8, -.8)],
    "equals": [(-1, -.4, 1, -.4), (-1, .4, 1, .4)], "root": [(-1, .1, -.6, .1), (-.6, .1, -.2, .9), (-.2, .9, .2, -.9), (.2, -.9, 1, -.9)],
    "less": [(.8, -.8, -.8, 0), (-.8, 0, .8, .8)], "greater": [(-.8, -.8, .8, 0), (.8, 0, -.8, .8)],
    "sum": [(.8, -1, -.8, -1), (-.8, -1, .2, 0), (.2, 0, -.8, 1), (-.8, 1, .8, 1)],
}


def distance(x, y, stroke):
    ax, ay, bx, by = stroke
    along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)
    along = min(1, max(0, along))
    return math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay))


def drawn(symbol, draw):
    """Brightness of each pixel, 0 to 1: the symbol by an unsteady hand."""
    size, turn, width = draw.uniform(6, 9.5), draw.uniform(-0.3, 0.3), draw.uniform(0.7, 1.5)
    middle = [DRAWN / 2 + draw.uniform(-3, 3) for _ in range(2)]

    def place(x, y):
        x, y = x + draw.gauss(0, 0.13), y + draw.gauss(0, 0.13)
        return (middle[0] + size * (x * math.cos(turn) - y * math.sin(turn)),
                middle[1] + size * (x * math.sin(turn) + y * math.cos(turn)))

    strokes = [(*place(*stroke[:2]), *place(*stroke[2:])) for stroke in SYMBOLS[symbol]]
    return [[min(1, max(0, width + 0.5 - min(distance(x, y, stroke) for stroke in strokes))) for x in range(DRAWN)]
            for y in range(DRAWN)]


def with_noise(image, draw, noise):
    return [[min(255, max(0, round(255 * (value + draw.gauss(0, noise))))) for value in row] for row in image]


def symbols(folder, draw):
    """Eight signs of arithmetic, drawn: a folder for each, 25 images to train on and 50 to look at."""
    for part, count in {"train": 25, "validation": 50}.items():
        for symbol in SYMBOLS:
            place = folder / "symbols" / part / symbol
            place.mkdir(parents=True, exist_ok=True)
            for i in range(count):
                (place / f"{i:02}.png").write_bytes(png(with_noise(drawn(symbol, draw), draw, 0.1)))


def shapes(folder, draw):
    """Discs and squares in front of noise, and masks that say of each pixel what it is; edges of both count nowhere (255)."""
    rows, place = [], folder / "shapes"
    place.mkdir(parents=True, exist_ok=True)
    for i in range(600):
        image = [[draw.uniform(0.1, 0.4)] * DRAWN for _ in range(DRAWN)]
        mask = [[0] * DRAWN for _ in range(DRAWN)]
        for _ in range(draw.randrange(1, 3)):
            kind, x, y, size, shade = draw.choice([1, 2]), draw.uniform(6, 22), draw.uniform(6, 22), draw.uniform(4, 7), draw.uniform(0.7, 1)
            for r in range(DRAWN):
                for c in range(DRAWN):
                    away = math.hypot(c - x, r - y) if kind == 1 else max(abs(c - x), abs(r - y))
                    if away < size + 0.5:
                        mask[r][c] = kind if away < size - 0.5 else 255
                        image[r][c] = shade
        (place / f"image{i:03}.png").write_bytes(png(with_noise(image, draw, 0.08)))
        (place / f"mask{i:03}.png").write_bytes(png(mask))
        rows.append([f"image{i:03}.png", f"mask{i:03}.png"])
    write_table(place / "shapes.csv", ["image", "mask"], rows)


def gauges(folder, draw):
    """Photos of a round gauge with one needle, and what it reads: 0 at the lower left, 10 at the lower right."""
    rows, place = [], folder / "gauges"
    place.mkdir(parents=True, exist_ok=True)
    for i in range(1200):
        x, y, radius, reading = draw.uniform(12, 16), draw.uniform(12, 16), draw.uniform(9, 11.5), round(draw.uniform(0, 10), 2)
        turn, ground, width = math.radians(135 + 27 * reading), draw.uniform(0.05, 0.3), draw.uniform(0.6, 1.1)
        needle = (x, y, x + 0.85 * radius * math.cos(turn), y + 0.85 * radius * math.sin(turn))
        image = [[ground + 0.7 * min(1, max(0, width + 0.5 - min(distance(c, r, needle), abs(math.hypot(c - x, r - y) - radius))))
                  for c in range(DRAWN)] for r in range(DRAWN)]
        (place / f"gauge{i:04}.png").write_bytes(png(with_noise(image, draw, 0.08)))
        rows.append([f"gauge{i:04}.png", reading])
    write_table(place / "gauges.csv", ["image", "reading"], rows)


def stains(folder, draw):
    """The same signs twice: with much noise and a blot, and clean. A CSV says which images belong together."""
    rows, place = [], folder / "stains"
    place.mkdir(parents=True, exist_ok=True)
    for i in range(800):
        symbol = draw.choice(list(SYMBOLS))
        clean = drawn(symbol, draw)
        x, y, radius = draw.uniform(4, 24), draw.uniform(4, 24), draw.uniform(2, 4)
        dirty = [[value if math.hypot(c - x, r - y) > radius else 0.5 for c, value in enumerate(row)]
                 for r, row in enumerate(clean)]
        for kind, image in {"dirty": with_noise(dirty, draw, 0.25), "clean": with_noise(clean, draw, 0)}.items():
            (place / f"{kind}{i:03}.png").write_bytes(png(image))
        rows.append([f"dirty{i:03}.png", f"clean{i:03}.png", symbol])
    write_table(place / "stains.csv", ["dirty", "clean", "label"], rows)


SETS = {made.__name__: made for made in (churn, species, songs, trips, homes, ratings, load, gestures, faults, reviews,
                                     complaints, symbols, stains, shapes, gauges)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=[*SETS, "all"], metavar="NAME", help=", ".join([*SETS, "all"]))
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("data"), help="folder to write to (data)")
    arguments = parser.parse_args()
    for name in SETS if "all" in arguments.names else arguments.names:
        SETS[name](arguments.to, random.Random(name))
        print(f"made {name} in {arguments.to}", file=sys.stderr)


if __name__ == "__main__":
    main()
