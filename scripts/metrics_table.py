#!/usr/bin/env python3
"""Keeps the table of metrics in docs/observability.md as `lockstep metrics --markdown` has it.

    scripts/metrics_table.py            rewrites it in place
    scripts/metrics_table.py --check    changes nothing; exits 1 and shows the difference if it is not current

The program is $LOCKSTEP, else build/release/bin/lockstep.
"""
import os
import pathlib
import subprocess

from page_tables import keep_current

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    program = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
    table = subprocess.run([program, "metrics", "--markdown"], capture_output=True, check=True, text=True).stdout
    keep_current(ROOT / "docs" / "observability.md", [("metrics", table.rstrip("\n"))], "scripts/metrics_table.py")


if __name__ == "__main__":
    main()
