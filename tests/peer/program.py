"""One run of lockstep on a case: what its events and checkpoints say about every step."""
import json
import os
import subprocess
import sys

import yaml
from safetensors.torch import save_file

import forms

sys.path.insert(0, str(forms.ROOT / "python"))
from lockstep_reader import open_checkpoint  # noqa: E402  pylint: disable=wrong-import-position

FROM_EVENT = ("loss", "learning_rate", "gradient_norm")


def write_job(case, folder, data, validation, weights):
    job = {key: value for key, value in case.job.items() if key != "data"}
    described = {"train": data.write(folder / "train"), "normalize": case.normalize}
    if validation is not None:
        described["validation"] = validation.write(folder / "validation")
    save_file({name: values.float() for name, values in weights.items()}, folder / "weights.safetensors")
    job |= {"name": case.name.replace(" ", "-"), "data": described, "run_directory": str(folder / "run"), "threads": 1,
            "initialize": {"from": str(folder / "weights.safetensors"), "names": "lockstep"},
            "evaluate": {"every": f"{case.evaluate or job['steps']} steps"} if validation is not None else "never",
            "checkpoint": {"every": "1 steps", "keep": 1000}}
    (folder / "job.yaml").write_text(yaml.safe_dump({"job": job}, sort_keys=False))


def train(folder, *words):
    """The events of one call of the program; 75 is a requested stop."""
    command = [forms.PROGRAM, "train", folder / "job.yaml", "--log", "json", *words]
    environment = os.environ | {"LOCKSTEP_CACHE": "none"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode not in (0, 75):
        raise AssertionError(f"lockstep ended with {done.returncode}: {done.stderr.strip() or done.stdout[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def checkpoint(folder):
    """Parameters, running statistics and the optimizer's state, in fp64."""
    found = open_checkpoint(folder)
    return {name: {tensor: found[tensor].torch().double() for tensor in found.shapes(kind)}
            for name, kind in (("parameters", "parameter"), ("statistics", "state"), ("optimizer", "optimizer"))}


def run(case, folder, data, validation, weights):
    """For each step, a map of what lockstep reported and of what the checkpoint holds; and the evaluation's values."""
    write_job(case, folder, data, validation, weights)
    words = ["--ranks", str(case.ranks)] if case.ranks > 1 else []
    events = []
    if case.stop_at:
        events += train(folder, *words, "--stop-at", str(case.stop_at))
        assert events[-1]["interrupted"], "the run did not stop where it was told to"
    events += train(folder, *words)
    steps = []
    for event in (event for event in events if event["event"] == "step"):
        said = {key: event[key] for key in FROM_EVENT if key in event} | event["metrics"]
        said |= checkpoint(folder / "run" / "checkpoints" / f"step-{event['step']:08}")
        steps.append(said | {"loss_scale": event.get("loss_scale"), "skipped": event.get("skipped", False)})
    evaluations = [{"loss": e["loss"]} | e["metrics"] for e in events if e["event"] == "eval"]
    return steps, evaluations[-1] if evaluations else None

