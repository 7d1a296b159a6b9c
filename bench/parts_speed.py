#!/usr/bin/env python3
"""What dividing a model between two ranks gains and costs on this machine: the tables of docs/design/parallelism.md.

    bench/parts_speed.py branches          two equal towers side by side, against one rank with both
    bench/parts_speed.py stages            a GPT in two halves, against one rank with all of it
    bench/parts_speed.py sharding          sharded state against replicated state on two ranks, on one host and on
                                           two pretended hosts, which exchange messages
    bench/parts_speed.py unequal           a rank at half speed: the placement that is chosen against all others
                                           [--rounds N] [--steps N] [--build DIR] [key=value ...]

All ranks have one thread. In each round the runs to be compared follow one another directly, so that other load on the
machine affects all of them; ratios are taken within a round, and their median is printed. A run's step time is the
median of its steps without the first three. Next to it is the ratio of the fastest steps of all rounds, which is more
reliable on a machine that others use. All runs of a job must end with the same hash. Timings need an otherwise idle
machine; its load is printed with them. Data are generated: nothing is downloaded.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import slow_rank  # noqa: E402

SKIPPED = 3  # steps at the start of a run that do not count
COMMON = ["checkpoint=never", "evaluate=never", "threads=1"]

TOWER = """      - {{conv: {{filters: 32, kernel: 3}}, inputs: {side}, name: {side}_conv1}}
      - relu
      - {{conv: {{filters: 32, kernel: 3}}}}
      - relu
      - {{conv: {{filters: 64, kernel: 3, stride: 2}}}}
      - relu
      - {{conv: {{filters: 64, kernel: 3}}}}
      - relu
      - {{max_pool: {{kernel: 2}}}}
      - flatten
      - {{linear: {{features: 64}}, name: {side}_end}}
"""
TOWERS = """job:
  name: towers
  model:
    inputs: [left, right]
    layers:
""" + TOWER.format(side="left") + TOWER.format(side="right") + """      - {concat: {inputs: [left_end, right_end]}}
      - {linear: {features: 32}}
      - relu
      - {linear: {features: 2}}
  data:
    train: {digits: {count: 4096, pairs: true}}
  batch_size: 128
  micro_batches: 16
  steps: 20
  metrics: [accuracy]
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.01
"""
RESNET = """job:
  name: resnet20
  model: {resnet: {depth: 20}}
  data:
    train: {digits: {count: 4096}}
  batch_size: 128
  micro_batches: 8
  steps: 20
  metrics: [accuracy]
  optimizer: {sgd: {momentum: 0.9}}
  learning_rate: 0.01
"""
GPT = """job:
  name: gpt
  model: {{gpt: {{layers: {layers}, heads: 4, width: {width}, dropout: 0, bias: false}}}}
  data:
    train: {{text: {{path: {text}, tokenizer: characters, context: 128}}}}
  batch_size: {batch}
  micro_batches: {micro_batches}
  steps: 20
  loss: cross_entropy
  metrics: [perplexity]
  optimizer: {{adamw: {{weight_decay: 0.1}}}}
  learning_rate: 0.001
  clip_norm: 1
