#!/usr/bin/env python3
"""Users' mistakes, as reported by the real program: run.py PROGRAM [cli|jobs|data ...]

The cases are in cli.txt, jobs.txt and data.txt (table.py says how they are read). In arguments and in what is printed,
@TMP@ is an empty folder, and @DATA@ that of the bad data sets, which bad_data.py makes. A job of jobs.txt is read by
`lockstep check --no-data`, which ends with 78. `--write` writes what the program prints now.
"""
import fnmatch
import pathlib
import subprocess
import sys
import tempfile

import table

HERE = pathlib.Path(__file__).resolve().parent


def run(program, arguments, folder):
    result = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=120,
                            stdin=subprocess.DEVNULL, check=False)
    return result.returncode, result.stderr.replace(str(folder), "@TMP@")


def matches(expected, found):
    if "..." not in expected:
        return expected == found
    pattern = expected.replace("[", "[[]").replace("?", "[?]").replace("*", "[*]").replace("...", "*")
    return fnmatch.fnmatchcase(found, pattern)


def command_of(room, case, folder, data):
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    if room == "jobs":
        return ["check", "job.yaml", "--no-data", *(case.arguments or [])], 78
    return [word.replace("@TMP@", str(folder)).replace("@DATA@", str(data)) for word in case.arguments], case.code


def judge(program, room, case, data, write):
    with tempfile.TemporaryDirectory() as name:
        arguments, code = command_of(room, case, pathlib.Path(name), data)
        found_code, found = run(program, arguments, pathlib.Path(name))
    found = found.replace(str(data), "@DATA@")
    prefix = "lockstep: " if room == "jobs" else ""
    expected = prefix + case.expected
    if found_code == code and matches(expected, found):
        return None
    if write:
        case.expected = found.removeprefix(prefix)
        case.code = None if room == "jobs" else found_code
    return f"{room}: {case.name}: expected {code}:\n{expected}found {found_code}:\n{found}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    write = "--write" in sys.argv
    rooms = [word for word in sys.argv[2:] if not word.startswith("--")] or ["cli", "data", "jobs"]
    tables = {room: table.read(HERE / f"{room}.txt") for room in rooms}
    with tempfile.TemporaryDirectory() as data:
        subprocess.run([sys.executable, str(HERE / "bad_data.py"), data], check=True)
        failures = [text for room, cases in tables.items() for case in cases
                    if (text := judge(program, room, case, pathlib.Path(data), write))]
    for room, cases in tables.items() if write else ():
        table.write(HERE / f"{room}.txt", cases)
    count = sum(map(len, tables.values()))
    print("\n".join(failures))
    print(f"{count} cases, {len(failures)} wrong")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
