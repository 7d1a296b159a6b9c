#!/usr/bin/env python3
"""Draws jobs, and trains each on one rank with one thread, then on drawn placements: all must have the same results.

    tests/placement/placement_fuzz.py --seeds 1-24         24 jobs, each on 3 placements
    tests/placement/placement_fuzz.py --seeds 17 --ways 2  one placement of one job, as it is printed for a difference
    tests/placement/placement_fuzz.py --seeds 17 --ways 2 --show   the job and the placement, which are not run
    tests/placement/placement_fuzz.py --seeds 1-8 --gpu FOLDER DRIVER   on interpreted GPUs

Compared are all events that say what was computed (losses, learning rates, norms, scales, metrics, evaluations, the
parameters' hash), and the files of the last checkpoint: parameters, running statistics, averages, optimizer states. A
job that diverges must do so in the same step, with the same message. A run that fails otherwise, or takes longer than
--limit seconds, is a difference, too.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import data_files
from drawn import draw_job, draw_way
from ranks import train

WAYS = 3
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Fields that say how fast something was, on what, or since which start. All others must be equal.
OF_THIS_RUN = {"samples_per_second", "seconds", "data_wait_seconds", "micro_batch_seconds", "micro_batch_seconds_of_all",
               "phases", "prefetch", "sample_cache_bytes", "share_moves", "samples", "checkpoint"}
COMPARED = ("step", "eval", "end")
DIVERGED = 76


def results(run):
    """What a run computed, one entry for each event."""
    return [{key: value for key, value in event.items() if key not in OF_THIS_RUN and not key.endswith("_by_rank")}
            for event in run.events if event["event"] in COMPARED and event.get("outcome") != "interrupted"]


def files_of_last_checkpoint(run_directory):
    """Their hashes. Checkpoints are those of the whole model, byte for byte, however it was placed."""
    newest = max((run_directory / "checkpoints").glob("step-*"))
    return {"checkpoint": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                           for path in sorted(newest.glob("*.safetensors"))}}


def wrong_bytes(run):
    """The bytes that ranks say they have sent are those of the communication plan."""
    end = run.last("end")
    if end and end["bytes_sent_by_rank"] != end["bytes_by_formula_by_rank"]:
        return f"sent {end['bytes_sent_by_rank']}, by the plan {end['bytes_by_formula_by_rank']}"
    return ""


def believe(run_directory, placement):
    """Speeds that the balancer had measured, for the start of a run that is resumed."""
    if placement.speeds:
        (run_directory / "balance.json").write_text(json.dumps(
            {"hosts": placement.hosts, "workers": [placement.threads] * len(placement.hosts),
             "seconds_per_micro_batch": placement.speeds}), encoding="utf-8")


class Failed(Exception):
    pass


class Fuzz:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.environment = {**os.environ, "LOCKSTEP_CACHE": str(folder / "cache")}
        if options.gpu:
            gpu, driver = options.gpu
            self.environment |= {"LD_LIBRARY_PATH": f"{gpu}/lib:{driver}", "INTERPRETED_GPU_PTX": f"{gpu}/ptx",
                                 "STAND_IN_GPUS": "4", "STAND_IN_SAME": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
            self.environment.pop("CUDA_VISIBLE_DEVICES", None)

    def run(self, words, hosts, slow=None, stop=None):
        # New memory has other contents than on one rank: what is read before it is written makes a difference.
        self.environment["MALLOC_PERTURB_"] = str(17 * len(hosts) % 256)
        words = ["job.yaml", *words, "run_directory=run", *(["--stop-at", str(stop)] if stop else [])]
        run = train(words, hosts, self.folder, slow, self.options.limit, self.environment)
        if run.code is None:
            raise Failed(f"hangs: not done after {self.options.limit} s\n{run.stderr[-2000:]}")
        if run.code not in ((0, DIVERGED, 75) if stop else (0, DIVERGED)):
            raise Failed(f"exit code {run.code}\n{run.stderr[-2000:]}")
        if "interpreted GPU: " in run.stderr:
            raise Failed(f"the interpreted GPU has found something\n{run.stderr[-2000:]}")
        if wrong_bytes(run):
            raise Failed(wrong_bytes(run))
        return run

    def computed(self, number, legs):
        """The results of a way, whose legs are run one after the other until the job has ended."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        found = []
        if number % 2 == 1:  # the others find what earlier ways have left
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
        for placement, stop in legs:
            believe(self.folder / "run", placement)
            run = self.run(placement.words, placement.hosts, placement.slow, stop)
            found += results(run)
            if run.code != 75:
                break
        return [*found, self.last_of(run)]

    def last_of(self, run):
        if run.code == DIVERGED:
            return {"diverged": re.search("^lockstep: .*", run.stderr, re.MULTILINE)[0]}
        return files_of_last_checkpoint(self.folder / "run")

    def alone(self):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        run = self.run(("threads=1", "parallel={sharding: none}"), ("h0",))
        return [*results(run), self.last_of(run)]


