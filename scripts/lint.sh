#!/usr/bin/env bash
# Everything that judges the sources without running them. Exits 1 if there is anything to mend.
# clang-tidy reads a file again only when something it depends on changed: the first run takes minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=build/lint  # every source is read by itself, so no unity build
failed=0

check() {
  local name=$1 start=$SECONDS
  shift
  printf '== %s\n' "$name"
  "$@" || failed=1
  printf '   %s: %d s\n' "$name" $((SECONDS - start))
}

prepare() {
  { [ -f "$build/build.ninja" ] || cmake --preset lint; } &&
    cmake --build "$build" --target generated/messages/tensorboard.pb.h generated/messages/onnx.pb.h \
      generated/build_id.cpp
} >/dev/null

check includes scripts/check_includes.py
check figures scripts/figures.py
check format scripts/format.sh --check
if command -v shellcheck >/dev/null; then
  check shellcheck bash -c 'git ls-files "*.sh" .ci/run | xargs shellcheck'
else
  echo "== shellcheck is not installed: left out"
fi
prepare || exit 1
if [ "${LOCKSTEP_UNITS:-}" = OFF ]; then
  echo "== units: left out"
else
  check units scripts/check_units.py "$build"
fi
check clang-tidy scripts/clang_tidy.py "$build"
exit $failed
