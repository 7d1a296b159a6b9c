#!/usr/bin/env python3
"""Keeps the files generated from the values.yaml of the charts and from `lockstep schema` current: values.schema.json,
files/numbers.txt and the tables in README.md.

    scripts/python.sh scripts/chart.py            rewrites them
    scripts/python.sh scripts/chart.py --check    changes nothing; exits with 1 and shows what is not current

The program is $LOCKSTEP, or build/release/bin/lockstep by default.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys

import chart_values
from current import keep_files
from page_tables import keep_current

ROOT = pathlib.Path(__file__).resolve().parents[1]
CHART = ROOT / "helm" / "lockstep"
TEAM = ROOT / "helm" / "lockstep-team"
MONITORING = ROOT / "helm" / "lockstep-monitoring"
# What an item of `groups` may set: its key, and the value with the same rule.
GROUP = {key: ("cluster", key) for key in ("replicas", "gpusPerNode", "gpuResource", "resourceClaims", "slots",
                                           "priorityClassName", "runtimeClassName", "podLabels", "podAnnotations", "env", "volumes",
                                           "volumeMounts", "podPatch")}
GROUP |= {key: ("security", key) for key in ("podSecurityContext", "containerSecurityContext")}
GROUP |= {key: (key,) for key in ("image", "resources", "nodeSelector", "tolerations", "affinity")}
GROUP_NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 16,
              "description": "of the group, and of its Job"}
# What `helm --set` passes as text: it converts only whole numbers to numbers.
FRACTION = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
LEAST_SHARED = 300  # characters of JSON that are written once
WIDTH = 140
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def alert_rule(default):
    """The schema of an alert of the chart lockstep-monitoring."""
    number = {"type": ["number", "string"], "pattern": FRACTION}
    count = len(default["thresholds"])
    return {"additionalProperties": False, "properties": {
        "enabled": {"type": "boolean"}, "severity": {"type": "string", "minLength": 1}, "for": {"type": "string", "pattern": "^([0-9]+[smhd])+$"},
        "thresholds": {"type": "array", "items": number, "minItems": count, "maxItems": count}}}


def schema_of_value(value):
    rule = {} if value.rule is None else dict(value.rule)
    if value.path[0] == "alerts":
        rule = alert_rule(value.default)
    if "enum" not in rule and "type" not in rule:
        rule = {"type": TYPES[type(value.default)], **rule}
    return {**rule, "description": value.text, "default": value.default}


def without_default(schema):
    return {key: part for key, part in schema.items() if key != "default"}


def group_part(by_path, path):
    """What a group may set: a value, or a section with everything in it."""
    value = by_path[path]
    if not value.section:
        return without_default(schema_of_value(value))
    part = section_schema(value)
    part["properties"] = {child[-1]: group_part(by_path, child) for child in by_path if child[:-1] == path}
    return part


def group_schema(by_path):
    properties = {"name": GROUP_NAME}
    properties |= {key: group_part(by_path, path) for key, path in GROUP.items()}
    return {"type": "object", "additionalProperties": False, "required": ["name"], "properties": properties}


def section():
    return {"type": "object", "additionalProperties": False, "properties": {}}


def section_schema(value):
    return {**section(), **(value.rule or {}), "description": value.text}


def chart_schema(values):
    """The schema of the chart's own keys."""
    by_path = {value.path: value for value in values}
    root = section()
    for value in values:
        place = root
        for key in value.path[:-1]:
            place = place["properties"][key]
        part = section_schema(value) if value.section else schema_of_value(value)
        if part.get("items") == "group":
            part["items"] = group_schema(by_path)
        place["properties"][value.path[-1]] = part
    return root["properties"]


def lockstep_schema():
    program = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
    return json.loads(subprocess.run([program, "schema"], capture_output=True, check=True, text=True).stdout)


def with_fractions(schema):
    """A part of the program's schema in which numbers may also be texts: templates/_job.tpl converts them back."""
    if isinstance(schema, list):
        return [with_fractions(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: with_fractions(part) for key, part in schema.items()}
    return {**parts, "type": ["number", "string"], "pattern": FRACTION} if parts.get("type") == "number" else parts


def number_places(schema, path):
    """The paths of all numbers of the job that need not be whole, with * for a list item and for a key with any
    name."""
    if schema.get("type") == "number":
        yield ".".join(path)
    for choice in schema.get("oneOf", []):
        yield from number_places(choice, path)
    for key, part in (schema.get("properties", {}) | schema.get("else", {}).get("properties", {})).items():
        yield from number_places(part, (*path, key))
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            yield from number_places(part, (*path, "*"))


# What a parent chart may set. Only global.imageRegistry is used.
OF_PARENTS = {"enabled": {"type": "boolean"}, "tags": {"type": "object"}, "global": {"type": "object"}}


def schema_of(chart, properties):
    properties = {**OF_PARENTS, **properties}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"values of the chart {chart.name}", "type": "object",
            "additionalProperties": False, "properties": properties}


