"""What kind of code it is that no test has executed, told from the PTX around it."""
import collections
import pathlib
import re

from ptx_edits import instructions_of, long_divisions

# Loads, stores, and what computes with floats: all but addresses, counters and moves.
WORK = re.compile(r"(ld|st)\.(global|shared|[a-z]\d+)|atom|shfl|bar\.|(?!mov|setp|selp).*\.f(16|32|64)$")
DIVISION = re.compile(r"(div|rem)\.[su]64 ")


def blocks_of(folder):
    """{kernel: its blocks, each a list of (instruction, line)}: a block begins at a label, and ends with a branch."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*.ptx")):
        text = path.read_text(encoding="utf-8")
        lines, of_file, ended = text.split("\n"), {}, True
        for kernel, instruction, number, line in instructions_of(text):
            blocks = of_file.setdefault(kernel, [])
            if ended or not blocks or any(before.startswith("$") for before in lines[max(0, number - 2):number]):
                blocks.append([])
            blocks[-1].append((instruction, line))
            ended = line.startswith(("@", "bra"))
        found.update(of_file)
    return found


def work(lines):
    names = (line.split(" ", 1)[0].rstrip(";") for line in lines)
    return " ".join(name for name in names if WORK.match(name)) + " "


def kinds_of_left(folder, hits):
    """{kernel: {kind: instructions}} of those that were not executed. Kinds: "division", of numbers of more than 32 bits;
    "copy": its work stands in the same order in code of the kernel that was executed, since nvcc unrolls loops;
    "integers": it has no work, only addresses, counters and moves; "work": none of these."""
    divisions, _ = long_divisions(folder)
    left = collections.defaultdict(collections.Counter)
    for kernel, blocks in blocks_of(folder).items():
        ran = hits.get(kernel, set())
        executed = " " + work(line for block in blocks for instruction, line in block if instruction in ran)
        for block in blocks:
            lines = [line for instruction, line in block
                     if instruction not in ran and instruction not in divisions.get(kernel, ())]
            left[kernel]["division"] += sum(instruction not in ran for instruction, _ in block) - len(lines)
            if any(DIVISION.match(line) for line in lines):
                kind = "division"
            elif work(lines) == " ":
                kind = "integers"
            else:
                kind = "copy" if " " + work(lines) in executed else "work"
            left[kernel][kind] += len(lines)
    return left
