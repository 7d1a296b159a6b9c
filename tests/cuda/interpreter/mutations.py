#!/usr/bin/env python3
"""Whether the tests on the interpreted GPU find a fault: edits the PTX of the module's kernels at places that are drawn,
one at a time (ptx_edits.py), or loses one wait for an event, and runs the tests that execute the place. What none of
them finds has survived: either a test is missing, or the edit changes nothing that anybody could see.

    mutations.py BUILD_FOLDER [--edits N] [--waits N] [--seed N] [--kind KIND] [--kernel PART_OF_ITS_NAME] [--smoke]

Prints each edit with what found it, and the survivors again at the end; exits 0 whatever survives. A test that takes too
long has found nothing: it may hang by the edit, or because the machine is busy; where no other test finds the edit, it is
counted apart. What is executed it takes from the reports of the tests, which must have run (cuda.interpreted). --smoke:
six edits that must be found; exits 1 where one is not.
"""
import argparse
import collections
import dataclasses
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import ptx_edits

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[2]
PATIENCE = 400  # s for a test
TOO_LONG = f"took longer than {PATIENCE} s"  # it hangs, or the machine is busy: neither found nor survived
SCRIPTS = ("step", "ops", "two_bytes", "libraries", "jobs", "ranks")  # the cheapest first
OF_OPS = ("ops", "two_bytes", "libraries")  # can be restricted to some ops
# Functors of no op's own: some ops that have them.
SHARED = {"CopyRowsFunctor": ("linear", "linear_gelu", "gelu_linear", "conv"), "AppendZerosFunctor": ("linear",),
          "CloseRowsFunctor": ("linear",), "ClearGapsFunctor": ("linear",), "SmallIntegersFunctor": ("conv",),
          "DifferenceFunctor": ("conv",), "ScaleGradients": ("layer_norm", "rms_norm"),
          "WeightAndBiasTerms": ("layer_norm",), "WeightAndBias": ("layer_norm",), "RowElements": ("linear", "conv", "position_embedding"), "FilterSizes": ("conv",), "Product": ("gelu", "dropout"), "MatrixLines": ("linear", "linear_gelu", "gelu_linear"),
          "PixelsUnderWindows": ("conv", "conv_transpose"), "WindowsOverPixels": ("conv", "conv_transpose")}
ACTIVATIONS = {"Elu": "elu", "Hardswish": "hardswish", "LeakyRelu": "leaky_relu", "Relu": "relu", "Sigmoid": "sigmoid",
               "Silu": "silu", "Softplus": "softplus", "Tanh": "tanh"}
OF_SCRIPT = {"libraries": "Ops", "ranks": "Bits"}  # the tests that are taken of it; else all


@dataclasses.dataclass(frozen=True)
class Probe:
    """A test of a script; `ops` restricts it to the cases of some."""
    script: str
    ops: str = ""

    @property
    def name(self):
        return f"{self.script} {self.ops}".strip()


class Bench:
    """A folder like that of the interpreted GPU, whose PTX is edited."""

    def __init__(self, build, folder):
        self.build, self.folder = build, pathlib.Path(folder)
        self.real = build / "interpreted-gpu"
        for name in ("lib", "libraries"):
            (self.folder / name).symlink_to(self.real / name)
        (self.folder / "ptx").mkdir()
        for path in self.real.glob("ptx/*.ptx"):
            shutil.copy(path, self.folder / "ptx" / path.name)
        self.passed = set()

    def require(self, probe):
        """A script that finds an edit must find nothing without one."""
        if probe.script not in self.passed and (wrong := self.run(probe)):
            raise SystemExit(f"{probe.name} fails without an edit: {wrong}")
        self.passed.add(probe.script)

    def run(self, probe, **settings):
        """What the test says is wrong; empty: nothing."""
        command = [sys.executable, HERE / f"{probe.script}_test.py", self.folder, self.build / "stand-ins",
                   self.build / "bin/cuda_ops_test", self.build / "stand-ins/libstand_in_grids.so", "--failfast",
                   *OF_SCRIPT.get(probe.script, "").split()]
        values = {**os.environ, "LOCKSTEP": str(self.build / "bin/lockstep"), **settings}
        if probe.ops:
            values["LOCKSTEP_TEST_OPS"] = probe.ops
        with subprocess.Popen(command, env=values, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, cwd=SOURCES, start_new_session=True) as process:
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return TOO_LONG
        return "" if process.returncode == 0 else reason(said)

    def run_edited(self, edit, probe):
        was = edit.apply(self.folder / "ptx")
        try:
            return self.run(probe)
        finally:
            for path, text in was.items():
                path.write_text(text, encoding="utf-8")


