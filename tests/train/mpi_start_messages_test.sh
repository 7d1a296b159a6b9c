#!/usr/bin/env bash
# The start of a training run between processes: messages a rank, by mpi_start_messages_check.
set -uo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
for ranks in 2 5 16; do
  timeout 300 mpirun --oversubscribe --bind-to none -n $ranks "$LOCKSTEP_BUILD/bin/mpi_start_messages_check" \
    "$folder/$ranks" || failed=1
done
exit $failed
