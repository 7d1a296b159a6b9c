#!/usr/bin/env python3
"""Compares `lockstep plan` with real runs: the table of docs/design/planning.md.

    scripts/plan_error.py                 all configurations, as Markdown
    scripts/plan_error.py --only gpt      those whose name contains this word
    scripts/plan_error.py --memory        few steps: only the memory
    scripts/plan_error.py --rounds 3      each time is the median of this many pairs of a plan and a run

Each configuration is trained and planned in turn, so that both meet the same machine. The program is $LOCKSTEP, or
build/release/bin/lockstep by default. Timings need an otherwise idle machine; its load is printed with them.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
TIMED_STEPS_SECONDS = 6

MLP = """job:
  name: mlp
  model: {{mlp: {{hidden: [{width}, {width}]}}}}
  data:
    train: {{digits: {{count: 4096}}}}
    validation: {{digits: {{count: 512, first: 100000}}}}
  batch_size: 128
  micro_batches: 8
  steps: 40
  metrics: [accuracy]
  optimizer: adamw
  learning_rate: 0.001
  threads: 1
  balance: equal
"""
DIGITS = """job:
  name: digits
  model: {{{model}}}
  data:
    train: {{digits: {{count: 8192}}}}
    validation: {{digits: {{count: 512, first: 100000}}}}
  batch_size: {batch}
  micro_batches: {micro_batches}
  steps: 40
  metrics: [accuracy]
  optimizer: {{sgd: {{momentum: 0.9}}}}
  learning_rate: 0.001
  threads: 1
  balance: equal
"""
GPT = """job:
  name: gpt
  model: {{gpt: {{layers: {layers}, heads: 4, width: {width}, dropout: 0, bias: false}}}}
  data:
    train: {{text: {{path: {text}, tokenizer: characters, context: {context}}}}}
    validation: {{fraction: 0.05}}
  batch_size: {batch}
  micro_batches: {micro_batches}
  steps: 40
  loss: cross_entropy
  metrics: [perplexity]
  optimizer: {{adamw: {{weight_decay: 0.1}}}}
  learning_rate: 0.001
  clip_norm: 1
  threads: 1
  balance: equal
"""


def jobs(text):
    lenet = DIGITS.format(model="lenet: {}", batch=256, micro_batches=8)
    resnet = DIGITS.format(model="resnet: {depth: 20}", batch=128, micro_batches=8)
    small = GPT.format(layers=4, width=128, context=64, batch=24, micro_batches=12, text=text)
    medium = GPT.format(layers=6, width=256, context=128, batch=16, micro_batches=8, text=text)
    wide = MLP.format(width=1024)
    widest = MLP.format(width=2048)
    return {"lenet": lenet, "resnet20": resnet, "gpt 0.8M": small, "gpt 4.8M": medium, "mlp 1.9M": wide, "mlp 5.8M": widest}


CONFIGURATIONS = [
    ("lenet", 1, []), ("lenet", 2, []),
    ("resnet20", 1, []), ("resnet20", 2, []), ("resnet20", 2, ["parallel.parts=2"]), ("resnet20", 3, []),
    ("gpt 0.8M", 1, []), ("gpt 0.8M", 2, []), ("gpt 0.8M", 2, ["parallel.parts=2"]),
    ("gpt 0.8M", 2, ["parallel.parts=2", "recompute=blocks"]), ("gpt 0.8M", 3, ["parallel.parts=3"]),
    ("gpt 4.8M", 1, []), ("gpt 4.8M", 2, []), ("gpt 4.8M", 2, ["parallel.parts=2"]), ("gpt 4.8M", 1, ["recompute=blocks"]),
    ("gpt 4.8M", 2, ["parallel.sharding=optimizer"]), ("gpt 4.8M", 2, ["parallel.sharding=gradients"]),
    ("gpt 4.8M", 2, ["parallel.sharding=parameters"]),
    ("mlp 1.9M", 1, []), ("mlp 1.9M", 2, []), ("mlp 5.8M", 1, []), ("mlp 5.8M", 2, []), ("mlp 5.8M", 2, ["parallel.parts=2"]),
]


def call(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(folder, job, ranks, overrides, steps):
    run = folder / "run"
    subprocess.run(["rm", "-rf", str(run)], check=True)
    placed = [str(job), *overrides, f"run_directory={run}", f"steps={steps}"]
    call("train", *placed, *(["--ranks", str(ranks)] if ranks > 1 else []), "--log", "json")
    return json.loads(call("plan", *placed, "--against", str(run), "--json"))


def row(folder, name, text, ranks, overrides, options):
    job = folder / f"{name.replace(' ', '-')}.yaml"
    job.write_text(text, encoding="utf-8")
    steps = 12
    pairs = [compare(folder, job, ranks, overrides, steps)]
    if not options.memory:
        step = pairs[0]["step"]["measured"]
        steps = max(12, min(400, int(TIMED_STEPS_SECONDS / step)))
        pairs = [compare(folder, job, ranks, overrides, steps) for _ in range(options.rounds)]
    times = [pair["step"]["error_percent"] for pair in pairs]
    middle = pairs[times.index(statistics.median_low(times))]
    memory = [value for key, value in middle.items() if key.startswith("memory")]
    mebibytes = lambda kind: ", ".join(f"{value[kind] / 2**20:.0f}" for value in memory)
    errors = ", ".join(f"{value['error_percent']:+.1f}" for value in memory)
    step = middle["step"]
    return ([name, str(ranks), " ".join(overrides) or "-", mebibytes("predicted"), mebibytes("measured"), errors,
             f"{1e3 * step['predicted']:.1f}", f"{1e3 * step['measured']:.1f}", f"{step['error_percent']:+.0f}"],
            max(abs(value["error_percent"]) for value in memory), abs(step["error_percent"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="configurations whose name has this word")
    parser.add_argument("--memory", action="store_true", help="few steps: the memory alone")
    parser.add_argument("--rounds", type=int, default=1, help="pairs of a plan and a run for each time")
    options = parser.parse_args()
    heading = ["model", "ranks", "placement", "MiB by rank: predicted", "measured", "error, %", "step, ms: predicted",
               "measured", "error, %"]
    if options.memory:
        heading = heading[:6]
    print("| " + " | ".join(heading) + " |")
    print("|" + "---|" * len(heading), flush=True)
    memory_errors, time_errors = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = folder / "text.txt"
        text.write_text("".join(f"line {i * i % 97}, {'and so on' if i % 3 else 'in short'}: {i}.\n" for i in range(20000)),
                        encoding="utf-8")
        all_jobs = jobs(text)
        for model, ranks, overrides in CONFIGURATIONS:
            if options.only not in model:
                continue
            cells, memory, time = row(folder, model, all_jobs[model], ranks, overrides, options)
            memory_errors.append(memory)
            time_errors.append(time)
            print("| " + " | ".join(cells[:len(heading)]) + " |", flush=True)
    print(f"\nmemory: at most {max(memory_errors):.1f} % off in {len(memory_errors)} configurations", end="")
    if not options.memory:
        inside = sum(error <= 15 for error in time_errors)
        print(f"; time: {inside} of {len(time_errors)} within 15 %, at most {max(time_errors):.0f} %", end="")
    print(f"; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