def reason(said):
    """In a few words: a check of the interpreter's, or what a test compares."""
    for pattern in (r"instruction \S+ isn't known",
                    r"races: [a-z]+ what another thread of the (?:launch|block) [a-z]+|misses a wait|memory that nobody wrote|"
                    r"outside of (?:shared )?memory|shared memory that no thread|misaligned|waits for lanes that never come|waits with a mask|"
                    r"waits for a lane that has left|shuffles from a lane|divides by 0|waits for what never comes"):
        found = re.search(pattern, said)
        if found:
            return found[0]
    return "another result" if re.search(r"other bits|expected|!=|FAILED", said) else said[-200:]


def executed(real):
    """{script: {kernel: {instruction}}} and {script: waits of its process that waits most}"""
    instructions, waits = {}, collections.Counter()
    for script in SCRIPTS:
        of_script = instructions[script] = collections.defaultdict(set)
        for path in real.glob(f"reports/{script}_test/*.report"):
            for line in path.read_text(encoding="utf-8").splitlines():
                words = line.split("\t")
                if words[0] == "kernel":
                    of_script[words[4]] |= {i for i, digit in enumerate(words[3]) if digit == "1"}
                elif words[0] == "works":
                    waits[script] = max(waits[script], int(words[3]))
        if not of_script:
            raise SystemExit(f"no report of cuda.interpreted.{script}: run the tests first")
    return instructions, waits


def headers():
    """{header of an op's kernels: its text}; which it includes of other ops, too."""
    return {path: path.read_text(encoding="utf-8") for path in SOURCES.glob("src/ops/*/*.hpp")}


def ops_of(kernel, texts):
    """The ops whose headers have a functor of the kernel's name; none: it is no op's, or all ops'."""
    names = set(re.findall(r"\b[A-Z]\w+", plain(kernel))) - {"MapFunctor", "MapPairFunctor"}
    if "run_product<" in plain(kernel):
        names.discard("Product")  # not the functor of that name
    homes = [path for path, text in texts.items() if any(re.search(rf"struct {name}\b", text) for name in names)]
    folders = {path.parent.name for path in homes}
    included = "|".join(path.name for path in homes)
    users = [text for path, text in texts.items()
             if path.parent.name in folders or (included and re.search(f'#include "ops/.*({included})"', text))]
    ops = set(re.findall(r"> make_(\w+)_grid\(const KernelRequest", "\n".join(users)))
    ops |= {ACTIVATIONS[name] for name in names if name in ACTIVATIONS}
    for name in names:
        ops |= set(SHARED.get(name, ()))
    return ",".join(sorted(ops))


def family(kernel):
    """Kernels of one functor for several types are one family."""
    return re.sub(r"NS\w*?Element\w*?(Float16|Bfloat16)E+", "", kernel)


def draw(edits, count, seed):
    """Of each kind in turn, and of a family that has had the fewest."""
    chance = random.Random(seed)
    by_kind = collections.defaultdict(list)
    for edit in edits:
        by_kind[edit.kind].append(edit)
    for of_kind in by_kind.values():
        chance.shuffle(of_kind)
    drawn, had = [], collections.Counter()
    while len(drawn) < count and any(by_kind.values()):
        for kind in sorted(by_kind):
            if not by_kind[kind] or len(drawn) == count:
                continue
            best = min(by_kind[kind], key=lambda edit: had[family(edit.kernel)])
            by_kind[kind].remove(best)
            had[family(best.kernel)] += 1
            drawn.append(best)
    return drawn


def plain(kernel):
    said = subprocess.run(["c++filt", kernel], capture_output=True, text=True, check=True).stdout.strip()
    said = re.sub(r"^void |lockstep::|device::|ops::|optim::|input::|\(long, .*", "", said)
    return said[:120]


