#!/usr/bin/env python3
"""Whether each wait for an event is missed where it is lost: trains a small GPT on the interpreted GPU, on one rank, goes
on from its checkpoint once for each wait that orders anything (INTERPRETED_GPU_LOSES), and says where the lost one was.

    lost_waits.py BUILD_FOLDER [--seeds N] [--first N] [--last N]

A wait is found by a check of the interpreter's, by the exit code, by another loss, norm or hash, or by another checkpoint.
One that isn't is lost again with other orders of the GPU (seeds). Prints those that no order shows, and how many waits of
each function were found. Exits 0 whatever survives. It is no part of `make test`.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from gpt_job import write_gpt  # noqa: E402  pylint: disable=wrong-import-position

STOPPED = 75  # exit code of a run that ends early and can go on
OF_A_RUN = ("data.validation.fraction=0.2", "evaluate.every=2 steps", "checkpoint.every=2 steps", "run_directory=run")


class Job:
    def __init__(self, build, folder):
        self.build, self.folder, self.gpu = build, pathlib.Path(folder), build / "interpreted-gpu"
        write_gpt(self.folder)
        self.names = self.functions()
        if (begun := self.run("0", "1", "--stop-at", "2"))[0][0] != STOPPED:
            raise SystemExit(f"the job fails without a lost wait: {begun}")
        (self.folder / "run").rename(self.folder / "begun")

    def functions(self):
        """(address, name) of the program's functions, in order."""
        said = subprocess.run(["nm", "-C", "--defined-only", self.build / "bin/lockstep"], capture_output=True, text=True,
                              check=True).stdout
        found = (re.match(r"([0-9a-f]+) [tTwW] (.*)", line) for line in said.splitlines())
        return sorted((int(line[1], 16), line[2]) for line in found if line)

    def function(self, address):
        name = max(one for one in self.names if one[0] <= address)[1]
        return re.sub(r"\(.*|lockstep::|<.*", "", name)

    def run(self, lost, seed, *words):
        """What came of it, for comparison; where the wait was that it lost; how many there were; what checks said."""
        reports = self.folder / "reports"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir()
        values = {**os.environ, "LD_LIBRARY_PATH": f"{self.gpu}/lib:{self.build}/stand-ins", "STAND_IN_GPUS": "1",
                  "INTERPRETED_GPU_PTX": f"{self.gpu}/ptx", "INTERPRETED_GPU_REPORT": str(reports),
                  "INTERPRETED_GPU_LOSES": lost, "INTERPRETED_GPU_SEED": seed}
        try:
            done = subprocess.run([self.build / "bin/lockstep", "train", "job.yaml", *OF_A_RUN, "--log", "json", *words],
                                  env=values, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False, timeout=300)
        except subprocess.TimeoutExpired:
            return "it hangs", "", 0, []
        events = [json.loads(line) for line in done.stdout.splitlines()]
        numbers = [[event.get(key) for key in ("loss", "gradient_norm", "parameters_sha256")] for event in events]
        files = sorted((self.folder / "run").rglob("*.safetensors"))
        hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        lines = [line.split("\t") for path in reports.glob("*") for line in path.read_text(encoding="utf-8").splitlines()]
        where = [word for words in lines if words[0] == "lost" for word in words[1:]]
        waits = max([int(words[3]) for words in lines if words[0] == "works"], default=0)
        return (done.returncode, numbers, hashes), where, waits, [words[2] for words in lines if words[0] == "problem"]

    def resumed(self, lost, seed):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        shutil.copytree(self.folder / "begun", self.folder / "run")
        return self.run(str(lost), str(seed))

    def place(self, addresses):
        """The function that waited, and its callers: frames of the program."""
        names = [self.function(int(address, 16) - 1) for address in addresses]
        return [name for name in names if "CudaGpu" not in name][:4]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--last", type=int, default=0, help="0: the last there is")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job = Job(words.build, folder)
        right, _, waits, problems = job.resumed(0, 1)
        if problems or right[0] != 0:
            raise SystemExit(f"it fails without a lost wait: {problems}, {right}")
        print(f"{waits} waits", flush=True)
        found, left = collections.Counter(), collections.Counter()
        for number in range(words.first, (words.last or waits) + 1):
            places = []
            for seed in range(1, words.seeds + 1):
                came, where, _, problems = job.resumed(number, seed)
                places = job.place(where) or places
                if came != right or problems:
                    break
            name = places[0] if places else "?"
            missed = came != right or bool(problems)
            (found if missed else left)[name] += 1
            if not missed:
                print(f"not found: {number}: {' < '.join(places)}", flush=True)
        for name in sorted(found | left):
            print(f"{name}: {found[name]} found, {left[name]} not")
        print(f"{found.total()} of {found.total() + left.total()} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
