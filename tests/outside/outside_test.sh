#!/usr/bin/env bash
# Installs lockstep to a fresh prefix, moves that, builds examples/outside against it and runs it.
set -euo pipefail
here=${LOCKSTEP_BUILD:?}/outside
root=$PWD
rm -rf "$here"
cmake --install "$LOCKSTEP_BUILD" --prefix "$here/first" >/dev/null
mv "$here/first" "$here/moved"  # the package must not know where it was installed first

cmake -S examples/outside -B "$here/build" -G Ninja -D CMAKE_BUILD_TYPE=Release \
  -D CMAKE_PREFIX_PATH="$here/moved" >"$here/configure.log" || { cat "$here/configure.log"; exit 1; }
cmake --build "$here/build"
if grep -rl "$root" "$here/moved"/lib/cmake; then
  echo "the installed package names the source tree"
  exit 1
fi
"$here/build/spirals" examples/outside/points.txt
"$here/build/salted_digits"
"$here/build/lion_digits"
"$here/build/hinge_digits"
"$here/moved/bin/lockstep" version
grep -q _lockstep "$here/moved/share/bash-completion/completions/lockstep"
