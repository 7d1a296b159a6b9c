"""How much of the module's PTX the tests on the interpreted GPU executed, according to their reports.

    coverage_test.py FOLDER_OF_THE_INTERPRETED_GPU PTX_CHECK

Prints the figures, and for each kernel that was not executed completely the number of instructions left, with the
reason. Fails if a kernel was not executed, or less than LEAST of all instructions, if a kernel is not decoded, or if
instructions are left that none of the reasons is for.
"""
import collections
import pathlib
import re
import subprocess
import sys
import unittest

from left_code import kinds_of_left

GPU, CHECK = sys.argv[1:3]
LEAST = 0.95
# Of code by its kind (left_code.py).
KINDS = {"division": "divisions of numbers of more than 32 bits: tensors of 2^32 elements",
         "copy": "copies of code that was executed, of loops that nvcc unrolled",
         "integers": "addresses and counters of what is left"}
# Why work is left: by what the kernel's name has, and of how many instructions of it at most.
REASONS = (
    ("RowElements<(Moments|GradientTotals)>", 310, "sums of 16 sums of 64 blocks of batch_norm: 8 million elements"),
    ("RecurrentStep", 90, "sums over 128 and more units"),
    ("Attention", 320, "loops over a block of at most 64 keys, which nvcc unrolls for longer ones, or in a second way"),
    ("run_rows<(RmsNorm|LayerNorm)", 330, "rows that are not in shared memory and have eight elements for each lane: more than "
     "6,128, or more than 128 and no multiple of 4"),
    ("AppendZeros|CloseRows", 300, "eight elements of a thread at once: weights and outputs of more than 2,048 elements"),
    ("ConvWeightGradient", 20, "groups of fewer than 8 channels, over eight pixels of a lane at once: more than 128 pixels"),
    ("CountRows", 30, "samples of 128 rows and more"),
    ("PairGradient", 20, "more than 64 samples"),
    ("ClassMetric", 5, "a third class that has the score of the label"),
    ("optim::GatherPartsFunctor", 90, "last elements of a tied weight that has no multiple of 4"),
    ("MatrixMoments", 110, "sums of 32 and more partial moments of a matrix"),
    ("(Update|Direction)Functor<optim::(Lamb|Lars|Muon)", 50, "clipped gradients of optimizers of whole tensors"),
    ("optim::SquaresFunctor", 20, "128 elements and more of a weight that lies in another order than the model's"),
    ("Product<.*MatrixLines", 40, "a bias, which is given to a layer's output only"),
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
    for word in ("void ", "lockstep::", "device::", "ops::"):
        plain = plain.replace(word, "")
    return plain.splitlines()


class Coverage(unittest.TestCase):
    def test_figures(self):
        of, (hits, launches, lanes) = sizes(), executed()
        all_instructions = sum(of.values())
        done = sum(len(hits[name]) for name in of)
        ran = [name for name in of if hits[name]]
        print(f"figure: {len(ran)} of {len(of)} kernels and {done} of {all_instructions} instructions "
              f"({100 * done / all_instructions:.1f} %) were executed, in {launches} launches, "
              f"{lanes / 1e9:.2f} billion instructions of threads")
        kinds = kinds_of_left(f"{GPU}/ptx", hits)
        for kind, why in KINDS.items():
            print(f"{sum(left[kind] for left in kinds.values())} of the others: {why}")
        unexplained = []
        left = sorted(((of[name] - len(hits[name]), name) for name in of if len(hits[name]) < of[name]), reverse=True)
        for (count, name), text in zip(left, short([name for _, name in left])):
            said = [f"{kinds[name][kind]} {kind}" for kind in KINDS if kinds[name][kind]]
            if rest := kinds[name]["work"]:
                most, why = next(((most, why) for pattern, most, why in REASONS if re.search(pattern, text)), (0, ""))
                said.append(f"{rest} {why}")
                if rest > most:
                    unexplained.append(f"{text}: {rest} instructions, {most} of which have a reason: {why}")
            print(f"{count:5} of {of[name]:4} left: {text[:100]}: {', '.join(said)}")
        self.assertEqual(unexplained, [], "instructions that were not executed, and nobody has said why")
        self.assertEqual([name for name in of if not hits[name]], [], "kernels that were not executed")
        self.assertGreaterEqual(done / all_instructions, LEAST)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
