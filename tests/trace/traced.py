"""Shared by the tests of timelines: traced runs, on one host or with each rank on its own pretended host."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "observability"))
from servers import AS_HOST, MPIRUN  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]


def train(directory, ranks, *words, hosts=False):
    """The events of a successful run."""
    start = [PROGRAM, "train", "--ranks", str(ranks)]
    if hosts:
        start = [*MPIRUN, "-n", str(ranks), "sh", "-c", AS_HOST, PROGRAM, "train"]
    done = subprocess.run([*start, *words, f"run_directory={directory}", "--log", "json"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def merge(directory):
    """The two lines that `lockstep trace merge` prints, and the merged file's events."""
    done = subprocess.run([PROGRAM, "trace", "merge", str(directory)], capture_output=True, text=True, check=False)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    with open(f"{directory}/trace/merged.json", encoding="utf-8") as file:
        return done.stdout.splitlines(), json.load(file)
