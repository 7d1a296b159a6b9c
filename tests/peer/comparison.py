"""Is lockstep as far from PyTorch in fp64 as PyTorch in the run's own precision is? Then the formulas are the same.

A distance is the greatest difference of a kind of value at a step, divided by its scale: for parameters and running
statistics, how far they have moved from their initial values, tensor by tensor; for the optimizer's state, its greatest
element; for numbers, the number itself. The bound is FACTOR times PyTorch's own distance, but at least FLOOR, and it
must not be above CEILING, or the case would prove nothing. In bf16 and fp16 PyTorch rounds where docs/training.md says
that lockstep does (network.py), and lockstep's distance must then not be much smaller than PyTorch's either, or nothing
was rounded.

A relu whose input is closer to 0 than a rounding error, or two equally close pixels of a max_pool, may go either way,
in lockstep as in PyTorch's fp32; the gradient then differs by one element. That is chance, and a wrong formula is not:
cases with such ops, and those in bf16 and fp16, may use other samples, SEEDS attempts in all. If there are so many
activations that this happens almost always (`deep`), only the bounds of the loss, of the gradient's norm and of the
running statistics must stay below the ceiling.
"""
import copy
import dataclasses
import math

import torch

import network
import samples
import training

FACTOR, NARROW_FACTOR = 8.0, 4.0
FLOOR = 1e-6  # a few rounding errors of fp32
CEILING, NARROW_CEILING = 0.02, 0.5
NARROW_FLOORS = {torch.bfloat16: 2**-7, torch.float16: 2**-10}  # for numbers: two roundings; one may be right by chance
SEEDS = 8
KINKS = {"relu", "leaky_relu", "hardswish", "max_pool", "global_pool"}
RATE_BOUND = 1e-12  # the learning rate is computed in fp64
TENSORS = ("parameters", "statistics", "optimizer")


def number_distance(ours, reference):
    if isinstance(ours, str):  # nan and inf
        return math.inf
    return abs(ours - reference) / max(abs(reference), 1e-30) if ours != reference else 0.0


def tensor_distance(ours, reference, first):
    difference = (ours - reference).abs().max().item() if ours.numel() else 0.0
    scale = (reference - first).abs().max().item() if ours.numel() else 0.0
    if math.isnan(difference):
        return math.inf
    return 0.0 if difference == 0 else difference / scale if scale > 0 else math.inf


def distances(ours, reference, first):
    """The distances of one step, by kind of value."""
    out = {}
    for kind, value in reference.items():
        if kind in TENSORS:
            assert set(ours[kind]) == set(value), f"{kind}: {sorted(set(ours[kind]) ^ set(value))} on one side only"
            start = first.get(kind, {})
            each = [tensor_distance(ours[kind][name], tensor, start.get(name, torch.zeros_like(tensor)))
                    for name, tensor in value.items()]
            out[kind] = max(each, default=0.0)
        elif kind in ours:
            out[kind] = number_distance(ours[kind], value)
    return out


@dataclasses.dataclass
class Verdict:
    """The value that comes nearest to its bound, or exceeds it most: `ratio` is distance / bound."""
    ratio: float = 0.0
    kind: str = "-"
    step: int = 0
    ours: float = 0.0
    theirs: float = 0.0
    bound: float = FLOOR
    conclusive: bool = True  # no bound is above the ceiling
    rounds: bool = True  # in bf16 and fp16: lockstep indeed rounds
    seed: int = 1

    @property
    def agrees(self):
        return self.ratio <= 1 and self.conclusive and self.rounds

    def __str__(self):
        return (f"{self.kind} of step {self.step}: {self.ours:.2e} from fp64, PyTorch {self.theirs:.2e}, "
                f"bound {self.bound:.2e}" + ("" if self.conclusive else "; bounds above the ceiling") +
                ("" if self.rounds else "; nothing is rounded"))


def seeds(case, forms, classes=5):
    """The seeds that the case may use."""
    layers = network.layers_of(case.job["model"], forms, classes)
    first = case.job.get("seed", 1)
    kinks = KINKS & {forms.chosen("ops", layer)[0] for layer in layers}
    return range(first, first + (SEEDS if kinks or case.precision != "fp32" else 1))