def difference(expected, found):
    """The first event that differs, in words; empty: none does."""
    for one, other in zip(expected, found):
        wrong = [f"{key}: expected {one.get(key)}, found {other.get(key)}"
                 for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]
        if wrong:
            return f"{one.get('event', '')} {one.get('step', one.get('steps', ''))}: {'; '.join(wrong)}".strip()
    return "" if len(expected) == len(found) else f"expected {len(expected)} events, found {len(found)}"


def show(seed, number, job, legs):
    print(f"seed {seed}, way {number}:")
    print(json.dumps({"job": job.text}, indent=1))
    for placement, stop in legs:
        print(placement, f"--stop-at {stop}" if stop else "")


def command(options, seed, number):
    on_gpus = f" --gpu {' '.join(options.gpu)}" if options.gpu else ""
    return f"tests/placement/placement_fuzz.py --seeds {seed} --ways {number}{on_gpus}"


def try_seed(options, fuzz, seed):
    """The number of differences, which are printed, and of ways."""
    job = draw_job(seed, bool(options.gpu))
    (fuzz.folder / "job.yaml").write_text(json.dumps({"job": job.text}), encoding="utf-8")
    different, ways = 0, [(number, draw_way(seed, number, job, bool(options.gpu))) for number in options.ways]
    if options.show:
        for number, legs in ways:
            show(seed, number, job, legs)
        return 0, 0
    try:
        expected = fuzz.alone()
    except Failed as failed:
        print(f"seed {seed}: on one rank: {failed}\n  {command(options, seed, 0)}", flush=True)
        return 1, 0
    for number, legs in ways:
        try:
            wrong = difference(expected, fuzz.computed(number, legs))
        except Failed as failed:
            wrong = str(failed)
        if wrong:
            different += 1
            print(f"seed {seed}, way {number}: {wrong}")
            for placement, stop in legs:
                print(f"  {placement}{f' --stop-at {stop}' if stop else ''}")
            print(f"  {command(options, seed, number)}", flush=True)
    return different, len(ways)


def numbers(text):
    """3, or 3-7."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=numbers, required=True, help="a number, or two: 1-24")
    parser.add_argument("--ways", type=numbers, default=range(WAYS), help="the placements to try of each job")
    parser.add_argument("--gpu", nargs=2, metavar=("FOLDER", "DRIVER"), help="the interpreted GPU, and a stand-in driver")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run is said to hang")
    parser.add_argument("--show", action="store_true", help="print the cases only")
    options = parser.parse_args()
    different = ways = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(ROOT / "examples" / "houses.csv", folder)
        (folder / "text.txt").write_text("".join(
            f"line {i * i % 97}, {'and so on' if i % 3 else 'in short'}: {i}.\n" for i in range(60 if options.gpu else 400)),
            encoding="utf-8")
        data_files.write_all(folder)
        fuzz = Fuzz(options, folder)
        for seed in options.seeds:
            of_seed, tried = try_seed(options, fuzz, seed)
            different += of_seed
            ways += tried
    if not options.show:
        print(f"{ways} placements of {len(options.seeds)} jobs: {different or 'no'} difference{'s' if different > 1 else ''}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
