"""What a case is, and the small networks and data that cases share."""
import dataclasses


@dataclasses.dataclass
class Case:
    """`job` is the content of a job file, with generated data (samples.py). `mutants` are changes of the job, by path,
    or of a convention (training.CONVENTIONS), which the comparison must detect, to show that its bounds are tight."""
    name: str
    job: dict
    mutants: list = dataclasses.field(default_factory=list)
    validation: int = 0  # samples of a validation set, which is evaluated after the last step
    evaluate: int = 0  # steps between evaluations; 0: there is the last one only
    ranks: int = 1
    stop_at: int = 0  # the run is stopped after this step and resumed
    normalize: object = "never"
    deep: bool = False  # with so many activations, one is almost always at relu's edge: see comparison.py

    def with_seed(self, seed):
        return dataclasses.replace(self, job=self.job | {"seed": seed})

    @property
    def precision(self):
        value = self.job.get("precision", "fp32")
        return value if isinstance(value, str) else next(iter(value))


IMAGES = {"images": [6, 6, 3], "samples": 32}
LARGER = {"images": [9, 8, 3], "samples": 32}
PAIRS = {"pairs": [[6, 5, 3], [6, 5, 3]], "samples": 32}
TEXT = {"tokens": 11, "context": 7, "samples": 32}
TEXTS = {"texts": 11, "context": 7, "samples": 32}


def job(model, data=None, steps=4, **others):
    """Two micro-batches of eight samples, sgd, and a clipping that has no effect except that the gradient's norm is
    reported."""
    model = {"layers": model} if isinstance(model, list) else model
    return {"model": model, "data": data or IMAGES, "batch_size": 16, "micro_batches": 2, "steps": steps,
            "learning_rate": 0.1, "clip_norm": 1000.0} | others
