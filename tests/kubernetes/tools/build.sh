#!/usr/bin/env bash
# Builds the programs of Kubernetes that the tests need into a cache.
#
#   tests/kubernetes/tools/build.sh [TOOL...]     all tools without a name; prints the folder of the programs
#
# A tool is a folder with recipe.sh, which says in `packages` what it is made of and in `make` how that gets into $BIN. It
# is built again only when one of its files or its go.mod changes. All tools have the one go.mod of this folder, so that
# what they share, above all Kubernetes' libraries, is compiled once; a tool that is too old for it has its own.
# The cache is $LOCKSTEP_KUBE_TOOLS, else build/kubernetes-tools; modules come from $GOPROXY.
# Exits 77 where there is no Go, or no modules, after a line that says so: the tests count it as skipped.
set -euo pipefail
tools=$(cd "$(dirname "$0")" && pwd)
cache=${LOCKSTEP_KUBE_TOOLS:-$(cd "$tools/../../.." && pwd)/build/kubernetes-tools}
export BIN=$cache/bin CGO_ENABLED=0 GOTOOLCHAIN=local
# Programs without symbols need no DWARF, and a compiler that collects less garbage takes less time: a tenth, together.
export GOFLAGS="-p=2 -trimpath -buildvcs=false -gcflags=all=-dwarf=false" GOGC=400

skip() { echo "skipped: $*"; exit 77; }

# folder MODULE: where the source of a module lies.
folder() { go list -m -f '{{.Dir}}' "$1"; }

# program NAME PACKAGE [OPTION...]: builds $BIN/NAME.
program() { go build -o "$BIN/$1" -ldflags "-s -w" "${@:3}" "$2"; }

# files NAME MODULE FOLDER...: folders of a module as $cache/NAME.
files() {
  local name=$1 from
  from=$(folder "$2")
  rm -rf "$cache/${name:?}"
  mkdir -p "$cache/$name"
  shift 2
  cp -r --no-preserve=mode "${@/#/$from/}" "$cache/$name/"
}

# patched MODULE FILE SED: builds what follows with this edit of a module, which must change something.
patched() {
  local copy=$work/${1//\//-}
  [ -d "$copy" ] || cp -r --no-preserve=mode "$(folder "$1")" "$copy"
  sed -i -E "$3" "$copy/$2"
  ! cmp -s "$copy/$2" "$(folder "$1")/$2" || { echo "build.sh: '$3' changes nothing in $2 of $1" >&2; exit 1; }
  [ -f "$work/go.mod" ] || cp "$modules/go.mod" "$modules/go.sum" "$work/"
  patches+=(-replace "$1=$copy")
}

# with_patches: the edits of `patched` hold from here on.
with_patches() {
  go mod edit "${patches[@]}" "$work/go.mod"
  export GOFLAGS="$GOFLAGS -modfile=$work/go.mod"
}

build() {
  local tool=$1 key modules=$tools packages=() patches=()
  [ ! -f "$tools/$tool/go.mod" ] || modules=$tools/$tool
  key=$(cat <(cd "$tools/$tool" && find . -type f -print0 | sort -z | xargs -0 sha256sum) "$modules"/go.{mod,sum} |
    sha256sum | cut -c1-16)
  [ ! -f "$cache/.$tool-$key" ] || return 0
  command -v go >/dev/null || skip "there is no Go to build $tool with"
  exec 9>"$cache/$tool.lock"
  flock 9
  [ ! -f "$cache/.$tool-$key" ] || return 0
  cd "$tools/$tool"
  # shellcheck source=/dev/null
  . ./recipe.sh
  # Too old a Go says so here, too.
  [ ${#packages[@]} -eq 0 ] || go list -deps "${packages[@]}" >/dev/null ||
    skip "the Go modules of $tool could not be had with $(go env GOVERSION)"
  echo "building $tool of Kubernetes' tools into $BIN" >&2
  work=$(mktemp -d)  # not local: the trap still knows it
  trap 'rm -rf "$work"' EXIT
  renice -n 10 -p $BASHPID >/dev/null
  make >&2
  touch "$cache/.$tool-$key"
}

mkdir -p "$BIN"
if [ $# -eq 0 ]; then
  recipes=("$tools"/*/recipe.sh)
  recipes=("${recipes[@]%/recipe.sh}")
  set -- "${recipes[@]##*/}"
fi
for tool; do
  [ -f "$tools/$tool/recipe.sh" ] || { echo "build.sh: no tool '$tool' in $tools" >&2; exit 64; }
  (build "$tool")
done
echo "$BIN"
