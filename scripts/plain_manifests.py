#!/usr/bin/env python3
"""Keeps what the chart renders from each values file of ci/: plain manifests for clusters without Helm in k8s/, the
others in tests/kubernetes/golden.

    scripts/python.sh scripts/plain_manifests.py            rewrites them
    scripts/python.sh scripts/plain_manifests.py --check    changes nothing; exits 1 if one is not current

Helm is built from its Go module at the first call (tests/kubernetes/tools); without Go it exits 77.
"""
import pathlib
import re
import sys

from current import keep_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/kubernetes"))
from kube_tools import CHART, sets, template  # noqa: E402

RELEASE = "lockstep"
# Values files whose render is of use by itself; the others' are kept to show what a change of the chart changes.
PLAIN = ("digits", "gpus", "groups", "parts", "elastic", "mpijob")
LEFT_OUT = re.compile("/templates/(tests/|dashboards.yaml)")  # only Helm has tests; dashboards are long and files already
HEAD = """# {what}
# Rendered from the chart with ci/{values}-values.yaml by scripts/plain_manifests.py: change those, not this.
# Apply it in a namespace of your choice, after `kubectl create secret generic lockstep-ssh --from-file=key`: README.md.
"""


def first_comment(path):
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def render(values):
    """The manifest without the namespace, which is the reader's to choose, and without what only Helm has."""
    path = CHART / "ci" / f"{values}-values.yaml"
    # A namespace that is not known is not in the run directory either.
    own = sets(f"persistence.directory={RELEASE}") if values in PLAIN else []
    documents = template("--values", path, *own, release=RELEASE).stdout.split("---\n")
    text = "---\n".join(document for document in documents if not LEFT_OUT.search(document.partition("\n")[0]))
    lines = [line for line in text.splitlines()
             if line.strip() not in ("namespace: default", "app.kubernetes.io/managed-by: Helm")
             and not line.strip().startswith("helm.sh/chart:")]
    return HEAD.format(what=first_comment(path), values=values) + "\n".join(lines).strip() + "\n"


def main():
    files = {}
    for values in sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")):
        folder = ROOT / ("k8s" if values in PLAIN else "tests/kubernetes/golden")
        files[folder / f"{values}.yaml"] = render(values)
    keep_files(files, "scripts/python.sh scripts/plain_manifests.py")


if __name__ == "__main__":
    main()
