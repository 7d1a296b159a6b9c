"""The settings of ops, losses, optimizers, schedules and models, as given by `lockstep schema`: expands a job's short
forms, with every default."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from ops_table import NOT_ATTRIBUTES, NOT_OPS, map_form, short_form  # noqa: E402

PROGRAM = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))


@dataclasses.dataclass
class Form:
    """One alternative: its attributes, their defaults, and which one a bare value sets."""
    attributes: list
    defaults: dict
    short: str | None

    def written_out(self, value):
        given = value if isinstance(value, dict) else {} if value is None else {self.short: value}
        unknown = set(given) - set(self.attributes)
        assert not unknown, f"{unknown} is none of {self.attributes}"
        return self.defaults | given


def form_of(schema):
    own = map_form(schema)
    attributes = {key: value for key, value in own.get("properties", {}).items() if key not in NOT_ATTRIBUTES}
    defaults = {key: value["default"] for key, value in attributes.items() if "default" in value}
    return Form(list(attributes), defaults, short_form(schema, attributes))


class Forms:
    """`kinds`: for each section (ops, loss, optimizer, schedule, model), the alternatives by name."""

    def __init__(self):
        schema = json.loads(subprocess.run([PROGRAM, "schema"], capture_output=True, check=True).stdout)
        job = schema["properties"]["job"]["properties"] | schema["properties"]["job"]["else"]["properties"]
        rate = map_form(job["learning_rate"])["properties"]
        model = map_form(job["model"])["properties"]
        layers = map_form(map_form(model["layers"]["items"]))["properties"]
        self.kinds = {
            "ops": self.alternatives(layers, NOT_OPS),
            "loss": self.alternatives(map_form(job["loss"])["properties"], {"target", "output", "weight", "name"}),
            "optimizer": self.alternatives(map_form(job["optimizer"])["properties"], {"groups", "average"}),
            "schedule": self.alternatives(map_form(rate["schedule"])["properties"]),
            "model": self.alternatives(model, {"layers", "inputs", "freeze", "lora"}),
        }
        self.rate = {key: value["default"] for key, value in rate.items()}
        self.metrics = sorted(job["metrics"]["oneOf"][0]["anyOf"][0]["enum"])

    @staticmethod
    def alternatives(properties, others=()):
        return {name: form_of(schema) for name, schema in properties.items() if name not in others}

    def chosen(self, kind, entry):
        """(name, attributes with every default, other keys) of a map with one alternative, or a bare word."""
        if isinstance(entry, str):
            entry = {entry: None}
        name = next(key for key in entry if key in self.kinds[kind])
        rest = {key: value for key, value in entry.items() if key != name}
        value = entry[name]
        inputs = value.get("inputs") if isinstance(value, dict) else None
        if inputs is not None:
            value = {key: own for key, own in value.items() if key != "inputs"}
            rest["inputs"] = inputs
        return name, self.kinds[kind][name].written_out(value), rest
