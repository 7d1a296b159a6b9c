#!/usr/bin/env bash
# Trains a small residual net by `lockstep launch` on three emulated hosts while N faults happen to it, drawn from SEED,
# and compares the parameters with those of a quiet run.
#
#   scripts/chaos.sh [--set KEY=VALUE ...] [SEED [N]]      default: seed 1, 46 faults
#
# --set changes the job of the disturbed training, not of the quiet one: what must not change the bits.
#
# A fault counts only if its effect was seen. Exit codes: 0, the bits are the same, and of each of the fifteen kinds at
# least three faults hit a busy moment; 1, they are not, or too few did; 77, this machine cannot do it (root, network
# namespaces, Open MPI 4). Nothing is left running or mounted, however it ends: all of it lives in namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 scripts/chaos "$@"
