#!/usr/bin/env bash
# The same gradients reduced by 1, 2, 3 and 5 processes, on one host and on as many pretended hosts as ranks:
# one hash. Then a rank that never comes: the others say so and end the job with exit code 1.
set -uo pipefail
check=$LOCKSTEP_BUILD/bin/mpi_reduce_check
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1
run() { # RANKS HOSTS WHAT
  # shellcheck disable=SC2016
  timeout 120 mpirun --oversubscribe --bind-to none -n "$1" bash -c '
    rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}}
    case $1 in
      each) export LOCKSTEP_HOST_ID=h$rank ;;
      pairs) export LOCKSTEP_HOST_ID=h$((rank / 2)) ;;
    esac
    exec "$2" "$3"' run "$2" "$check" "$3"
}

failed=0
hashes=()
for ranks in 1 2 3 5; do
  for hosts in one each pairs; do
    [ "$ranks" -gt 1 ] || [ "$hosts" = one ] || continue
    if output=$(run "$ranks" "$hosts" reduce 2>&1); then
      hash=$(sed -n 's/^sha256 //p' <<<"$output")
      echo "ranks $ranks, hosts: $hosts: $hash"
      hashes+=("$hash")
    else
      echo "ranks $ranks, hosts: $hosts: failed"; echo "$output"; failed=1
    fi
  done
done
if [ "$(printf '%s\n' "${hashes[@]}" | sort -u | wc -l)" != 1 ] || [ -z "${hashes[0]}" ]; then
  echo "the hashes differ"; failed=1
fi

for hosts in one each; do
  output=$(run 2 "$hosts" missing 2>&1)
  status=$?
  wanted="waited 0.5 s for rank 1 (host .*) in 'reduce' of step 17: its partial sum of bucket 0 has not come"
  if [ $status != 1 ] || ! grep -q "$wanted" <<<"$output"; then
    echo "a missing rank, hosts: $hosts: exit $status, expected 1 and: $wanted"; echo "$output"; failed=1
  fi
done

# Memory of a reducer has no name; where the kernel knows no such files, it has one for a moment.
segments() { find /dev/shm -maxdepth 1 -type f -name 'lockstep-*' 2>/dev/null | sort; }
before=$(segments)
[ -z "$before" ] || sleep 3
left=$(comm -12 <(printf '%s\n' "$before") <(segments) | sed '/^$/d')
[ -z "$left" ] || { echo "left in /dev/shm: $left"; failed=1; }
exit $failed
