"""The tables of mistakes, jobs.txt, cli.txt and data.txt:

    === 05_name 65              a case; its exit code, unless the table has one for all
    % two settings are compared why no schema can express the rule that it breaks
    --- job.yaml                a file, as lines that begin with |
    |job:
    $ train job.yaml            arguments, as a shell would take them
    job.yaml:1:1: ...           what is printed, up to the next case; `...` stands for anything
"""
import dataclasses
import pathlib
import shlex

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Case:
    name: str
    code: int | None = None
    unsayable: str | None = None
    files: dict = dataclasses.field(default_factory=dict)
    arguments: list | None = None
    expected: str = ""


def read(path):
    cases, file = [], None
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines(keepends=True):
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "===":
            name, _, code = rest.partition(" ")
            cases.append(Case(name, int(code) if code else None))
        elif not cases:
            continue  # the heading
        elif kind == "---":
            file = rest
            cases[-1].files[file] = ""
        elif line.startswith("|"):
            cases[-1].files[file] += line[1:]
        elif kind == "%":
            cases[-1].unsayable = rest
        elif kind == "$":
            cases[-1].arguments = shlex.split(rest)
        else:
            cases[-1].expected += line
    for case in cases:
        case.expected = case.expected.rstrip("\n") + "\n" if case.expected.strip() else ""
    return cases


def write(path, cases):
    """With the table's own heading."""
    path = pathlib.Path(path)
    blocks = [path.read_text(encoding="utf-8").partition("\n\n")[0] + "\n"]
    for case in cases:
        lines = [f"=== {case.name}" + (f" {case.code}" if case.code is not None else "")]
        if case.unsayable:
            lines.append(f"% {case.unsayable}")
        for name, text in case.files.items():
            lines += [f"--- {name}", *(f"|{line}" for line in text.splitlines())]
        if case.arguments is not None:
            lines.append(f"$ {shlex.join(case.arguments)}".rstrip())
        blocks.append("\n".join([*lines, case.expected]))
    path.write_text("\n".join(blocks), encoding="utf-8")
