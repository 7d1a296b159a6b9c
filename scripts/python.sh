#!/usr/bin/env bash
# Python with the packages of tests/requirements.txt: scripts/python.sh FILE.py ARGUMENTS...
# The environment is build/venv, made at the first call and whenever the list changes. Where it cannot be made
# (no network), exits 77, which the tests count as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
list=$PWD/tests/requirements.txt
venv=$PWD/build/venv
cd - >/dev/null

if ! cmp -s "$list" "$venv/requirements.txt"; then
  mkdir -p "$venv"
  exec 9>"$venv.lock"
  flock 9
  if ! cmp -s "$list" "$venv/requirements.txt"; then
    if ! { python3 -m venv --clear "$venv" &&
      "$venv/bin/pip" install -q --disable-pip-version-check --no-input -r "$list" </dev/null &&
      cp "$list" "$venv/requirements.txt"; } >&2; then
      echo "skipped: the Python packages of tests/requirements.txt could not be installed"
      exit 77
    fi
  fi
  exec 9>&-
fi
exec "$venv/bin/python" "$@"
