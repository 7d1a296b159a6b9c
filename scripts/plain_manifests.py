#!/usr/bin/env python3
"""Keeps k8s/*.yaml as the chart renders them: plain manifests for clusters without Helm.

    scripts/python.sh scripts/plain_manifests.py            rewrites them
    scripts/python.sh scripts/plain_manifests.py --check    changes nothing; exits 1 if one is not current

Helm is built from its Go module at the first call (tests/kubernetes/tools); without Go it exits 77.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/kubernetes"))
from kube_tools import CHART, template  # noqa: E402

RELEASE = "lockstep"
# A manifest, and the values file that it is rendered from.
MANIFESTS = {"digits": "digits", "gpus": "gpus", "groups": "groups", "elastic": "elastic", "mpijob": "mpijob"}
HEAD = """# {what}
# Rendered from the chart with ci/{values}-values.yaml by scripts/plain_manifests.py: change those, not this.
# Apply it in a namespace of your choice, after `kubectl create secret generic lockstep-ssh --from-file=key`: README.md.
"""


def first_comment(path):
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def render(values):
    """The manifest without the namespace, which is the reader's to choose, and without what only Helm has."""
    path = CHART / "ci" / f"{values}-values.yaml"
    text = template("--values", path, "--skip-tests", release=RELEASE).stdout
    lines = [line for line in text.splitlines()
             if line.strip() not in ("namespace: default", "app.kubernetes.io/managed-by: Helm")
             and not line.strip().startswith("helm.sh/chart:")]
    return HEAD.format(what=first_comment(path), values=values) + "\n".join(lines).strip() + "\n"


def main():
    stale = []
    for name, values in MANIFESTS.items():
        path, text = ROOT / "k8s" / f"{name}.yaml", render(values)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        sys.exit(f"not current: {', '.join(stale)}; run scripts/python.sh scripts/plain_manifests.py")


if __name__ == "__main__":
    main()
