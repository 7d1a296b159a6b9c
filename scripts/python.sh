#!/usr/bin/env bash
# Python with the packages of tests/requirements.txt: scripts/python.sh [--packages LIST] FILE.py ARGUMENTS...
# The environment is build/venv, made at the first call and whenever the list changes; with another LIST,
# tests/NAME/requirements.txt, it is build/venv-NAME. Where it cannot be made (no network), exits 77, which the tests
# count as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
list=tests/requirements.txt
venv=$PWD/build/venv
if [ "${1:-}" = --packages ]; then
  list=$2
  venv=$PWD/build/venv-$(basename "$(dirname "$2")")
  shift 2
fi
path=$PWD/$list
cd - >/dev/null

if ! cmp -s "$path" "$venv/requirements.txt"; then
  mkdir -p "$venv"
  exec 9>"$venv.lock"
  flock 9
  if ! cmp -s "$path" "$venv/requirements.txt"; then
    if ! { python3 -m venv --clear "$venv" &&
      "$venv/bin/pip" install -q --disable-pip-version-check --no-input -r "$path" </dev/null &&
      cp "$path" "$venv/requirements.txt"; } >&2; then
      echo "skipped: the Python packages of $list could not be installed"
      exit 77
    fi
  fi
  exec 9>&-
fi
exec "$venv/bin/python" "$@"