def describe(edit):
    line = edit.lines[0]
    return f"{edit.kind}, {plain(edit.kernel)}: {line.before} -> {line.after or '(nothing)'} ({line.file}:{line.number + 1})"


def try_edit(bench, edit, instructions, texts):
    """Who found it and how; TOO_LONG: nobody, but a test took too long; None: nobody. Whole jobs are only asked where no
    test of kernels executes the place."""
    ops, outcome = ops_of(edit.kernel, texts), None
    able = [script for script in SCRIPTS if edit.instruction in instructions[script].get(edit.kernel, ())]
    for script in [script for script in able if script not in ("jobs", "ranks")] or able:
        probe = Probe(script, ops if script in OF_OPS else "")
        found = bench.run_edited(edit, probe)
        if found == TOO_LONG:
            outcome = TOO_LONG
        elif found:
            bench.require(probe)
            return f"{probe.name}: {found}"
    return outcome


def verdict(found):
    if found == TOO_LONG:
        return "TOO LONG"
    return "found" if found else "SURVIVED"


def lost_waits(waits, count, seed):
    """(probe, number), of tests of whole jobs."""
    chance = random.Random(seed)
    return [(Probe(script), chance.randint(1, waits[script]))
            for _, script in zip(range(count), ("jobs", "ranks") * count)]


def smoke(bench):
    """A norm's shuffle, barrier and mask; where a relu is stored; the guard of a softmax's rows, and a bound."""
    norm = "run_staged_rows.*LayerNormFunctorIf"
    wanted = [("shuffle left out", norm, "layer_norm"), ("barrier left out", norm, "layer_norm"),
              ("mask of half a group", norm, "layer_norm"), ("store beside its place", "MapFunctor.*4ReluEf", "relu"),
              ("guard left out", "run_rows.*SoftmaxFunctorIf", "softmax"),
              ("bound off by one", "run_rows.*SoftmaxFunctorIf", "softmax")]
    left = 0
    edits = ptx_edits.edits_of_folder(bench.folder / "ptx")
    for kind, kernel, op in wanted:
        edit = next(edit for edit in edits if edit.kind == kind and re.search(kernel, edit.kernel))
        bench.require(Probe("ops", op))
        found = bench.run_edited(edit, Probe("ops", op))
        print(f"{verdict(found)}: {describe(edit)}: {found}", flush=True)
        left += verdict(found) != "found"
    return 1 if left else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--edits", type=int, default=80)
    parser.add_argument("--waits", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="")
    parser.add_argument("--kernel", default="")
    parser.add_argument("--smoke", action="store_true")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(words.build, folder)
        if words.smoke:
            return smoke(bench)
        instructions, waits = executed(bench.real)
        edits = [edit for edit in ptx_edits.edits_of_folder(bench.folder / "ptx")
                 if any(edit.instruction in of_script.get(edit.kernel, ()) for of_script in instructions.values())
                 and words.kind in edit.kind and words.kernel in edit.kernel]
        texts, survivors, late, of_kind = headers(), [], [], collections.Counter()

        def say(kind, text, found):
            outcome = verdict(found)
            print(f"{outcome}: {text}: {found}", flush=True)
            of_kind[kind, outcome] += 1
            if outcome != "found":
                (late if outcome == "TOO LONG" else survivors).append(text)

        for edit in draw(edits, words.edits, words.seed):
            say(edit.kind, describe(edit), try_edit(bench, edit, instructions, texts))
        for probe, number in lost_waits(waits, words.waits, words.seed):
            found = bench.run(probe, INTERPRETED_GPU_LOSES=str(number))
            say("wait lost", f"the {number}. wait for an event of each process of {probe.name}", found)
        for kind in sorted({kind for kind, _ in of_kind}):
            print(f"{kind}: {of_kind[kind, 'found']} found, {of_kind[kind, 'TOO LONG']} took too long, "
                  f"{of_kind[kind, 'SURVIVED']} survived")
        print(f"{sum(of_kind.values())} edits, {len(survivors)} survived", *survivors, sep="\n")
        print(f"{len(late)} took too long", *late, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
