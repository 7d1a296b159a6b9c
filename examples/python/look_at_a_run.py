#!/usr/bin/env python3
"""A look at a run, cell by cell: open it in an editor that knows `# %%`, or python look_at_a_run.py [RUN_DIRECTORY].
Needs lockstep_reader (pip install ./python). Draws with matplotlib, where that is installed."""
# %% The run: it may be going on.
import sys

import lockstep_reader as reader

run = reader.open_run(sys.argv[1] if len(sys.argv) > 1 else "runs/digits")
status = run.status()
print(f"{run.path}: {status.state}, step {status.step} of {status.steps}, parameters {run.parameters_sha256[:16]}")

# %% Its curves.
training, validation = run.training(), run.validation()
for row in validation.rows():
    print("  ".join(f"{name} {value:g}" for name, value in row.items() if name != "time"))
best = run.best() if validation.height else None
if best is not None:
    print(f"best {best.metric}: {best.value:g} at step {best.step}")

# %% As a picture.
try:
    from matplotlib import pyplot
except ImportError:
    pyplot = None
if pyplot is not None:
    figure, axes = pyplot.subplots()
    axes.plot(training["step"], training["loss"], label="training", alpha=0.5)
    axes.plot(validation.get("step", []), validation.get("loss", []), label="validation")
    axes.set(xlabel="step", ylabel="loss", title=run.path)
    axes.legend()
    figure.savefig("curves.png")

# %% What cost time: of each rank, computing and waiting.
for end in run.events("end"):
    for rank, seconds in end["compute_seconds_by_rank"].items():
        waited = end.get("waited_seconds_by_rank", {}).get(rank, 0)
        print(f"rank {rank}: computed {seconds:.2f} s, waited {waited:.2f} s")

# %% The weights: how large each tensor is, and how large its values are.
checkpoint = run.checkpoint()
for name, shape in checkpoint.weights().items():
    values = checkpoint[name].array()
    size = (sum(value * value for value in values) / max(1, len(values))) ** 0.5
    print(f"{name:24} {str(list(shape)):20} {size:.4f}")
