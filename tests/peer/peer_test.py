#!/usr/bin/env python3
"""lockstep against PyTorch, step by step from the same weights and samples.

    scripts/python.sh --packages tests/peer/requirements.txt tests/peer/peer_test.py [Agreement|Sensitivity|Coverage]

Each case is a small job. PyTorch trains it in fp64 and in the run's own precision; comparison.py says what is compared
and with which bound. The table at the end (and in peer.txt of the build) has each case's worst value. $LOCKSTEP_PEER
selects the cases whose name contains it.
"""
import contextlib
import os
import pathlib
import sys
import tempfile
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import ops  # noqa: E402
import program  # noqa: E402
import training  # noqa: E402
import zoo  # noqa: E402
from cases import CASES  # noqa: E402
from comparison import Comparison, seeds  # noqa: E402
from coverage import settings_without_a_case  # noqa: E402
from forms import ROOT, Forms  # noqa: E402
from network import layers_of  # noqa: E402

FORMS = Forms()
CHOSEN = [case for case in CASES if os.environ.get("LOCKSTEP_PEER", "") in case.name]
RESULTS, COMPARED, FOUND = [], {}, []


def compared(case):
    """The Comparison of a case and its verdict, computed once."""
    if case.name not in COMPARED:
        for seed in seeds(case, FORMS):
            COMPARED[case.name] = compare(case.with_seed(seed))
            if COMPARED[case.name][1].agrees:
                break
    return COMPARED[case.name]


def compare(case):
    comparison = Comparison(case, FORMS)
    with tempfile.TemporaryDirectory() as folder:
        ours = program.run(case, pathlib.Path(folder), comparison.data, comparison.validation,
                           comparison.first["parameters"] | comparison.first["statistics"])
    return comparison, comparison.measure(ours)


@contextlib.contextmanager
def convention(changed):
    """Applies the conventions of a mutant temporarily; yields its changes of the job."""
    before = dict(training.CONVENTIONS)
    prefix = "convention."
    training.CONVENTIONS.update({k.removeprefix(prefix): v for k, v in changed.items() if k.startswith(prefix)})
    yield {key: value for key, value in changed.items() if not key.startswith(prefix)}
    training.CONVENTIONS.update(before)


class Agreement(unittest.TestCase):
    """Every case stays within its bounds."""

    def test_cases(self):
        for case in CHOSEN:
            with self.subTest(case.name):
                verdict = compared(case)[1]
                RESULTS.append((case, verdict))
                self.assertTrue(verdict.agrees, str(verdict))


class Sensitivity(unittest.TestCase):
    """The bounds are tight: if PyTorch is made to compute something slightly different, the comparison detects it."""

    def test_mutants(self):
        for case in CHOSEN:
            for mutant in case.mutants:
                with self.subTest(case.name, mutant=mutant), convention(mutant) as changed:
                    self.check_found(compared(case)[0].mutated(changed=changed))

    def test_every_op_made_slightly_wrong(self):
        for op in ops.OPS:
            for case in (case for case in CHOSEN if case.name.startswith(f"{op}:")):
                with self.subTest(case.name):
                    self.check_found(compared(case)[0].mutated(distorted=op))

    def check_found(self, verdict):
        FOUND.append(verdict.ratio)
        self.assertGreater(verdict.ratio, 1, f"not found; nearest: {verdict}")


class Coverage(unittest.TestCase):
    """Everything that lockstep has is here, and vice versa."""

    def test_tables(self):
        for kind, table in (("ops", ops.OPS), ("loss", training.LOSSES), ("optimizer", training.OPTIMIZERS),
                            ("schedule", training.SCHEDULES), ("model", zoo.MODELS)):
            self.assertEqual([], sorted(set(FORMS.kinds[kind]) - set(table)), f"{kind} without an entry in tests/peer")
            self.assertEqual([], sorted(set(table) - set(FORMS.kinds[kind])), f"{kind} that lockstep does not have")
        self.assertEqual(FORMS.metrics, sorted(training.METRICS | training.ELEMENT_METRICS | training.OF_EVALUATIONS))

    def test_every_setting_has_a_case(self):
        self.assertEqual([], settings_without_a_case(CASES, FORMS))

    def test_every_op_is_made_slightly_wrong_in_a_case(self):
        self.assertEqual([], [op for op in ops.OPS if not any(case.name.startswith(f"{op}:") for case in CASES)])

    def test_names(self):
        self.assertEqual(len({case.name for case in CASES}), len(CASES))

    def test_a_case_has_the_ops_of_its_name(self):
        for case in CASES:
            op = case.name.split(":")[0]
            if op in ops.OPS:
                layers = layers_of(case.job["model"], FORMS, 5)
                self.assertIn(op, [FORMS.chosen("ops", layer)[0] for layer in layers])


def report():
    yield (f"{'case':46} {'nearest to its bound':22} {'lockstep':>9} {'PyTorch':>9} {'bound':>9} {'of it':>6} "
           f"{'seed':>4}")
    for case, verdict in RESULTS:
        yield (f"{case.name:46} {verdict.kind + ', step ' + str(verdict.step):22} {verdict.ours:9.1e} "
               f"{verdict.theirs:9.1e} {verdict.bound:9.1e} {verdict.ratio:6.0%} {verdict.seed:4}")
    yield f"{len(RESULTS)} cases; distances from PyTorch in fp64"
    if FOUND:
        yield f"{len(FOUND)} mutants; the least one is {min(FOUND):.1f} times its bound away"


def tearDownModule():
    if RESULTS:
        text = "\n".join(report())
        print("\n" + text)
        (pathlib.Path(os.environ.get("LOCKSTEP_BUILD", ROOT / "build/release")) / "peer.txt").write_text(text + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
