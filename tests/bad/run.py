#!/usr/bin/env python3
"""Users' mistakes, as reported by the real program: run.py PROGRAM [cli|jobs|data ...]

tests/bad/cli/NN_name/   args (one word per line; @TMP@ is an empty folder), expected.txt (stderr), code
tests/bad/jobs/NN_name/  job.yaml, args (overrides, one per line), expected.txt: `lockstep check --no-data`, code 78
Bad data sets are made by bad_data.py; their cases are in tests/bad/data/NN_name/, in the form of those in cli, and
@DATA@ is the folder of these data sets.

In expected.txt `...` stands for anything. `run.py PROGRAM --write FOLDER` writes what the program prints now.
"""
import fnmatch
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def words(case):
    file = case / "args"
    return file.read_text().splitlines() if file.exists() else []


def run(program, arguments, folder):
    result = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=120,
                            stdin=subprocess.DEVNULL, check=False)
    return result.returncode, result.stderr.replace(str(folder), "@TMP@")


def matches(expected, found):
    if "..." not in expected:
        return expected == found
    pattern = expected.replace("[", "[[]").replace("?", "[?]").replace("*", "[*]").replace("...", "*")
    return fnmatch.fnmatchcase(found, pattern)


def command_of(case, folder, data):
    if case.parent.name == "jobs":
        shutil.copy(case / "job.yaml", folder / "job.yaml")
        return ["check", "job.yaml", "--no-data", *words(case)], 78
    arguments = [word.replace("@TMP@", str(folder)).replace("@DATA@", str(data)) for word in words(case)]
    for file in case.glob("*.yaml"):
        shutil.copy(file, folder / file.name)
    return arguments, int((case / "code").read_text()) if (case / "code").exists() else 0


def judge(program, case, data, write):
    with tempfile.TemporaryDirectory() as name:
        arguments, code = command_of(case, pathlib.Path(name), data)
        found_code, found = run(program, arguments, pathlib.Path(name))
    found = found.replace(str(data), "@DATA@")
    file = case / "expected.txt"
    if write:
        file.write_text(found)
        (case / "code").write_text(f"{found_code}\n")
        return None
    prefix = "lockstep: " if case.parent.name == "jobs" else ""
    expected = prefix + file.read_text()
    if found_code == code and matches(expected, found):
        return None
    return f"{case.relative_to(HERE)}: expected {code}:\n{expected}found {found_code}:\n{found}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    write = "--write" in sys.argv
    rooms = [word for word in sys.argv[2:] if not word.startswith("--")] or ["cli", "data", "jobs"]
    cases = sorted(case for room in rooms for case in (HERE / room).glob("[0-9]*"))
    with tempfile.TemporaryDirectory() as data:
        subprocess.run([sys.executable, str(HERE / "bad_data.py"), data], check=True)
        failures = [text for case in cases if (text := judge(program, case, pathlib.Path(data), write))]
    print("\n".join(failures))
    print(f"{len(cases)} cases, {len(failures)} wrong")
    return 1 if failures or len(cases) == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
