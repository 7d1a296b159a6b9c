#!/usr/bin/env bash
# docs/job-file.md is what `lockstep schema --markdown` prints.
set -euo pipefail
if ! "$LOCKSTEP" schema --markdown | diff -u docs/job-file.md - | head -40; then
  echo "docs/job-file.md is not current: run lockstep schema --markdown > docs/job-file.md"
  exit 1
fi
