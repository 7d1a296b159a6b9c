"""Compares the JSON Schema with a real validator: it must accept every good job and refuse every bad one whose rule a
schema can express.

    schema_verdicts.py (--program PROGRAM | --schema FILE) [--good FOLDER]... [--bad TABLE]...

PROGRAM schema prints the schema; PROGRAM canonical JOB, if there is such a command, prints a job with every default,
which the schema must accept too. A good folder holds *.yaml. A bad table is one of tests/bad: the validator must refuse
its jobs, but accept those that break a rule which no schema can express, or the table need not say so. Jobs that are bad
only because of their overrides are left out, and so are commands without a job.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bad"))
import table  # noqa: E402


class Loader(yaml.SafeLoader):
    """YAML 1.2's scalars, as lockstep reads them: PyYAML's own follow 1.1, in which `on` is a boolean."""


Loader.yaml_implicit_resolvers = {}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$"), list("tf"))
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(null|Null|NULL|~|)$"), ["n", "N", "~", ""])
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"),
    list("-+.0123456789"),
)
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node), 10))


def load(text):
    return yaml.load(text, Loader)


def schema_of(options):
    if options.schema:
        return json.loads(pathlib.Path(options.schema).read_text())
    return json.loads(subprocess.run([options.program, "schema"], check=True, capture_output=True, text=True).stdout)


def check_local(schema):
    references = re.findall(r'"\$ref": "([^"]*)"', json.dumps(schema))
    return [f"schema: remote $ref {r}" for r in references if not r.startswith("#")]


def check_good(validator, path, program):
    problems = [f"{path}: refused: {e.json_path}: {e.message}" for e in validator.iter_errors(load(path.read_text()))]
    if program:
        done = subprocess.run([program, "canonical", str(path)], capture_output=True, text=True)
        if done.returncode == 0:
            canonical = json.loads(done.stdout)
            problems += [f"{path}: canonical form refused: {e.json_path}: {e.message}" for e in validator.iter_errors(canonical)]
    return problems


def check_bad(validator, case):
    """A list of problems, and whether the schema refused the job; None if it was not asked."""
    try:
        accepted = validator.is_valid(load(case.files["job.yaml"]))
    except yaml.YAMLError:
        accepted = True  # not YAML at all: the schema does not apply
    if case.unsayable and not accepted:
        return [f"{case.name}: the schema refuses it; remove the line '% {case.unsayable}'"], None
    if not case.unsayable and accepted:
        return [f"{case.name}: the schema accepts it"], None
    return [], not accepted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("--schema")
    parser.add_argument("--good", action="append", default=[])
    parser.add_argument("--bad", action="append", default=[])
    options = parser.parse_args()
    schema = schema_of(options)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)

    problems = check_local(schema)
    good = [path for folder in options.good for path in sorted(pathlib.Path(folder).glob("*.yaml"))]
    for path in good:
        problems += check_good(validator, path, options.program)
    bad = [case for path in options.bad for case in table.read(path)
           if "job.yaml" in case.files and (case.code is not None or not case.arguments)]
    refused = 0
    for case in bad:
        found, was_refused = check_bad(validator, case)
        problems += found
        refused += bool(was_refused)
    if not good and not bad:
        problems.append("no jobs found")
    print("\n".join(problems))
    print(f"{len(good)} good jobs, {len(bad)} bad ones, {refused} of them refused by the schema")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
