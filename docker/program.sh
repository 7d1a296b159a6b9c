#!/usr/bin/env bash
# program.sh FOLDER: the installed program below FOLDER, from $PACKAGE, or built from this source tree. Run by the
# Dockerfile; $CUDA is OFF or ON.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
mkdir -p "$folder"
if [ -n "${PACKAGE:-}" ]; then
  tar -xzf "$PACKAGE" -C "$folder" --strip-components=1
else
  # install-dependencies needs dpkg only; the rest it installs.
  scripts/install-dependencies.sh --build
  cmake --preset release -D LOCKSTEP_TESTS=OFF -D LOCKSTEP_CUDA="${CUDA:-OFF}"
  cmake --build build/release --target lockstep
  cmake --install build/release --prefix "$folder" --strip
fi
# What compiles against lockstep is not for the image.
rm -rf "$folder/include" "$folder"/lib/*.a "$folder"/lib/*/*.a "$folder"/lib/cmake "$folder"/lib/*/cmake
