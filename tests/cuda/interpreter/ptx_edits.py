"""Small faults of PTX: which edits an instruction admits, each the kind of mistake that a kernel's source could have.

Where two files have one kernel, which of them is loaded last nobody says: an edit is of all of them.

A kernel's instructions are numbered as cuda_ptx_check counts them and reports list them: in the order of the text, a
load of a vector of parameters as one for each of its values, a register that is taken apart as one for each half.
"""
import dataclasses
import pathlib
import re

ENTRY = re.compile(r"^\.visible \.entry (\w+)\(")
BRANCH = re.compile(r"^@(!?)(%p\d+) bra(\.uni)? (\S+);$")
COMPARE = {"ge": "gt", "gt": "ge", "le": "lt", "lt": "le"}
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


@dataclasses.dataclass
class Line:
    file: str
    number: int  # from 0
    before: str
    after: str  # empty: it is left out


@dataclasses.dataclass
class Edit:
    kind: str
    kernel: str
    instruction: int
    lines: list  # one of each file that has the kernel

    def apply(self, folder):
        """{path: what it was}"""
        was = {}
        for line in self.lines:
            path = pathlib.Path(folder, line.file)
            was[path] = path.read_text(encoding="utf-8")
            lines = was[path].split("\n")
            assert lines[line.number] == line.before, (line, lines[line.number])
            lines[line.number] = line.after
            path.write_text("\n".join(lines), encoding="utf-8")
        return was


def moved(line):
    """The same access, one element further on."""
    size = BYTES[re.search(r"\.[a-z](\d+) ", line)[1]]
    place = re.search(r"\[(%rd?\d+)(\+-?\d+)?\]", line)
    return line.replace(place[0], f"[{place[1]}+{int((place[2] or '+0')[1:]) + size}]")


def edits_of(line):
    """(kind, what the line becomes)"""
    name = line.split(" ", 1)[0]
    branch = BRANCH.match(line)
    if branch:
        negated, guard, uniform, target = branch.groups()
        yield "guard left out", ""
        yield "guard negated", f"@{'' if negated else '!'}{guard} bra{uniform or ''} {target};"
    elif name in ("bar.warp.sync", "bar.sync"):
        yield "barrier left out", ""
    elif name.startswith("shfl.sync"):
        to, value = re.match(r"\S+ (%r\d+)\|%p\d+, (%r\d+),", line).groups()
        yield "shuffle left out", f"mov.b32 {to}, {value};"
        yield "shuffle of whole warps", re.sub(r"[^ ]+;$", "-1;", line)
    elif name.startswith("atom."):
        yield "flag left out", ""
    elif re.match(r"setp\.(ge|gt|le|lt)\.[su](32|64)$", name):
        relation = name.split(".")[1]
        yield "bound off by one", line.replace(f"setp.{relation}.", f"setp.{COMPARE[relation]}.", 1)
    elif re.match(r"setp\.(ge|gt|le|lt)u?\.f(32|64)$", name):
        relation = name.split(".")[1]
        turned = {"g": "l", "l": "g"}[relation[0]] + relation[1:]
        yield "comparison turned round", line.replace(f"setp.{relation}.", f"setp.{turned}.", 1)
    elif name.startswith(("st.global.", "st.shared.")):
        yield "store left out", ""
        yield "store beside its place", moved(line)
    elif name.startswith(("ld.global.", "ld.shared.")):
        yield "load beside its place", moved(line)
    elif name in ("add.rn.f32", "add.rn.f64"):
        yield "sum as difference", line.replace("add", "sub", 1)
    elif name in ("sub.rn.f32", "sub.rn.f64"):
        yield "difference as sum", line.replace("sub", "add", 1)
    elif name in ("mul.rn.f32", "mul.rn.f64"):
        yield "product as sum", line.replace("mul", "add", 1)
    elif name in ("add.s64", "add.s32"):
        yield "index off by one", re.sub(r"(, -?\d+);$", lambda found: f", {int(found[1][2:]) + 1};", line)
        yield "index as difference", line.replace("add", "sub", 1)
    elif name == "mul.lo.s64":
        yield "stride left out", re.sub(r"mul\.lo\.s64 (%rd\d+), (%rd\d+), .*;", r"mov.b64 \1, \2;", line)
    elif re.match(r"mov\.u32 %r\d+, 65535;", line):
        yield "mask of half a group", line.replace("65535", "255", 1)


def instructions_of(text):
    """(kernel, instruction, line, text); a line that is as many instructions is given once, with the first."""
    kernel, instruction = None, 0
    for number, line in enumerate(text.split("\n")):
        entry = ENTRY.match(line)
        if entry:
            kernel, instruction = entry[1], 0
        if kernel is None or not line.endswith(";") or line.startswith("."):
            continue
        yield kernel, instruction, number, line
        vector = re.match(r"ld\.param\.v([24])\.", line)
        instruction += int(vector[1]) if vector else 2 if line.startswith("mov.b32 {") else 1


def long_divisions(folder):
    """{kernel: {instruction}} of what runs only where a number doesn't fit into 32 bits: nvcc has a division of 64 bits
    take one of 32 bits where both numbers fit, and this beside it, up to where the two ways meet. And, in the same form,
    the branches that choose between the two, whose results are one where both numbers fit."""
    found, guards = {}, {}
    for path in sorted(pathlib.Path(folder).glob("*.ptx")):
        text = path.read_text(encoding="utf-8")
        lines, run, guard, last = text.split("\n"), [], None, (None, "")
        for kernel, instruction, number, line in instructions_of(text):
            starts = last[1].startswith("@") or (number > 0 and any(
                lines[i].startswith("$") for i in range(max(0, number - 2), number)))
            if starts:
                run, guard = [], last[0] if last[1].startswith("@") else None
            run.append((instruction, line))
            last = instruction, line
            if line.startswith("bra.uni") and re.match(r"(div|rem)\.[su]64 ", run[0][1]):
                found.setdefault(kernel, set()).update(number for number, _ in run)
                guards.setdefault(kernel, set()).add(guard)
    return found, guards


def edits_of_folder(folder):
    """All of them, of every kernel, but those of guards that choose how numbers are divided, either way of which divides
    them, and of shuffles of whole warps, whose mask stands in a register."""
    edits, (_, guards) = {}, long_divisions(folder)
    for path in sorted(pathlib.Path(folder).glob("*.ptx")):
        lines = list(instructions_of(path.read_text(encoding="utf-8")))
        whole = {(kernel, found[1]) for kernel, _, _, line in lines if (found := re.match(r"mov\.[bu]32 (%r\d+), -1;", line))}
        for kernel, instruction, number, line in lines:
            for kind, after in edits_of(line):
                chooses_division = kind.startswith("guard") and instruction in guards.get(kernel, ())
                is_whole = kind == "shuffle of whole warps" and (kernel, re.search(r"(\S+);$", line)[1]) in whole
                if after != line and not chooses_division and not is_whole:
                    edit = edits.setdefault((kind, kernel, instruction), Edit(kind, kernel, instruction, []))
                    edit.lines.append(Line(path.name, number, line, after))
    return list(edits.values())
