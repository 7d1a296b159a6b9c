"""All cases, by family."""
import dataclasses

import cases_models
import cases_ops
import cases_training



def narrow(precision):
    """Every op's cases in another precision."""
    for case in cases_ops.CASES:
        yield dataclasses.replace(case, name=f"{precision}: {case.name}", job=case.job | {"precision": precision},
                                  mutants=[])


CASES = [*cases_ops.CASES, *cases_training.CASES, *cases_models.CASES, *narrow("bf16"), *narrow("fp16")]
