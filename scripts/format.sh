#!/usr/bin/env bash
# Formats all C++ sources in place; --check only says which lines differ and exits 1.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run -Werror)
find include src tests examples bench \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null |
  xargs -0 -r -n 40 clang-format "${mode[@]}"
