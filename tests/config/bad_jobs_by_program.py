"""tests/bad/jobs through the program itself: `lockstep check` must exit with 78 and find each mistake at its place. The
wording may differ from expected.txt in lists of the catalogue's entries: expected.txt was written with the tests' small
catalogue."""

import os
import pathlib
import re
import subprocess
import sys

PLACE = re.compile(r"^(?:lockstep: )?(job\.yaml:\d+:\d+(?:: [\w.<>\[\]]+)?|command line: [^:]+): ")


def places(text):
    return [found.group(1) for line in text.splitlines() if (found := PLACE.match(line))]


def check(program, folder):
    arguments = (folder / "args").read_text().split("\n")[:-1] if (folder / "args").exists() else []
    if any("=" not in argument for argument in arguments):
        return []  # the program would take it for a second job file
    done = subprocess.run([program, "check", "job.yaml", *arguments], cwd=folder, capture_output=True, text=True)
    problems = [] if done.returncode == 78 else [f"{folder.name}: expected exit code 78, found {done.returncode}"]
    expected, found = places((folder / "expected.txt").read_text()), places(done.stderr + done.stdout)
    if found != expected or not expected:
        problems.append(f"{folder.name}: expected mistakes at {expected}, found {found}:\n{done.stderr}")
    return problems


def main():
    folders = sorted(pathlib.Path(sys.argv[1]).iterdir())
    problems = [problem for folder in folders for problem in check(os.environ["LOCKSTEP"], folder)]
    print("\n".join([*problems, f"{len(folders)} bad jobs"]))
    return 1 if problems or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
