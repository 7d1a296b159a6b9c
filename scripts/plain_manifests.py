#!/usr/bin/env python3
"""Keeps what the charts render from each values file of their ci/ current: plain manifests for clusters without Helm in
k8s/, the others in tests/kubernetes/golden.

    scripts/python.sh scripts/plain_manifests.py            rewrites them
    scripts/python.sh scripts/plain_manifests.py --check    changes nothing; exits with 1 if one is not current

Helm is built from its Go module on the first call (tests/kubernetes/tools); without Go it exits with 77.
"""
import pathlib
import re
import sys

from current import keep_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/kubernetes"))
from kube_tools import CHART, MONITORING, TEAM, sets, template  # noqa: E402

RELEASE = "lockstep"
# Values files whose manifests are useful by themselves; the others are kept to show what a change of the chart changes.
PLAIN = ("digits", "gpus", "groups", "parts", "elastic", "mpijob")
LEFT_OUT = re.compile("/templates/(tests/|dashboards.yaml)")  # only Helm has tests; dashboards are long, and files
HEAD = """# {what}
# Rendered from the chart with ci/{values}-values.yaml by scripts/plain_manifests.py: change those, not this.
"""
FIRST = """# Apply it in a namespace of your choice, after `kubectl create secret generic lockstep-ssh --from-file=key`: README.md.
"""


def name_of(path):
    return path.name.removesuffix("-values.yaml")


def first_comment(path):
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def render(path):
    """The manifest without the namespace, which the reader chooses, and without what is specific to Helm."""
    values, chart = name_of(path), path.parents[1]
    # A namespace that is not known is not in the run directory either.
    own = sets(f"persistence.directory={RELEASE}") if values in PLAIN else []
    documents = template("--values", path, *own, release=RELEASE, chart=chart).stdout.split("---\n")
    text = "---\n".join(document for document in documents if not LEFT_OUT.search(document.partition("\n")[0]))
    lines = [line for line in text.splitlines()
             if line.strip() not in ("namespace: default", "app.kubernetes.io/managed-by: Helm")
             and not line.strip().startswith("helm.sh/chart:")]
    head = HEAD.format(what=first_comment(path), values=values) + (FIRST if chart == CHART else "")
    return head + "\n".join(lines).strip() + "\n"


def main():
    files = {}
    for path in sorted(path for chart in (CHART, TEAM, MONITORING) for path in (chart / "ci").glob("*-values.yaml")):
        folder = ROOT / ("k8s" if name_of(path) in PLAIN else "tests/kubernetes/golden")
        files[folder / f"{name_of(path)}.yaml"] = render(path)
    keep_files(files, "scripts/python.sh scripts/plain_manifests.py")


if __name__ == "__main__":
    main()
