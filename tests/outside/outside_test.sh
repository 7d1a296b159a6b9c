#!/usr/bin/env bash
# Installs lockstep to a fresh prefix, moves that, builds examples/outside against it and runs each example.
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

for example in op loss metric model augmentation optimizer schedule balancer callbacks; do
  echo "$example"
  "$here/build/$example"
done
"$here/build/reader" examples/outside/points.txt

echo "plugin"
cmake -S examples/plugin -B "$here/plugin" -G Ninja -D CMAKE_PREFIX_PATH="$here/moved" >"$here/plugin.log" ||
  { cat "$here/plugin.log"; exit 1; }
cmake --build "$here/plugin"
"$here/moved/bin/lockstep" train examples/plugin/pendulum.yaml epochs=2 plugins="$here/plugin/libpendulum.so" \
  run_directory="$here/pendulum" checkpoint=never
"$here/build/trained_model" "$here"

# The same on one process and on two, and one message of an error, with its exit code.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1
two=(mpirun --oversubscribe --bind-to none -n 2 "$here/build/mpi")
alone=$("$here/build/mpi")
echo "mpi $alone"
[ "$("${two[@]}")" = "$alone" ]
code=0
"${two[@]}" steps=no 2>"$here/error.log" || code=$?
[ "$code" = 78 ]
message="mpi: rank 0 on host [^ ]*: command line: steps: expected an integer of at least 1, found 'no'"
[ "$(grep -cx "$message" "$here/error.log")" = 1 ] || { cat "$here/error.log"; exit 1; }

"$here/moved/bin/lockstep" checkpoint export "$here/run" "$here/exported.safetensors"
cmp "$here/exported.safetensors" "$here/digits.safetensors"
"$here/moved/bin/lockstep" version
grep -q _lockstep "$here/moved/share/bash-completion/completions/lockstep"
