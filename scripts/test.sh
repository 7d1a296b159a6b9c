#!/usr/bin/env bash
# Builds and runs the tests, layer by layer, and prints the time of each.
#
#   scripts/test.sh          all but the long ones: unit tests of each room, scripts, an outside program
#   scripts/test.sh --long   only the long ones
#   scripts/test.sh --charts only those of the chart, with the real Helm
#   scripts/test.sh --k8s    those, Kubernetes itself, and what of the first is about clusters
#   scripts/test.sh --slurm  only those of Slurm, with a real one
#
# Exits 1 if a test fails. Tests that were skipped are counted and named.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
preset=${LOCKSTEP_PRESET:-release}
build=build/$preset
jobs=${JOBS:-$(nproc)}
reports=$build/reports
times=()
failed=0

# layer NAME COMMAND...: runs it and keeps its time.
layer() {
  local name=$1 start=$SECONDS status=ok
  shift
  printf '\n== %s\n' "$name"
  "$@" || { status=FAILED; failed=1; }
  times+=("$(printf '%-10s %5d s  %s' "$name" $((SECONDS - start)) "$status")")
  [ "$status" = ok ]
}

# The CUDA module is built where its toolkit can be had; without it, its tests are skipped, and named.
toolkit() {
  [ "${LOCKSTEP_CUDA:-}" = OFF ] || scripts/cuda-toolkit.sh ||
    echo "no CUDA toolkit, so no CUDA module (LOCKSTEP_CUDA=OFF does not look for one)"
}

# CMake looks for a toolkit when it runs.
configured() {
  [ -f "$build/build.ninja" ] && ! [ build/cuda-toolkit/stamp -nt "$build/build.ninja" ]
}

build_target() {
  { configured || cmake --preset "$preset" ${LOCKSTEP_CUDA:+-D LOCKSTEP_CUDA="$LOCKSTEP_CUDA"}; } &&
    cmake --build "$build" -j "$jobs" --target "$target"
}

# tests NAME JOBS CTEST-FILTER...: one run of ctest, with a report.
tests() {
  local name=$1 parallel=$2
  shift 2
  ctest --test-dir "$build" -j "$parallel" --output-on-failure --no-tests=ignore \
    --output-junit "$PWD/$reports/$name.xml" "$@" | grep -vE '^ *[0-9]+/[0-9]+ Test .* Passed|^ *Start +[0-9]+:'
}

target=all
if [ "${1:-}" = --long ]; then
  layers=(long)
elif [ "${1:-}" = --k8s ]; then
  layers=(charts kubernetes)
  target=cluster_test_programs
elif [ "${1:-}" = --slurm ]; then
  layers=(slurm)
  target=cluster_test_programs
elif [ "${1:-}" = --charts ]; then
  layers=(charts)
  target=cluster_test_programs
elif [ $# -eq 0 ]; then
  layers=(units script outside)
else
  sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 64
fi

layer toolkit toolkit
if layer build build_target; then
  rm -rf "$reports"
  mkdir -p "$reports"
  for name in "${layers[@]}"; do
    case $name in
      units) layer units tests units "$jobs" -LE '^(script|outside|long|charts|kubernetes|slurm)$' ;;
      script | outside) layer "$name" tests "$name" "$jobs" -L "^$name\$" ;;
      kubernetes) layer "$name" tests "$name" 4 -L "^($name|of-clusters)\$" ;;  # which wait most of their time
      *) layer "$name" tests "$name" 1 -L "^$name\$" ;;
    esac
  done
fi

printf '\n== summary\n'
printf '%s\n' "${times[@]}"
[ ! -d "$reports" ] || python3 scripts/test_summary.py "$reports" || failed=1
exit $failed
