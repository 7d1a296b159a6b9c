"""All cases, by family."""
import cases_models
import cases_ops
import cases_training

CASES = [*cases_ops.CASES, *cases_training.CASES, *cases_models.CASES]
