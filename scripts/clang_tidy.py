#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/ and of the interpreted GPU, several at a time, and remembers which were clean.

    scripts/clang_tidy.py BUILD [FILE...]

BUILD holds compile_commands.json. A file is checked again only if it, a header of ours that it includes, its flags,
.clang-tidy or clang-tidy itself has changed since it was last clean. Exits with 1 if there is anything to fix.

Most of the time goes into the headers that a file includes. So the files of a room are read as one translation unit,
which check_units.py holds to be possible, a dozen at a time; only where that finds something are they read one by one.

The files that were changed last are read first. $LOCKSTEP_TIDY_SECONDS limits the time: what has not been begun by then
is left out, and counted.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from check_includes import includes_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATABASE = ROOT / "build" / "lint" / "database"
STAMPS = ROOT / "build" / "lint" / "clean"
UNITS = ROOT / "build" / "lint" / "units"
UNIT_SIZE = 12
READ = (ROOT / "src", ROOT / "tests" / "cuda" / "interpreter")  # of the tests what is a program of its own: a whole GPU
GCC_ONLY = ("-mmove-max=", "-mstore-max=")  # clang stops at an unknown flag


def headers_of(path, seen):
    """Adds to `seen` our own headers that `path` includes, directly or not."""
    for _, kind, header in includes_of(path):
        for folder in ("src", "include", "tests"):
            found = ROOT / folder / header
            if kind == '"' and found.is_file() and found not in seen:
                seen.add(found)
                headers_of(found, seen)


def key_of(path, flags, base):
    seen = set()
    headers_of(path, seen)
    digest = hashlib.sha256(base + flags.encode())
    for file in [path, *sorted(seen)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def lint(path):
    done = subprocess.run(["clang-tidy", "-p", DATABASE, "--quiet", str(path)], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout if done.stdout.strip() or done.returncode == 0 else done.stderr


def flags_of(command):
    return command["command"].split(" -o ")[0]


def units_of(commands):
    """Lists of the commands that are read together: files of one folder that are compiled with the same flags."""
    alike = collections.defaultdict(list)
    for command in commands:
        alike[flags_of(command), pathlib.Path(command["file"]).parent].append(command)
    rooms = collections.defaultdict(list)  # a room's folders in turn, so that a small one does not stand alone
    for (flags, folder), found in sorted(alike.items()):
        rooms[flags, folder.relative_to(ROOT).parts[:2]] += found
    return [files[i:i + UNIT_SIZE] for files in rooms.values() for i in range(0, len(files), UNIT_SIZE)]


def own_settings(path):
    """The .clang-tidy of a source's folder, where it has one of its own, beside that of the tree; else None."""
    found = next(file for folder in path.parents if (file := folder / ".clang-tidy").is_file())
    return None if found.parent == ROOT else found


def write_unit(number, commands):
    """Returns the compile command of a source that includes those of `commands`. clang-tidy looks for settings in the
    folder of the source that it reads."""
    settings = own_settings(pathlib.Path(commands[0]["file"]))
    folder = UNITS / settings.parent.name if settings else UNITS
    folder.mkdir(exist_ok=True)
    if settings:
        shutil.copy(settings, folder)
    source = folder / f"{number}.cpp"
    source.write_text("".join(f'#include "{command["file"]}"  // NOLINT(bugprone-suspicious-include)\n'
                              for command in commands))
    return {"directory": commands[0]["directory"], "file": str(source),
            "command": f"{flags_of(commands[0])} -c {source}"}


def ages():
    """How many files have been committed since, by path."""
    names = subprocess.run(["git", "log", "--format=", "--name-only", "-n", "1000"], capture_output=True, text=True,
                           check=False, cwd=ROOT).stdout.splitlines()
    return {ROOT / name: age for age, name in reversed([*enumerate(names)])}


def lint_unit(unit, files, end):
    """The findings, as text, by file: of the unit as a whole first, and of each file where it is not clean. None after
    `end`."""
    if time.monotonic() > end:
        return None
    if len(files) > 1 and lint(unit)[0] == 0:
        return []
    return [(file, *lint(file)) for file in files]


def main():
    build = sys.argv[1]
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    base = version + (ROOT / ".clang-tidy").read_bytes()
    for folder in (STAMPS, DATABASE, UNITS):
        folder.mkdir(parents=True, exist_ok=True)
    todo, seen = {}, set()
    for command in commands:
        command["command"] = " ".join(word for word in command["command"].split(" ") if not word.startswith(GCC_ONLY))
        path = pathlib.Path(command["file"])
        ours = path.suffix == ".cpp" and any(folder in path.parents for folder in READ)  # clang knows no such CUDA
        if ours and path not in seen and path.is_file() and (not wanted or path in wanted):
            seen.add(path)  # two targets may have a file; one reading is enough
            settings = own_settings(path)
            key = key_of(path, command["command"], base + (settings.read_bytes() if settings else b""))
            if not (STAMPS / key).exists():
                todo[path] = key, command
    age = ages()
    units = sorted(units_of([command for _, command in todo.values()]),
                   key=lambda unit: min(age.get(pathlib.Path(command["file"]), len(age)) for command in unit))
    written = [write_unit(number, unit) for number, unit in enumerate(units)]
    (DATABASE / "compile_commands.json").write_text(json.dumps(commands + written))
    failed = left_out = 0
    end = time.monotonic() + float(os.environ.get("LOCKSTEP_TIDY_SECONDS") or "inf")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(lint_unit, source["file"], [pathlib.Path(command["file"]) for command in unit], end): unit
                for source, unit in zip(written, units, strict=True)}
        for job in concurrent.futures.as_completed(jobs):
            unclean = {}
            if job.result() is None:
                left_out += len(jobs[job])
                continue
            for path, status, output in job.result():
                if status != 0:
                    unclean[str(path)] = output
            for command in jobs[job]:
                output = unclean.get(command["file"])
                if output is None:
                    (STAMPS / todo[pathlib.Path(command["file"])][0]).touch()
                else:
                    failed += 1
                    print(output.rstrip(), flush=True)
    no_time = f"; {left_out} left out, there was no time" if left_out else ""
    print(f"clang-tidy: {len(todo) - left_out} files read, {failed} to mend{no_time}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
