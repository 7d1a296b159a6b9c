#!/usr/bin/env python3
"""Keeps the tables of ops in docs/layers.md and docs/losses-and-metrics.md in line with `lockstep schema`.

    scripts/ops_table.py            rewrites the tables in place
    scripts/ops_table.py --check    changes nothing; exits with 1 and shows what is not current

The program is $LOCKSTEP, or build/release/bin/lockstep by default. A table is between `<!-- NAME: begin ... -->` and
`<!-- NAME: end -->`, where NAME is `layers` or `losses`.
"""
import json
import os
import pathlib
import re
import subprocess

from page_tables import keep_current

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "job-file.md"
NOT_OPS = {"name", "inputs", "target", "block", "part", "output", "weight"}
NOT_ATTRIBUTES = {"inputs"}


def map_form(schema):
    """The alternative of a value's schema that is a map."""
    return next((form for form in schema.get("oneOf", []) if form.get("type") == "object"), schema)


def plain(schema):
    return {key: value for key, value in schema.items() if key not in ("description", "default")}


def short_form(schema, attributes):
    """The attribute that a bare value stands for, or None."""
    forms = [form for form in schema.get("oneOf", []) if form.get("type") != "object"]
    return next((name for form in forms for name, own in attributes.items() if plain(own) == form), None)


def default_text(schema):
    if "default" not in schema:
        return ""
    value = schema["default"]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return f" {value}" if isinstance(value, str) else f" {json.dumps(value)}"


def links(section):
    """Each key of a section of the reference, and the section that shows its settings: lstm and gru share one."""
    table = REFERENCE.read_text(encoding="utf-8").partition(f"\n## `{section}`\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"\[`(\w+)`\](\(#\w+\))", table))


def rows(ops, section):
    link = links(section)
    yield "|op|settings|what it does|"
    yield "|---|---|---|"
    for name, schema in sorted(ops.items()):
        form = map_form(schema)
        attributes = {key: value for key, value in form.get("properties", {}).items() if key not in NOT_ATTRIBUTES}
        required = form.get("required", [])
        short = short_form(schema, attributes)
        op = f"`{name}: {short.upper()}`" if short else f"`{name}`"
        settings = [f"**`{key}`**" for key in attributes if key in required]
        settings += [f"`{key}`{default_text(value)}" for key, value in attributes.items() if key not in required]
        link_to_op = f"[{op}]({REFERENCE.name}{link[name][1:]}" if attributes else op
        yield f"|{link_to_op}|{', '.join(settings)}|{schema['description']}|"


def tables(schema):
    """The page, the table's name and its text, of each."""
    job = schema["properties"]["job"]["else"]["properties"]  # without plugins
    layers = map_form(map_form(job["model"])["properties"]["layers"]["items"])["properties"]
    losses = map_form(job["loss"])["properties"]
    for page, name, ops, section in (("layers.md", "layers", layers, "job.model.layers[]"),
                                     ("losses-and-metrics.md", "losses", losses, "job.loss")):
        yield page, name, "\n".join(rows({op: own for op, own in ops.items() if op not in NOT_OPS}, section))


def main():
    program = os.environ.get("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
    schema = json.loads(subprocess.run([program, "schema"], capture_output=True, check=True).stdout)
    for page, name, table in tables(schema):
        keep_current(DOCS / page, [(name, table)], "scripts/ops_table.py")


if __name__ == "__main__":
    main()
