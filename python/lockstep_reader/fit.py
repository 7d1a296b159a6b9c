"""Which tensor of a checkpoint goes where in a PyTorch module: the part that needs no PyTorch.

A module's entry is looked for under its own name, or where `names` says: a dictionary from names of the module, or their
beginnings up to a dot, to the checkpoint's; a function from the one to the other; or "order".
"""
import dataclasses
from collections.abc import Callable

Names = dict[str, str] | Callable[[str], str] | str | None
_COUNTER = "num_batches_tracked"  # of PyTorch's batch norm; nothing here counts batches


@dataclasses.dataclass
class Fit:
    """What fits and what does not. print() shows it as a list."""
    place: str
    pairs: dict[str, str] = dataclasses.field(default_factory=dict)  # by the module's name: the checkpoint's
    missing: dict[str, str] = dataclasses.field(default_factory=dict)  # likewise; the checkpoint does not have it
    # the checkpoint's name, the module's shape, the checkpoint's
    other_shapes: dict[str, tuple[str, tuple, tuple]] = dataclasses.field(default_factory=dict)
    unused: list[str] = dataclasses.field(default_factory=list)  # of the checkpoint
    turned: list[str] = dataclasses.field(default_factory=list)  # of the module: put into the order of PyTorch's flatten

    @property
    def is_whole(self) -> bool:
        """Whether every tensor of either side has one on the other."""
        return not (self.missing or self.other_shapes or self.unused)

    def problems(self) -> list[str]:
        lines = [f"'{name}': nothing is called '{wanted}'" for name, wanted in self.missing.items()]
        lines += [f"'{name}': {list(shape)} here, {list(found)} in '{of}'"
                  for name, (of, shape, found) in self.other_shapes.items()]
        return lines + [f"nobody takes '{name}'" for name in self.unused]

    def __str__(self) -> str:
        lines = [f"{name} <- {of}" + (", in the order of PyTorch's flatten" if name in self.turned else "")
                 for name, of in self.pairs.items()]
        return "\n".join([f"{len(self.pairs)} tensors of {self.place}", *(f"  {line}" for line in lines),
                          *(f"  does not fit: {line}" for line in self.problems())])


def fit_of(place: str, module: dict[str, tuple[int, ...]], buffers: set[str], weights: dict[str, tuple[int, ...]],
           states: set[str], names: Names) -> Fit:
    """Pairs up shapes by name. `buffers` and `states` are those names of the module and of the checkpoint that are no
    parameters: with "order" they are paired among themselves."""
    module = {name: shape for name, shape in module.items() if name.rpartition(".")[2] != _COUNTER}
    wanted = _in_order(module, buffers, weights, states) if names == "order" else {
        name: _source(name, weights, names) for name in module}
    fit = Fit(place)
    for name, shape in module.items():
        of = wanted[name]
        if of not in weights:
            fit.missing[name] = of
        elif weights[of] != shape:
            fit.other_shapes[name] = (of, shape, weights[of])
        else:
            fit.pairs[name] = of
    taken = {*fit.pairs.values(), *(of for of, _, _ in fit.other_shapes.values())}
    fit.unused = [name for name in weights if name not in taken]
    return fit


def _in_order(module, buffers, weights, states) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for mine, theirs in (([n for n in module if n not in buffers], [n for n in weights if n not in states]),
                         ([n for n in module if n in buffers], [n for n in weights if n in states])):
        pairs |= {name: theirs[i] if i < len(theirs) else "the next one" for i, name in enumerate(mine)}
    return pairs


def _source(name, weights, names) -> str:
    if callable(names):
        return names(name)
    wanted = _renamed(name, names or {})
    ours = wanted.removesuffix(".running_var") + ".running_variance"
    return ours if wanted.endswith(".running_var") and wanted not in weights else wanted


def _renamed(name, names) -> str:
    """By the longest beginning that is a key."""
    words = name.split(".")
    for count in range(len(words), 0, -1):
        start = ".".join(words[:count])
        if start in names:
            return ".".join([names[start], *words[count:]])
    return name