"""


def gpt(folder, **sizes):
    text = folder / "text.txt"
    text.write_text("".join(f"line {i * i % 97}, {'and so on' if i % 3 else 'in short'}: {i}.\n" for i in range(20000)),
                    encoding="utf-8")
    return GPT.format(text=text, **sizes)


class Run:
    """A finished run: the seconds of its steps, and what its events say."""

    def __init__(self, options, job, ranks, words, hosts=1):
        self.options, self.seconds, self.parts = options, [], []
        command = [str(options.program), "train", str(job), *COMMON, f"steps={options.steps}", *options.words, *words,
                   "run_directory=" + str(job.parent / "run"), "--log", "json"]
        if hosts > 1:
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), "sh",
                       "-c", f'LOCKSTEP_HOST_ID=h$((OMPI_COMM_WORLD_RANK % {hosts})) exec "$0" "$@"', *command]
        elif ranks > 1:
            command += ["--ranks", str(ranks)]
        subprocess.run(["rm", "-rf", str(job.parent / "run")], check=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        last = 0.0
        for line in done.stdout.splitlines():
            event = json.loads(line)
            if event["event"] == "step":
                self.seconds.append(event["seconds"] - last)
                last = event["seconds"]
            if event["event"] == "part":
                self.parts.append(event)
            if event["event"] == "end":
                self.end = event

    @property
    def step(self):
        return statistics.median(self.seconds[SKIPPED:])

    def where(self):
        """For each rank, the time of a step in which its worker computes, waits for other parts, and the rest."""
        steps = self.end["steps"]
        waits = self.end.get("part_wait_seconds_by_rank", {})
        text = []
        for rank, compute in sorted(self.end["compute_seconds_by_rank"].items(), key=lambda item: int(item[0])):
            wait = waits.get(rank, 0) / steps
            rest = self.end["seconds"] / steps - compute / steps - wait
            text.append(f"rank {rank} computes {1e3 * compute / steps:.0f} ms, waits {1e3 * wait:.0f}, other {1e3 * rest:.0f}")
        return "; ".join(text)


def ideal(options, job, ranks, words):
    """The speedup of so many ranks over one that the simulation of `lockstep plan` predicts."""
    command = [str(options.program), "plan", str(job), "--ranks", str(ranks), *COMMON, *options.words, *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr[-2000:]}")
    return ranks * json.loads(done.stdout)["placement"]["efficiency"]


def compare(options, job, variants):
    """`variants`: names to arguments of Run after the job; all others are compared with the first. Returns ratios of
    speed."""
    ratios, hashes = {name: [] for name in list(variants)[1:]}, set()
    fastest = dict.fromkeys(variants, float("inf"))
    for number in range(options.rounds):
        runs = {name: Run(options, job, *what) for name, what in variants.items()}
        first = next(iter(runs.values()))
        for name, run in runs.items():
            hashes.add(run.end["parameters_sha256"])
            fastest[name] = min(fastest[name], *run.seconds[SKIPPED:])
            if run is not first:
                ratios[name].append(first.step / run.step)
        print(f"round {number + 1}: " + ", ".join(f"{name} {1e3 * run.step:.0f} ms" for name, run in runs.items())
              + f"; load {os.getloadavg()[0]:.1f}", flush=True)
    if len(hashes) != 1:
        sys.exit(f"expected one hash, found {hashes}")
    for name, run in runs.items():
        parts = ", ".join(f"part {part['part']} on {part['ranks']}: {part['first']} to {part['last']}" for part in run.parts)
        print(f"  {name}: {run.where()}; {run.processor / run.end['steps'] * 1e3:.0f} ms of processor time a step"
              + (f"\n    {parts}" if parts else ""))
    for name, values in ratios.items():
        print(f"{name}: {statistics.median(values):.3f} times the speed ("
              + ", ".join(f"{value:.2f}" for value in values) + "); of the fastest steps "
              + f"{fastest[next(iter(variants))] / fastest[name]:.3f}", flush=True)
    return {name: statistics.median(values) for name, values in ratios.items()}


def branches(options, folder):
    job = folder / "towers.yaml"
    job.write_text(TOWERS, encoding="utf-8")
    words = ["parallel.parts={branches: auto}"]
    ratio = compare(options, job, {"whole on 1 rank": (1, []), "branches on 2 ranks": (2, words)})
    print(f"by the simulation {ideal(options, job, 2, words):.2f}; aim 1.7: {min(ratio.values()):.2f}")


def stages(options, folder):
    micro_batches = 12
    job = folder / "gpt.yaml"
    job.write_text(gpt(folder, layers=8, width=128, batch=24, micro_batches=micro_batches), encoding="utf-8")
    words = ["parallel.parts=2"]
    ratio = compare(options, job, {"whole on 1 rank": (1, []), "2 stages on 2 ranks": (2, words)})
    of_equal = 2 * micro_batches / (micro_batches + 1)
    print(f"by the simulation {ideal(options, job, 2, words):.2f}; two equal stages of {micro_batches} micro_batches: {of_equal:.2f}; "
          f"aim 0.9 of that: {min(ratio.values()) / of_equal:.2f}")


def sharding(options, folder):
    models = {"gpt": gpt(folder, layers=6, width=256, batch=16, micro_batches=8), "resnet20": RESNET}
    for name, text in models.items():
        job = folder / f"{name}.yaml"
        job.write_text(text, encoding="utf-8")
        for hosts, kinds in (1, ("none", "optimizer", "gradients", "parameters")), (2, ("none", "parameters")):
            print(f"{name}, hosts: {hosts}")
            ratios = compare(options, job, {what: (2, [f"parallel.sharding={what}"], hosts) for what in kinds})
            for what, ratio in ratios.items():
                print(f"  sharding={what} takes {1 / ratio:.3f} times as long as none; aim 1.15")


def unequal(options, folder):
    """Rank 1 is stopped half of the time, as in bench/slow_rank.py. What the job's weights choose is compared with each
    cut made by hand, and with data parallelism with the same weights."""
    blocks, micro_batches = 6, 16
    job = folder / "unequal.yaml"
    job.write_text(gpt(folder, layers=blocks, width=128, batch=32, micro_batches=micro_batches), encoding="utf-8")
    weights = "balance={weights: {h0: 2, h1: 1}}"
    variants = {"chosen": [weights, "parallel.parts=2"]}
    for last in range(1, blocks):
        variants[f"part 0 until block{last}"] = [weights, f"parallel.parts=[{{until: block{last}}}, {{}}]"]
    variants["even"] = ["balance=equal", "parallel.parts=2"]
    found, hashes = {name: [] for name in variants}, set()
    for number in range(options.rounds):
        for name, words in variants.items():
            seconds, _, digest = slow_rank.run(options.program, [str(job), *COMMON, *options.words, *words], 1,
                                               options.steps)
            hashes.add(digest)
            found[name].append(statistics.median(seconds[SKIPPED:-1]))
        print(f"round {number + 1}: " + ", ".join(f"{name} {1e3 * times[-1]:.0f} ms" for name, times in found.items())
              + f"; load {os.getloadavg()[0]:.1f}", flush=True)
    if len(hashes) != 1:
        sys.exit(f"expected one hash, found {hashes}")
    medians = {name: statistics.median(times) for name, times in found.items()}
    best = min((name for name in medians if name != "chosen"), key=medians.get)
    print(f"chosen {1e3 * medians['chosen']:.0f} ms a step, best by hand: {best}, {1e3 * medians[best]:.0f} ms: "
          f"{100 * medians[best] / medians['chosen']:.0f} % of its throughput; aim 90 %; an even cut has "
          f"{100 * medians[best] / medians['even']:.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = {function.__name__: function for function in (branches, stages, sharding, unequal)}
    parser.add_argument("what", choices=list(what))
    parser.add_argument("words", nargs="*", metavar="key=value", help="added to the job of all runs")
    parser.add_argument("--build", default=ROOT / "build" / "release", type=pathlib.Path)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--steps", default=20, type=int)
    options = parser.parse_args()
    options.program = options.build / "bin" / "lockstep"
    with tempfile.TemporaryDirectory() as directory:
        what[options.what](options, pathlib.Path(directory))


if __name__ == "__main__":
    main()
