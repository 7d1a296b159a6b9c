"""tests/bad/jobs.txt through the program itself: `lockstep check` must exit with 78, or 65 where data are missing, and find
each mistake at its place. The wording may differ in lists of the catalogue's entries: the table was written with the tests' small catalogue."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

BAD = pathlib.Path(__file__).resolve().parents[1] / "bad"
sys.path.insert(0, str(BAD))
import table  # noqa: E402

PLACE = re.compile(r"^(?:lockstep: )?(job\.yaml:\d+:\d+(?:: [\w.<>\[\]]+)?|command line: [^:]+): ")


def places(text):
    return [found.group(1) for line in text.splitlines() if (found := PLACE.match(line))]


def check(program, case):
    arguments = case.arguments or []
    if any("=" not in argument for argument in arguments):
        return []  # the program would take it for a second job file
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "job.yaml").write_text(case.files["job.yaml"], encoding="utf-8")
        done = subprocess.run([program, "check", "job.yaml", *arguments], cwd=folder, capture_output=True, text=True)
    lines = case.expected.splitlines()
    code = 65 if lines and all("expected data, found nothing at" in line for line in lines) else 78
    problems = [] if done.returncode == code else [f"{case.name}: expected exit code {code}, found {done.returncode}"]
    expected, found = places(case.expected), places(done.stderr + done.stdout)
    if found != expected or not expected:
        problems.append(f"{case.name}: expected mistakes at {expected}, found {found}:\n{done.stderr}")
    return problems


def main():
    cases = table.read(BAD / "jobs.txt")
    problems = [problem for case in cases for problem in check(os.environ["LOCKSTEP"], case)]
    print("\n".join([*problems, f"{len(cases)} bad jobs"]))
    return 1 if problems or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
