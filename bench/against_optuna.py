#!/usr/bin/env python3
"""`lockstep sweep` against Optuna on the same budget: the space and the job of examples/digits-sweep.yaml.

    bench/against_optuna.py [--seeds 3] [--trials 30]

Random search, TPE and successive halving of both train the same job with the same program, one trial after the other on
one core, up to as many steps as `--trials` whole trials take. Prints, as Markdown, medians over the seeds: the best
accuracy after a third, two thirds and all of the steps, and what a trial costs beside its training. Optuna comes from
bench/optuna/requirements.txt.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
PACKAGES = "bench/optuna/requirements.txt"
EXAMPLE = ROOT / "examples/digits-sweep.yaml"
RUNGS, STEPS = (20, 40), 80
METHODS = {"random": "random", "tpe": "tpe", "halving": "{halving: {min_steps: 20, reduction: 2}}"}


def best_so_far(history, steps):
    """The best value among results that came before so many steps had been trained. `history`: (steps trained, value)."""
    return max((value for trained, value in history if trained <= steps), default=0.0)


def ours(folder, method, seed, steps):
    """(history, seconds beside the training, trials)"""
    text = EXAMPLE.read_text(encoding="utf-8").replace("method: random", f"method: {METHODS[method]}").replace(
        "budget: 12", f"seed: {seed}\n  budget: {{trials: 10000, steps: {steps}}}")
    (folder / "sweep.yaml").write_text(text, encoding="utf-8")
    start = time.monotonic()
    journal = subprocess.run([PROGRAM, "sweep", "sweep.yaml", "--ranks", "1", "--directory", "out", "--log", "json",
                              "threads=1"], cwd=folder, capture_output=True, text=True, check=True).stdout
    wall = time.monotonic() - start
    trained, history, reached, training, trials = 0, [], {}, 0.0, set()
    for record in map(json.loads, journal.splitlines()):
        if record["record"] != "result":
            continue
        trial = record["trial"]
        trained += record["steps"] - reached.get(trial, 0)
        reached[trial] = record["steps"]
        training += record["device_seconds"]
        trials.add(trial)
        history.append((trained, record["value"]))
    return history, wall - training, len(trials)


def optunas(folder, method, seed, steps):
    import optuna  # pylint: disable=import-outside-toplevel,import-error
    import yaml  # pylint: disable=import-outside-toplevel
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    job = {"job": yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["job"]}
    (folder / "job.yaml").write_text(yaml.safe_dump(job), encoding="utf-8")
    trained, training, history = 0, 0.0, []

    def train(trial, settings, until):
        nonlocal training
        run = folder / f"trial{trial.number}"
        start = time.monotonic()
        done = subprocess.run([PROGRAM, "train", "job.yaml", *settings, "threads=1", f"run_directory={run}", "--stop-at",
                               str(until)], cwd=folder, capture_output=True, text=True, check=False)
        training += time.monotonic() - start
        assert done.returncode in (0, 75), done.stderr
        events = map(json.loads, (run / "events.jsonl").read_text(encoding="utf-8").splitlines())
        return [event["metrics"]["accuracy"] for event in events if event["event"] == "eval"][-1]

    def objective(trial):
        nonlocal trained
        settings = [f"learning_rate={trial.suggest_float('learning_rate', 0.0001, 0.03, log=True)}"]
        optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam"])
        momentum = trial.suggest_float("momentum", 0, 0.95) if optimizer == "sgd" else None
        settings.append("optimizer=adam" if momentum is None else f"optimizer={{sgd: {{momentum: {momentum}}}}}")
        settings.append(f"batch_size={trial.suggest_int('batch_size', 32, 128, step=32)}")
        reached = 0
        for until in (*RUNGS, STEPS) if method == "halving" else (STEPS,):
            value = train(trial, settings, until)
            trained += until - reached
            reached = until
            history.append((trained, value))
            trial.report(value, until)
            if until < STEPS and trial.should_prune():
                raise optuna.TrialPruned
        return value

    def stop(study, _):
        if trained >= steps:
            study.stop()

    sampler = optuna.samplers.TPESampler(seed=seed) if method == "tpe" else optuna.samplers.RandomSampler(seed=seed)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=RUNGS[0], reduction_factor=2)
    study = optuna.create_study(direction="maximize", sampler=sampler,
                                pruner=pruner if method == "halving" else optuna.pruners.NopPruner())
    start = time.monotonic()
    study.optimize(objective, callbacks=[stop])
    return history, time.monotonic() - start - training, len(study.trials)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=30, help="whole trials whose steps are the budget")
    options = parser.parse_args()
    steps = options.trials * STEPS
    print("| search | best accuracy after 1/3 of the steps | 2/3 | all | trials | ms a trial beside its training |")
    print("|---|--:|--:|--:|--:|--:|", flush=True)
    for method in METHODS:
        for name, search in (("lockstep", ours), ("Optuna", optunas)):
            best, beside, trials = [], [], []
            for seed in range(1, options.seeds + 1):
                with tempfile.TemporaryDirectory() as folder:
                    history, seconds, count = search(pathlib.Path(folder), method, seed, steps)
                best.append([best_so_far(history, steps * third / 3) for third in (1, 2, 3)])
                beside.append(1e3 * seconds / count)
                trials.append(count)
            values = " | ".join(f"{statistics.median(column):.3f}" for column in zip(*best))
            print(f"| {name} {method} | {values} | {statistics.median(trials)} | {statistics.median(beside):.0f} |",
                  flush=True)


if __name__ == "__main__":
    if "optuna" not in sys.executable:
        os.execv(ROOT / "scripts/python.sh", [str(ROOT / "scripts/python.sh"), "--packages", PACKAGES, *sys.argv])
    main()
