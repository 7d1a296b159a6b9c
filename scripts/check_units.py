#!/usr/bin/env python3
"""Compiles each room, and each test program, as one translation unit. Two of its sources must not use one name for two
things in their anonymous namespaces: a unity build joins some of them, and different ones whenever a file is added.

    scripts/check_units.py BUILD

BUILD holds compile_commands.json of a build without unity. Exits with 1 if there is anything to fix.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

MOST_ERRORS = 20  # per unit; one clash causes many


def units(build):
    """The sources of each target that are compiled with the same command, by that command."""
    found = collections.defaultdict(list)
    for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        output = words.index("-o")
        target = re.search(r"CMakeFiles/([^/]+)\.dir/", words[output + 1])[1]
        words = words[:output]
        if entry["file"].endswith(".cpp"):
            found[target, entry["directory"], tuple(words)].append(entry["file"])
    return {unit: files for unit, files in found.items() if len(files) > 1}


def read(unit, files):
    _, directory, words = unit
    compiler = max(i for i, word in enumerate(words) if word.endswith("++"))  # skip ccache
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.writelines(f'#include "{file}"\n' for file in files)
        source.flush()
        return subprocess.run([*words[compiler:], "-O0", "-w", "-fsyntax-only", f"-fmax-errors={MOST_ERRORS}", source.name],
                              cwd=directory, capture_output=True, text=True, check=False)


def main():
    failed = 0
    found = units(sys.argv[1])
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(read, unit, files): unit[0] for unit, files in found.items()}
        for job in concurrent.futures.as_completed(jobs):
            if job.result().returncode != 0:
                failed += 1
                print(f"{jobs[job]} as one unit:\n{job.result().stderr.rstrip()}", flush=True)
    print(f"units: {len(found)} read, {failed} to mend")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
