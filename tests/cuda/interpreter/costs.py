#!/usr/bin/env python3
"""What the module's kernels would cost an H100 in a step, estimated without one: each launch of a step of GPT-2 124M
and of ResNet-50 on the interpreted GPU, with the shapes of a real micro-batch, a few blocks of each grid (costs.hpp).

    costs.py BUILD_FOLDER [--check] [--print] [--blocks N] [--model gpt2|resnet50] [--kernel PART_OF_ITS_NAME]

Writes the tables of docs/design/gpu-costs.md, or that of one model, the worst kernels first; --check changes nothing and
exits with 1 if they are not current; --print prints every kernel, or some, with more columns. It needs the module, its
PTX and the libraries of tests/cuda/interpreter/tests.cmake.
"""
import argparse
import collections
import dataclasses
import functools
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]
from gpu_against_pytorch import png  # noqa: E402
from page_tables import keep_current  # noqa: E402

# An H100 SXM, by NVIDIA's data sheet and its white paper on the architecture.
BYTES, PRODUCTS = 3.35e12, 989.4e12  # in a second: bytes of memory; operations of dense bf16 products
CACHE, CACHED = 50e6, 5.5e12  # the L2 cache: bytes; bytes in a second, as others have measured
MULTIPROCESSORS, SCHEDULERS, CLOCK = 132, 4, 1.83e9  # the clock at which the rate of products is stated
REGISTERS, THREADS, BLOCKS = 65536, 2048, 32  # of a multiprocessor
SHARED, SHARED_OF_BLOCK = 228 * 1024, 1024  # bytes of shared memory; those that each block takes besides its own
WAIT, STEP = 600, 4  # cycles: a wait for memory, and from an instruction to one that needs its result; assumed
WHOLE = "ClearLinks,LinkPositions"  # the embedding's gradient follows what these write

JOB = """
job:
  name: costs
  model: {model}
  data: {{train: {{{data}}}}}
  optimizer: {optimizer}
  learning_rate: 0.0006
  batch_size: {batch}
  micro_batches: 1
  threads: 1
  steps: 3
  precision: bf16
  device: cuda
  loss: cross_entropy
  checkpoint: never
  evaluate: never
"""
MODELS = {
    "gpt2": {"model": "{gpt: {size: gpt2, dropout: 0}}", "data": "tokens: {path: tokens.bin, context: 1024}",
             "optimizer": "{adamw: {beta1: 0.9, beta2: 0.95, weight_decay: 0.1}}\n  clip_norm: 1", "batch": 8},
    "resnet50": {"model": "{resnet: {depth: 50, classes: 1000}}", "data": "images: images",
                 "optimizer": "{sgd: {momentum: 0.9, nesterov: true, weight_decay: 0.00005}}", "batch": 64},
}
TITLES = {"gpt2": "GPT-2 124M, a micro-batch of 8 x 1,024 tokens", "resnet50": "ResNet-50, a micro-batch of 64 images of 224 x 224"}


@dataclasses.dataclass
class Launch:
    """A line of a report (costs.hpp); amounts are those of the whole grid."""
    blocks: int
    threads: int
    ran: int
    shared: int
    instructions: float
    requests: float
    sectors: float
    needed: float
    moved: float
    least: float
    chain: int
    waits: int
    again: float
    distance: int
    banked: float
    ways: float
    kernel: str

    def resident(self, registers):
        """Blocks of a multiprocessor."""
        return min(THREADS // self.threads, REGISTERS // (-(-registers // 8) * 8 * self.threads), BLOCKS,
                   SHARED // (self.shared + SHARED_OF_BLOCK))

    def memory(self, registers):
        """Bytes from and to memory: what a warp moves again is in the L2 cache if all that warps move in between is."""
        warps = min(self.blocks, MULTIPROCESSORS * self.resident(registers)) * self.threads / 32
        return self.moved - (self.again if self.distance * warps <= CACHE else 0)

    def seconds(self, registers):
        """By what bounds it: bytes, instructions, or how long a warp takes."""
        rounds = max(1.0, self.blocks / (MULTIPROCESSORS * self.resident(registers)))
        return {"bytes": max(self.memory(registers) / BYTES, self.moved / CACHED),
                "instructions": self.instructions / (MULTIPROCESSORS * SCHEDULERS * CLOCK),
                "waiting": rounds * (self.waits * WAIT + self.chain * STEP) / CLOCK}


@dataclasses.dataclass
class Library:
    work: float
    bytes: float
    name: str

    def seconds(self):
        return max(self.work / PRODUCTS, self.bytes / BYTES)


def make_data(folder):
    """Random tokens and random images: nothing that is counted depends on them but the walks of the embedding."""
    chance = random.Random(1)
    (folder / "tokens.bin").write_bytes(struct.pack("<40000H", *(chance.randrange(50257) for _ in range(40000))))
    for i in range(64):
        file = folder / "images" / str(i % 2) / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(224, chance))


