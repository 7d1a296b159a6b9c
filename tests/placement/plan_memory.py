#!/usr/bin/env python3
"""Holds the memory that `lockstep plan` predicts against the peak of each rank, for 24 placements.

    tests/placement/plan_memory.py                        all of them; exits 1 if a rank is more than 5 % off
    tests/placement/plan_memory.py --only gradients,slow  those whose line has both words

Gradients are large, so that an error of one partial sum is not lost in the memory of the process. Ranks are on emulated
hosts, some have more threads or micro-batches than others, and some are slow while `balance: auto` moves micro-batches.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from drawn import flow
from ranks import PROGRAM, Slow, train

MOST = 5  # percent
ONE_HOST, TWO_HOSTS, FOUR_ON_TWO = ("h0", "h0"), ("h0", "h1"), ("h0", "h0", "h1", "h1")
SLOW = Slow(rank=1, runs=0.02, stops=0.08)


def job(model, data, batch):
    return {"name": "probe", "model": model, "data": {"train": data}, "batch_size": batch, "micro_batches": batch, "steps": 4,
            "evaluate": "never", "checkpoint": "never", "learning_rate": 0.001, "seed": 1}


MODELS = {"mlp": job({"mlp": {"hidden": [1024] * 20}}, {"digits": {"count": 2000}}, 32),
          "mlp64": job({"mlp": {"hidden": [1024] * 20}}, {"digits": {"count": 2000}}, 64),
          "gpt": {**job({"gpt": {"layers": 6, "heads": 6, "width": 384, "bias": False}},
                        {"text": {"path": "text.txt", "tokenizer": "characters", "context": 32}}, 14), "optimizer": "adamw"}}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    hosts: tuple
    threads: int | str = 1
    sharding: str = "none"
    parts: int = 1
    balance: object = "equal"
    slow: Slow | None = None

    @property
    def words(self):
        words = [f"threads={self.threads}", f"balance={flow(self.balance)}", f"parallel={{parts: {self.parts}, "
                 f"sharding: {self.sharding}}}"]
        return [*words, "steps=6"] if self.slow else words

    def __str__(self):
        return (f"{self.model}, {' '.join(self.hosts)}: {self.sharding}, {self.parts} part{'s' if self.parts > 1 else ''}, "
                f"threads {self.threads}, balance {flow(self.balance)}{', rank 1 slow' if self.slow else ''}")


CASES = (
    Case("mlp", ONE_HOST),
    Case("mlp", ("h0",) * 3, threads=4),
    Case("mlp", FOUR_ON_TWO, threads=2),
    Case("mlp", TWO_HOSTS, balance={"weights": {"h0": 3, "h1": 1}}),
    Case("mlp", ONE_HOST, sharding="optimizer", threads=2),
    Case("mlp", TWO_HOSTS, sharding="optimizer"),
    Case("mlp", ONE_HOST, sharding="gradients"),
    Case("mlp", ("h0",) * 3, sharding="gradients", threads=4),
    Case("mlp", FOUR_ON_TWO, sharding="gradients", threads=2),
    Case("mlp", TWO_HOSTS, sharding="gradients", balance={"weights": {"h0": 3, "h1": 1}}),
    Case("mlp", ("h0", "h1", "h1"), sharding="gradients", threads="auto"),  # of few cores, the first rank has more
    Case("mlp", ONE_HOST, sharding="parameters", threads=2),
    Case("mlp", FOUR_ON_TWO, sharding="parameters", threads=3),
    Case("mlp", ONE_HOST, parts=2),
    Case("mlp", FOUR_ON_TWO, parts=2, sharding="gradients"),
    Case("mlp64", ONE_HOST, balance="auto", slow=SLOW),
    Case("mlp64", ONE_HOST, sharding="gradients", balance="auto", slow=SLOW),
    Case("mlp64", ONE_HOST, sharding="parameters", threads=2, balance="auto", slow=SLOW),
    Case("mlp64", FOUR_ON_TWO, sharding="gradients", balance="auto", slow=SLOW),
    Case("gpt", ONE_HOST, threads=2),
    Case("gpt", ("h0",) * 3, sharding="optimizer", threads=3),
    Case("gpt", TWO_HOSTS, sharding="parameters", threads=2),
    Case("gpt", ("h0",) * 3, sharding="gradients", parts=2),
    Case("gpt", ONE_HOST, sharding="optimizer", balance="auto", slow=SLOW),
)


def planned(case, folder):
    """Bytes of each rank. Ranks with the same profile are on one host. No profile shows that a rank is slow: what its run
    has moved is taken from there."""
    words = [word for host in case.hosts for word in ("--profile", f"{host}.json")]
    words += ["--against", "run"] if case.slow else ["--ranks", str(len(case.hosts))]
    done = subprocess.run([PROGRAM, "plan", f"{case.model}.yaml", *case.words, *words, "--json"],
                          cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 78):  # 78: no placement fits; the job's own is there nevertheless
        raise SystemExit(f"plan of {case}: {done.returncode}\n{done.stderr}")
    plan = json.loads(done.stdout)
    if case.slow:
        return [plan[f"memory of rank {rank}"]["predicted"] for rank in range(len(case.hosts))]
    return [rank["memory_bytes"]["total"] for rank in plan["placement"]["ranks"]]


def measured(case, folder):
    """Bytes of each rank, and how often micro-batches moved."""
    run = train([f"{case.model}.yaml", *case.words], case.hosts, folder, case.slow, limit=3600)
    if run.code != 0:
        raise SystemExit(f"{case}: {run.code}\n{run.stderr}")
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run/events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in run.events), encoding="utf-8")
    end = run.last("end")
    return [end["peak_memory_bytes_by_rank"][str(rank)] for rank in range(len(case.hosts))], end.get("share_moves", 0)


def prepare(folder):
    (folder / "text.txt").write_text("".join(f"line {i * i % 97}, {'and so on' if i % 3 else 'in short'}: {i}.\n"
                                             for i in range(20000)), encoding="utf-8")
    for name, text in MODELS.items():
        (folder / f"{name}.yaml").write_text(json.dumps({"job": text}), encoding="utf-8")
    subprocess.run([PROGRAM, "bench", "device", "--out", "h0.json"], cwd=folder, check=True, capture_output=True,
                   stdin=subprocess.DEVNULL)
    (folder / "h1.json").write_bytes((folder / "h0.json").read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words, with commas between them")
    options = parser.parse_args()
    wanted = [case for case in CASES if all(word in str(case) for word in options.only.split(","))]
    off = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        print("| placement | MiB by rank: planned | measured | error, % | moves |\n|---|---|---|---|---|")
        for case in wanted:
            peaks, moves = measured(case, folder)
            plan = planned(case, folder)
            errors = [100 * (expected / found - 1) for expected, found in zip(plan, peaks)]
            mebibytes = [" ".join(f"{value / 2**20:.0f}" for value in values) for values in (plan, peaks)]
            print(f"| {case} | {' | '.join(mebibytes)} | {' '.join(f'{error:+.1f}' for error in errors)} | {moves} |", flush=True)
            off += [case] if max(map(abs, errors)) > MOST else []
    print(f"\n{len(wanted) - len(off)} of {len(wanted)} placements within {MOST} %; load of the machine {os.getloadavg()[0]:.1f}")
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
