#!/usr/bin/env python3
"""Grafana's own dashboard-linter, with --strict, on every dashboard: LOCKSTEP_DASHBOARD_LINTER, or the one in PATH, or
one built from its Go module. Skipped, with a message that says why, if none of these is available."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from servers import DASHBOARDS

MODULE = "github.com/grafana/dashboard-linter"
COMMIT = "1be3836b83fbcf9508efcd87af87dfbfbec94279"  # from May 2026, after v0.2.0
CACHE = pathlib.Path(os.environ["LOCKSTEP_CACHE"])
HINT = "set LOCKSTEP_DASHBOARD_LINTER, or put dashboard-linter into PATH"


def skip(why):
    print(f"skipped: no dashboard-linter: {why}; {HINT}")
    raise SystemExit(77)


def built():
    """Its module has a `replace`, so `go install` refuses it: it is built inside the module's folder."""
    program = CACHE / f"dashboard-linter-{COMMIT[:12]}"
    if program.exists():
        return program
    if shutil.which("go") is None:
        skip("there is no Go to build it with")
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-p=2 -buildvcs=false"}
    done = subprocess.run(["go", "mod", "download", "-json", f"{MODULE}@{COMMIT}"], capture_output=True, text=True,
                          check=False, cwd=tempfile.gettempdir(), env=environment)
    module = json.loads(done.stdout) if done.stdout else {"Error": done.stderr.strip()}
    if module.get("Error"):
        skip(module["Error"].splitlines()[0])
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")
    done = subprocess.run(["nice", "go", "build", "-o", fresh, "."], cwd=module["Dir"], env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        skip(f"it does not build: {done.stderr.strip().splitlines()[-1]}")
    return fresh.rename(program)


def linter():
    given = os.environ.get("LOCKSTEP_DASHBOARD_LINTER") or shutil.which("dashboard-linter")
    return given or built()


class Linter(unittest.TestCase):
    def lint(self, file):
        return subprocess.run([LINTER, "lint", "--strict", "--verbose", file], capture_output=True, text=True, check=False)

    def test_it_has_nothing_to_say(self):
        self.assertEqual(len(DASHBOARDS), 4)
        for file in DASHBOARDS:
            done = self.lint(file)
            self.assertEqual(done.returncode, 0, f"{file.name}:\n{done.stdout}{done.stderr}")

    def test_it_would_have(self):
        """A query without labels and a panel without a description are both found, so that no finding means
        something."""
        for break_it in (lambda panel: panel["targets"][0].update(expr="lockstep_world_size"),
                         lambda panel: panel.update(description="")):
            board = json.loads(DASHBOARDS[0].read_text())
            panel = next(panel for panel in board["panels"] if panel["type"] == "timeseries")
            break_it(panel)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(json.dumps(board))
                file.flush()
                done = self.lint(file.name)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn(panel["title"], done.stdout + done.stderr)


if __name__ == "__main__":
    LINTER = linter()
    print(f"by {LINTER}", file=sys.stderr)
    unittest.main(verbosity=2)
