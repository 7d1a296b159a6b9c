"""What `lockstep predict --log json` prints: an object a line, for each sample."""
import dataclasses
import json
import os
from collections.abc import Iterable

from .errors import DamagedError, MissingError


@dataclasses.dataclass(frozen=True)
class ClassScore:
    """`probability` is None where the model's loss gives no probabilities: then `value` is the model's output."""
    name: str
    index: int
    probability: float | None
    value: float | None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Of images `files`, of a table `row` ("FILE:LINE"), of text `prompt` and `text`. Either `classes`, the likeliest first,
    or `values`, or `probabilities` of each element."""
    files: list[str]
    row: str | None
    prompt: str | None
    text: str | None
    classes: list[ClassScore]
    values: list[float]
    probabilities: list[float]

    @property
    def best(self) -> ClassScore | None:
        return self.classes[0] if self.classes else None


def read_predictions(source: str | os.PathLike | Iterable[str]) -> list[Prediction]:
    """From a file that the output went to, or from its lines. Raises MissingError or DamagedError, which names the line."""
    if not isinstance(source, (str, os.PathLike)):
        return _read(source, "predictions")
    path = os.fspath(source)
    try:
        with open(path, encoding="utf-8") as file:
            return _read(file, path)
    except FileNotFoundError:
        raise MissingError(path, "predictions", "no such file",
                           "write it with lockstep predict RUN FILES --log json >FILE") from None


def _read(lines, place) -> list[Prediction]:
    predictions = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if found["event"] != "predict":
                raise ValueError(found["event"])
            predictions.append(_prediction(found))
        except (ValueError, KeyError, TypeError):
            raise DamagedError(f"{place}:{number}", "a prediction, as lockstep predict --log json prints it",
                               repr(line.strip()[:60]), "write it anew with --log json") from None
    return predictions


def _prediction(found: dict) -> Prediction:
    classes = [ClassScore(one["name"], one["index"], one.get("probability"), one.get("value"))
               for one in found.get("classes", [])]
    return Prediction(found.get("files", []), found.get("row"), found.get("prompt"), found.get("text"), classes,
                      found.get("values", []), found.get("probabilities", []))
