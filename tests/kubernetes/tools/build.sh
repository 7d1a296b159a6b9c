#!/usr/bin/env bash
# Builds the programs of Kubernetes that the tests need, from the Go modules beside this script, into a cache.
#
#   tests/kubernetes/tools/build.sh [MODULE...]     all modules without a name; prints the folder of the programs
#
# A module is a folder with go.mod, go.sum and recipe.sh, which builds into $BIN. It is built again only when one of
# these changes. What two modules need compiles once where both name the same versions: jobset and trainer those of kueue,
# mpi-operator those of kubernetes. The cache is $LOCKSTEP_KUBE_TOOLS, else build/kubernetes-tools; modules come from
# $GOPROXY.
# Exits 77 where there is no Go, or no modules, after a line that says so: the tests count it as skipped.
set -euo pipefail
tools=$(cd "$(dirname "$0")" && pwd)
cache=${LOCKSTEP_KUBE_TOOLS:-$(cd "$tools/../../.." && pwd)/build/kubernetes-tools}
export BIN=$cache/bin CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-p=2 -trimpath -buildvcs=false"

skip() { echo "skipped: $*"; exit 77; }

build() {
  local module=$1 key
  key=$(cd "$tools/$module" && find . -type f ! -name '*.md' -print0 | sort -z | xargs -0 sha256sum | sha256sum |
    cut -c1-16)
  [ ! -f "$cache/.$module-$key" ] || return 0
  command -v go >/dev/null || skip "there is no Go to build $module with"
  exec 9>"$cache/$module.lock"
  flock 9
  [ ! -f "$cache/.$module-$key" ] || return 0
  cd "$tools/$module"
  # Too old a Go says so here, too.
  go mod download >&2 || skip "the Go modules of $module could not be downloaded with $(go env GOVERSION)"
  echo "building $module of Kubernetes' tools into $BIN" >&2
  nice bash -euo pipefail recipe.sh >&2
  touch "$cache/.$module-$key"
}

mkdir -p "$BIN"
if [ $# -eq 0 ]; then
  modules=("$tools"/*/go.mod)
  modules=("${modules[@]%/go.mod}")
  set -- "${modules[@]##*/}"
fi
for module; do
  [ -f "$tools/$module/go.mod" ] || { echo "build.sh: no module '$module' in $tools" >&2; exit 64; }
  (build "$module")
done
echo "$BIN"
