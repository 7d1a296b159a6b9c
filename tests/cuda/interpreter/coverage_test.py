"""How much of the module's PTX the tests on the interpreted GPU executed, according to their reports.

    coverage_test.py FOLDER_OF_THE_INTERPRETED_GPU PTX_CHECK

Prints the figures, and for each kernel that was not executed completely the number of instructions left, with the
reason. Fails if a kernel was not executed, or less than LEAST of all instructions, or if a kernel is not decoded.
"""
import collections
import pathlib
import re
import subprocess
import sys
import unittest

from ptx_edits import long_divisions

GPU, CHECK = sys.argv[1:3]
LEAST = 0.95
# Why instructions are left, besides long divisions, by what a kernel's name matches first.
REASONS = (
    (r"RowElements<(Moments|GradientTotals)>", "sums of 16 sums of 64 blocks of batch_norm: 8 million elements"),
    (r"RecurrentStep", "sums over 128 and more units"),
    (r"", "rests of loops that nvcc unrolls, of sizes that no case has"),
)


def sizes():
    """{kernel: instructions}"""
    done = subprocess.run([CHECK, f"{GPU}/ptx"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    lines = (line.split() for line in done.stdout.splitlines())
    return {name: int(count) for count, name in lines}


def executed():
    """{kernel: {instruction}}, and the number of launches and of instructions by all threads, over all reports."""
    hits, launches, lanes = collections.defaultdict(set), 0, 0
    for path in pathlib.Path(GPU, "reports").glob("*/*.report"):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split("\t")
            if words[0] == "kernel":
                launches += int(words[1])
                lanes += int(words[2])
                hits[words[4]] |= {i for i, digit in enumerate(words[3]) if digit == "1"}
    return hits, launches, lanes


def short(names):
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    for word in ("void ", "lockstep::", "device::", "ops::", "optim::"):
        plain = plain.replace(word, "")
    return plain.splitlines()


class Coverage(unittest.TestCase):
    def test_figures(self):
        of, (hits, launches, lanes) = sizes(), executed()
        all_instructions = sum(of.values())
        done = sum(len(hits[name]) for name in of)
        ran = [name for name in of if hits[name]]
        print(f"{len(ran)} of {len(of)} kernels and {done} of {all_instructions} instructions "
              f"({100 * done / all_instructions:.1f} %) were executed, in {launches} launches, "
              f"{lanes / 1e9:.2f} billion instructions of threads")
        long, _ = long_divisions(f"{GPU}/ptx")
        divisions = {name: len(long.get(name, set()) - hits[name]) for name in of}
        print(f"{sum(divisions.values())} of the others divide numbers of more than 32 bits: tensors of 2^32 elements")
        left = sorted(((of[name] - len(hits[name]), name) for name in of if len(hits[name]) < of[name]), reverse=True)
        for (count, name), text in zip(left, short([name for _, name in left])):
            reasons = [f"{divisions[name]} in long divisions"] if divisions[name] else []
            if count > divisions[name]:
                why = next(why for pattern, why in REASONS if re.search(pattern, text))
                reasons.append(f"{count - divisions[name]} in {why}")
            print(f"{count:5} of {of[name]:4} left: {text[:100]}: {', '.join(reasons)}")
        self.assertEqual([name for name in of if not hits[name]], [], "kernels that were not executed")
        self.assertGreaterEqual(done / all_instructions, LEAST)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