def values_schema(job, values):
    """The whole schema: the program's own for `job` and `sweep`, the chart's for the other root keys, on which both must agree."""
    chart = chart_schema(values)
    known = set(job["properties"]) - {"job", "sweep"}
    if known != set(chart):
        sys.exit(f"root keys: expected src/config/job_section.cpp and {CHART}/values.yaml to have the same, "
                 f"found only in one: {', '.join(sorted(known ^ set(chart)))}")
    return schema_of(CHART, {"job": with_fractions(job["properties"]["job"]), "sweep": job["properties"]["sweep"], **chart})


def parts_of(schema, name):
    """All parts of a schema with the key under which each stands."""
    if isinstance(schema, dict):
        yield schema, name
        for key, part in schema.items():
            yield from parts_of(part, name if key in ("oneOf", "properties", "items", "else") else key)
    elif isinstance(schema, list):
        for part in schema:
            yield from parts_of(part, name)


def with_references(schema):
    """The same with each large part that occurs several times written once."""
    texts = collections.Counter()
    names = {}
    for part, name in parts_of(schema, "values"):
        if ("type" in part or "oneOf" in part) and len(text := json.dumps(part)) > LEAST_SHARED:
            texts[text] += 1
            names.setdefault(text, name)
    shared = {}

    def shorten(part):
        text = json.dumps(part)
        if texts[text] < 2:
            return inside(part)
        if text not in shared:
            name, taken = names[text], {known for known, _ in shared.values()}
            while name in taken:
                name += "_"
            shared[text] = (name, None)  # keeps the name while what is inside takes others
            shared[text] = (name, inside(part))
        return {"$ref": f"#/definitions/{shared[text][0]}"}

    def inside(part):
        if isinstance(part, dict):
            return {key: shorten(value) for key, value in part.items()}
        return [shorten(value) for value in part] if isinstance(part, list) else part

    short = inside(schema)
    return {**short, "definitions": dict(sorted(shared.values()))} if shared else short


def as_text(schema):
    """JSON in which what fits into a line is one."""
    def lines(part, indent, before):
        whole = json.dumps(part)
        if len(indent) + len(before) + len(whole) <= WIDTH or not isinstance(part, (dict, list)) or not part:
            return [indent + before + whole]
        items = part.items() if isinstance(part, dict) else (("", value) for value in part)
        inner = []
        for key, value in items:
            inner += lines(value, indent + " ", f"{json.dumps(key)}: " if isinstance(part, dict) else "")
            inner[-1] += ","
        inner[-1] = inner[-1][:-1]
        open_, close = "{}" if isinstance(part, dict) else "[]"
        return [indent + before + open_, *inner, indent + close]

    return "\n".join(lines(with_references(schema), "", "")) + "\n"


def cell(text):
    return text.replace("|", "\\|")


def table(values):
    lines = ["| value | default | meaning |", "|---|---|---|"]
    for value in values:
        default = "" if value.section else f"`{json.dumps(value.default)}`"
        name = f"**`{value.name}`**" if value.section else f"`{value.name}`"
        words = (value.rule or {}).get("enum")
        # Not if the text already lists the words.
        choice = "" if not words or all(word in value.text for word in words) else f" One of {', '.join(words)}."
        lines.append(f"| {name} | {cell(default)} | {cell(value.text + choice)} |")
    return "\n".join(lines)


def main():
    values = chart_values.read(CHART / "values.yaml")
    others = {chart: chart_values.read(chart / "values.yaml") for chart in (TEAM, MONITORING)}
    job = lockstep_schema()
    numbers = sorted(set(number_places(job["properties"]["job"], ("job",))))
    again = "scripts/python.sh scripts/chart.py"
    keep_files({CHART / "values.schema.json": as_text(values_schema(job, values)),
                CHART / "files/numbers.txt": "\n".join(numbers) + "\n",
                **{chart / "values.schema.json": as_text(schema_of(chart, chart_schema(own))) for chart, own in others.items()}}, again)
    for chart, own in {CHART: values, **others}.items():
        keep_current(chart / "README.md", [("values", table(own))], again)


if __name__ == "__main__":
    main()
