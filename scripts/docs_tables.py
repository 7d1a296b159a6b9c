#!/usr/bin/env python3
"""Keeps the tables of metrics (docs/metrics.md) and of events (docs/events.md) as the program prints them.

    scripts/docs_tables.py            rewrites them in place
    scripts/docs_tables.py --check    changes nothing; exits with 1 and shows what is not current

The program is $LOCKSTEP, or build/release/bin/lockstep by default.
"""
import os
import pathlib
import subprocess

from page_tables import keep_current

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    program = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
    for table in ("metrics", "events"):
        text = subprocess.run([program, table, "--markdown"], capture_output=True, check=True, text=True).stdout
        keep_current(ROOT / "docs" / f"{table}.md", [(table, text.rstrip("\n"))], "scripts/docs_tables.py")


if __name__ == "__main__":
    main()
