#!/usr/bin/env python3
"""Keeps the output of the commands in docs/goodput.md and docs/design/goodput.md current: a simulation prints the same
each time.

    scripts/goodput_page.py            runs each `$ ...` in the pages' code blocks and rewrites the output below it
    scripts/goodput_page.py --check    changes nothing; exits with 1 and shows what has changed

The program is $LOCKSTEP, or build/release/bin/lockstep by default. Lines that begin with `> ` continue a command.
"""
import os
import pathlib
import re
import subprocess

from current import keep_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs" / "goodput.md", ROOT / "docs" / "design" / "goodput.md"]
BLOCK = re.compile(r"(?m)^```\n(\$ (?:.*\n)*?)```$")
COMMAND = re.compile(r"(?m)^\$ .*\n(?:> .*\n)*")


def output_of(command, program):
    """The output of `$ ...` and its continuation lines, run by bash."""
    script = "\n".join(line[2:] for line in command.splitlines())
    return subprocess.run(["bash", "-c", f'lockstep() {{ "$LOCKSTEP" "$@"; }}\n{script}'], check=True, text=True,
                          stdout=subprocess.PIPE, env=os.environ | {"LOCKSTEP": program}).stdout


def with_outputs(page, program):
    def renew(block):
        commands = COMMAND.findall(block[1])
        return "```\n" + "".join(command + output_of(command, program) for command in commands) + "```"

    return BLOCK.sub(renew, page)


def main():
    program = os.path.abspath(os.environ.get("LOCKSTEP", ROOT / "build/release/bin/lockstep"))
    pages = {page: with_outputs(page.read_text(encoding="utf-8"), program) for page in PAGES}
    keep_files(pages, "scripts/goodput_page.py")


if __name__ == "__main__":
    main()