def launches(build, model, blocks):
    """A step's launches in order: those after an optimizer's kernel up to the next one's."""
    gpu = build / "interpreted-gpu"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(folder)
        (folder / "job.yaml").write_text(JOB.format(**MODELS[model]), encoding="utf-8")
        (folder / "reports").mkdir()
        values = {**os.environ, "LD_LIBRARY_PATH": f"{gpu}/libraries:{gpu}/lib:{build}/stand-ins",
                  "INTERPRETED_GPU_PTX": f"{gpu}/ptx", "INTERPRETED_GPU_REPORT": f"{folder}/reports",
                  "INTERPRETED_GPU_SEED": "0", "INTERPRETED_GPU_BLOCKS": str(blocks), "INTERPRETED_GPU_WHOLE": WHOLE,
                  "STAND_IN_GPUS": "1", "STAND_IN_SAME": "1"}
        program = os.environ.get("LOCKSTEP", str(build / "bin/lockstep"))
        done = subprocess.run([program, "train", "job.yaml"], cwd=folder, env=values, capture_output=True, text=True,
                              check=False)
        reports = list((folder / "reports").glob("*.report"))
        if len(reports) != 1:
            raise SystemExit(f"{model}: no report: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        lines = reports[0].read_text(encoding="utf-8").splitlines()
    found = [parsed(line.split("\t")) for line in lines if line.startswith(("launch\t", "library\t"))]
    updates = [i for i, one in enumerate(found) if isinstance(one, Launch) and "UpdateFunctor" in one.kernel]
    if len(updates) < 2:
        raise SystemExit(f"{model}: expected two steps, found {len(updates)} updates: "
                         f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found[updates[-2] + 1:updates[-1] + 1]


def parsed(words):
    if words[0] == "library":
        return Library(float(words[1]), float(words[2]), words[3])
    numbers = [kind(word) for kind, word in zip((int,) * 4 + (float,) * 6 + (int, int, float, int, float, float),
                                                       words[1:17])]
    return Launch(*numbers, words[17])


@functools.cache
def registers_of(build):
    """{kernel: registers of a thread} as ptxas gives them for sm_90."""
    ours = ROOT / "build/cuda-toolkit/bin/cuobjdump"
    tool = ours if ours.exists() else "cuobjdump"
    said = subprocess.run([tool, "--dump-resource-usage", build / "bin/liblockstep_cuda.so"],
                          capture_output=True, text=True, check=True).stdout
    found, kernel, arch = {}, None, None
    for line in said.splitlines():
        if line.startswith("arch = "):
            arch = line.split()[2]
        elif named := re.match(r" *Function ([^:\s]+):", line):
            kernel = named[1]
        elif (counted := re.search(r"REG:(\d+)", line)) and arch == "sm_90":
            found[kernel] = int(counted[1])
    return found


def short(kernel):
    plain = subprocess.run(["c++filt", kernel], capture_output=True, text=True, check=True).stdout.strip()
    plain = re.sub(r"^void |lockstep::|\w+::|run_(elements|rows|staged_rows|product)<|\((long, |(\w+::)*Product<).*", "", plain)
    plain = plain.replace("Element<Bfloat16>", "bf16").replace("Element<Float16>", "fp16")
    return re.sub(r"> ?$", "", plain).replace(" >", ">").strip()


class Row:
    """All launches of a kernel in a step."""

    def __init__(self, kernel):
        self.kernel, self.count, self.seconds = kernel, 0, 0.0
        self.sums = collections.Counter()
        self.bounds = collections.Counter()
        self.threads = THREADS  # of a multiprocessor, in the launch that has fewest

    def add(self, launch, registers):
        by = launch.seconds(registers)
        bound = max(by, key=by.get)
        self.count += 1
        self.threads = min(self.threads, launch.resident(registers) * launch.threads)
        self.seconds += by[bound]
        self.bounds[bound] += by[bound]
        self.sums["memory"] += launch.memory(registers)
        for name in ("moved", "least", "sectors", "needed", "requests", "instructions", "banked", "ways"):
            self.sums[name] += getattr(launch, name)

    @property
    def excess(self):
        """Seconds beyond those that its least bytes take: what there is to win."""
        return self.seconds - self.sums["least"] / BYTES

    def cells(self, registers, whole):
        of = self.sums
        return [f"`{short(self.kernel)}`", self.count, f"{self.seconds * 1e6:,.0f}",
                f"{100 * self.seconds / whole:.1f}", f"{self.excess * 1e6:,.0f}", max(self.bounds, key=self.bounds.get),
                f"{of['least'] / 1e6:,.1f}", f"{of['memory'] / max(of['least'], 1):.2f}",
                f"{of['moved'] / max(of['least'], 1):.2f}",
                f"{100 * of['needed'] / max(of['sectors'], 1):.0f}", f"{of['sectors'] / max(of['requests'], 1):.1f}",
                f"{32 * of['instructions'] / max(of['least'] / 4, 1):.1f}", registers,
                f"{100 * self.threads // THREADS}", f"{of['ways'] / of['banked']:.2f}" if of["banked"] else ""]


HEAD = ["kernel", "launches", "µs", "% of the step", "µs to win", "bound by", "least MB", "memory / least", "L2 / least",
        "coalesced %", "sectors a request", "instructions for 4 bytes", "registers", "occupancy %", "turns of banks / least"]
ON_THE_PAGE = ("kernel", "launches", "µs", "µs to win", "bound by", "memory / least", "coalesced %", "occupancy %")
SMALLEST_ON_THE_PAGE = 0.02  # of a step


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" + "--:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def table_of(rows, registers, whole):
    return table(HEAD, [row.cells(registers[row.kernel], whole) for row in rows])


def page_table(rows, registers, whole):
    columns = [HEAD.index(name) for name in ON_THE_PAGE]
    cells = [row.cells(registers[row.kernel], whole) for row in rows if row.seconds >= SMALLEST_ON_THE_PAGE * whole]
    return table(ON_THE_PAGE, [[row[column] for column in columns] for row in cells])


def page(build, model, blocks, part, show=page_table):
    step, registers = launches(build, model, blocks), registers_of(build)
    rows, libraries, least = {}, collections.defaultdict(list), 0.0
    for one in step:
        if isinstance(one, Library):
            libraries[one.name].append(one)
        else:
            rows.setdefault(one.kernel, Row(one.kernel)).add(one, registers[one.kernel])
            least += one.least
    ours = sum(row.seconds for row in rows.values())
    theirs = sum(one.seconds() for some in libraries.values() for one in some)
    whole = ours + theirs
    memory, moved = (sum(row.sums[name] for row in rows.values()) for name in ("memory", "moved"))
    sectors, needed = (sum(row.sums[name] for row in rows.values()) for name in ("sectors", "needed"))
    calls = ", ".join(f"{1e3 * sum(one.seconds() for one in some):.2f} ms in {len(some)} calls of {name}"
                      for name, some in sorted(libraries.items()))
    said = [f"{TITLES[model]}, bf16, one step of one micro_batch: {1e3 * whole:.2f} ms, of which {1e3 * ours:.2f} ms "
            f"({100 * ours / whole:.0f} %) in {sum(row.count for row in rows.values())} launches of our kernels and "
            f"{calls}. The least bytes of our kernels alone take {1e3 * least / BYTES:.2f} ms; they move "
            f"{memory / least:.2f} times these from and to memory, {moved / least:.2f} times through the L2 cache, {100 * needed / sectors:.0f} % coalesced."]
    worst = sorted((row for row in rows.values() if part in row.kernel), key=lambda row: -row.excess)
    said.append(show(worst, registers, whole))
    return "\n\n".join(said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--model", choices=sorted(MODELS))
    parser.add_argument("--kernel", default="")
    words = parser.parse_args()
    models = [words.model] if words.model else sorted(MODELS)
    if words.kernel and not words.print:
        parser.error("--kernel is for --print")
    if words.print:
        for model in models:
            print(page(words.build, model, words.blocks, words.kernel, table_of), flush=True)
        return
    sys.argv = sys.argv[:1] + (["--check"] if words.check else [])
    tables = [(f"costs-{model}", page(words.build, model, words.blocks, "")) for model in models]
    keep_current(ROOT / "docs" / "design" / "gpu-costs.md", tables, "tests/cuda/interpreter/costs.py build/release")


if __name__ == "__main__":
    main()