class Comparison:
    """A case's data and job, lockstep's results, and PyTorch's distance from fp64."""

    def __init__(self, case, forms):
        self.case, self.forms = case, forms
        seed = case.job.get("seed", 1)
        self.data = samples.make(case.job["data"], case.normalize, seed)
        self.validation = None
        if case.validation:
            described = case.job["data"] | {"samples": case.validation}
            self.validation = samples.make(described, case.normalize, seed, self.data)
        self.classes = case.job["data"].get("tokens", case.job["data"].get("classes", 5))
        fresh = self.peer(torch.float64).state()
        self.first = {kind: fresh[kind] for kind in ("parameters", "statistics")}

    def peer(self, dtype, changed=None, narrow=None, distorted=None):
        job = copy.deepcopy(self.case.job)
        for path, value in (changed or {}).items():
            set_value(job, path.split("."), value)
        return training.Peer(job, self.forms, self.data, dtype, self.classes, narrow, distorted)

    def trained(self, dtype, **options):
        """In the form of program.run()."""
        peer, steps = self.peer(dtype, **options), []
        for number in range(self.case.job["steps"]):
            ours = self.ours[number]
            steps.append(peer.step(number, ours["loss_scale"], ours["skipped"]) | peer.state())
            if self.case.evaluate and (number + 1) % self.case.evaluate == 0:
                peer.scheduler.evaluated(peer.evaluate(self.validation))
        return steps, peer.evaluate(self.validation) if self.validation else None

    def measure(self, ours):
        """PyTorch's own distances in the run's precision, and from them the bounds of every step."""
        self.ours, self.ours_evaluated = ours
        narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.case.precision)
        exact, exact_evaluated = self.trained(torch.float64)
        same, same_evaluated = self.trained(torch.float32, narrow=narrow)
        self.theirs = [distances(a, b, self.first) for a, b in zip(same, exact)]
        if self.validation:
            self.theirs.append(distances(same_evaluated, exact_evaluated, {}))
        factor = NARROW_FACTOR if narrow else FACTOR
        floor = NARROW_FLOORS.get(narrow, FLOOR)
        worst = {}
        for step in self.theirs:
            for kind, value in step.items():
                worst[kind] = max(worst.get(kind, 0.0), value)
        # A single number may be right by chance, so its bound uses the greatest distance in the run.
        self.bounds = [{kind: RATE_BOUND if kind == "learning_rate" else
                        max(FLOOR, factor * value) if kind in TENSORS else max(floor, factor * worst[kind])
                        for kind, value in step.items()} for step in self.theirs]
        verdict = self.judged(exact, exact_evaluated)
        if narrow:
            furthest = max(distances(a, b, self.first)["parameters"] for a, b in zip(self.ours, exact))
            verdict.rounds = furthest >= worst["parameters"] / NARROW_FACTOR
        ignored = {"parameters", "optimizer"} if self.case.deep else set()
        greatest = max(bound for step in self.bounds for kind, bound in step.items() if kind not in ignored)
        verdict.conclusive = greatest <= (NARROW_CEILING if narrow else CEILING)
        verdict.seed = self.case.job.get("seed", 1)
        return verdict

    def judged(self, exact, evaluated):
        found = [distances(a, b, self.first) for a, b in zip(self.ours, exact)]
        if self.validation:
            found.append(distances(self.ours_evaluated, evaluated, {}))
        verdict = Verdict()
        for number, step in enumerate(found):
            for kind, value in step.items():
                bound, theirs = self.bounds[number][kind], self.theirs[number][kind]
                if value / bound >= verdict.ratio:
                    verdict = Verdict(value / bound, kind, number + 1, value, theirs, bound)
        return verdict

    def mutated(self, **options):
        """The verdict if PyTorch computes something slightly different."""
        return self.judged(*self.trained(torch.float64, **options))


def set_value(job, path, value):
    for key in path[:-1]:
        job = job[int(key) if isinstance(job, list) else key]
    job[int(path[-1]) if isinstance(job, list) else path[-1]] = value
