#!/usr/bin/env bash
# Trains one job on several numbers of ranks and threads and compares the parameters' hashes.
#
#   scripts/same-bits.sh [--quick] [JOB]      default job: examples/same-bits.yaml
#
# All runs must give one hash; the controls (all-reduce instead of the tree; another tree) must give others, or the
# comparison proves nothing. A run that is stopped at an odd step and resumed at another size must agree, too.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 scripts/same_bits.py "$@"
