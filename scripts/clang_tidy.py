#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/, several at a time, and remembers which were clean.

    scripts/clang_tidy.py BUILD [FILE...]

BUILD holds compile_commands.json. A file is checked again only if it, a header of ours that it includes, its flags,
.clang-tidy or clang-tidy itself has changed since it was last clean. Exits with 1 if there is anything to fix.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

from check_includes import includes_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATABASE = ROOT / "build" / "lint" / "database"
STAMPS = ROOT / "build" / "lint" / "clean"
GCC_ONLY = ("-mmove-max=", "-mstore-max=")  # clang stops at an unknown flag


def headers_of(path, seen):
    """Adds to `seen` our own headers that `path` includes, directly or not."""
    for _, kind, header in includes_of(path):
        for folder in ("src", "include"):
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


def main():
    build = sys.argv[1]
    wanted = {pathlib.Path(name).resolve() for name in sys.argv[2:]}
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    base = version + (ROOT / ".clang-tidy").read_bytes()
    for folder in (STAMPS, DATABASE):
        folder.mkdir(parents=True, exist_ok=True)
    for command in commands:
        command["command"] = " ".join(word for word in command["command"].split(" ") if not word.startswith(GCC_ONLY))
    (DATABASE / "compile_commands.json").write_text(json.dumps(commands))
    todo = {}
    for command in commands:
        path = pathlib.Path(command["file"])
        ours = ROOT / "src" in path.parents and path.suffix == ".cpp"  # clang does not support this CUDA version
        if ours and path.is_file() and (not wanted or path in wanted):
            key = key_of(path, command["command"], base)
            if not (STAMPS / key).exists():
                todo[path] = key
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(lint, path): path for path in todo}
        for job in concurrent.futures.as_completed(jobs):
            path, (status, output) = jobs[job], job.result()
            if status == 0:
                (STAMPS / todo[path]).touch()
            else:
                failed += 1
                print(output.rstrip(), flush=True)
    print(f"clang-tidy: {len(todo)} files read, {failed} to mend")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
