#!/usr/bin/env python3
"""How large and how scattered the source is: a table, and an error where a figure is worse than LIMITS.

    scripts/figures.py

A change that must exceed a limit raises it here, with its reason in the commit; one that lowers a figure lowers its
limit. GOALS is where they are to end.
"""
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
TYPE = re.compile(r"^\s*(?:template\s*<[^;{]*>\s*)?(?:struct|class|enum class|enum)\s+[A-Za-z_]\w*(?:\s+final)?\s*"
                  r"(?::[^:;{][^;{]*)?\{", re.M)
FRAME = re.compile(r"^\s*#\s*(include|pragma)|^(inline )?namespace |^}\s*// namespace", re.M)
# Strings before comments, since a string may contain a comment's beginning.
NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)

# (limit, goal); smaller is better, but for the median.
LIMITS = {
    "source files": (1350, 800),
    "lines": (139850, 108000),
    "median lines of a file": (73, 90),
    "lines of the longest file": (600, 500),
    "types per 1,000 lines of code": (18.4, 12),
    "casts per 1,000 lines of code": (12.9, 12),
    "lines that include or frame, %": (9.9, 6),
    "rooms": (13, 14),
    "arrows between rooms": (60, 60),
    "words of docs": (65870, 55000),
    "words of the longest page": (6365, 1500),
}
LARGER_IS_BETTER = {"median lines of a file"}


def code_of(text):
    return NOT_CODE.sub(lambda m: '""' if m[0][0] != "/" else "", text)


def room_of(path):
    return path.parts[0]


def arrows():
    """(room, room it includes) of src/, by its README's table of public headers."""
    source = ROOT / "src"
    public = {}
    for names, room in re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \| ([a-z/]+) \|$", (source / "README.md").read_text(), re.M):
        for name in re.findall(r"`([^`]+)`", names):
            public[name] = room
    found = set()
    for file in sources(source):
        own = room_of(file.relative_to(source))
        for header in re.findall(r'^#include "([^"]+)"', file.read_text(), re.M):
            path = pathlib.PurePath(header)
            other = public.get(path.stem) if path.parts[0] == "lockstep" else room_of(path)
            if other and other != own and (path.parts[0] == "lockstep" or (source / header).exists()):
                found.add((own, other))
    return found


def sources(*folders):
    return sorted(f for folder in folders for f in folder.rglob("*") if f.suffix in SUFFIXES)


def measure():
    texts = [f.read_text() for f in sources(ROOT / "src", ROOT / "include")]
    lines = [t.count("\n") for t in texts]
    codes = [code_of(t) for t in texts]
    of_code = sum(1 for c in codes for line in c.split("\n") if line.strip())
    links = arrows()
    words = [len(p.read_text().split()) for p in (ROOT / "docs").rglob("*.md")]
    return {
        "source files": len(texts),
        "lines": sum(lines),
        "median lines of a file": statistics.median(lines),
        "lines of the longest file": max(lines),
        "types per 1,000 lines of code": 1000 * sum(len(TYPE.findall(c)) for c in codes) / of_code,
        "casts per 1,000 lines of code": 1000 * sum(c.count("static_cast<") for c in codes) / of_code,
        "lines that include or frame, %": 100 * sum(len(FRAME.findall(t)) for t in texts) / sum(lines),
        "rooms": len({room for link in links for room in link}),
        "arrows between rooms": len(links),
        "words of docs": sum(words),
        "words of the longest page": max(words),
    }


def main():
    worse = 0
    print(f"{'':32}{'now':>10}{'limit':>10}{'goal':>10}")
    for name, value in measure().items():
        limit, goal = LIMITS[name]
        sign = -1 if name in LARGER_IS_BETTER else 1
        is_worse = sign * round(value, 1) > sign * limit
        worse += is_worse
        print(f"{name:32}{value:>10,.4g}{limit:>10,.6g}{goal:>10,.6g}{'  worse' if is_worse else ''}"
              if isinstance(value, float) else
              f"{name:32}{value:>10,}{limit:>10,}{goal:>10,}{'  worse' if is_worse else ''}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
