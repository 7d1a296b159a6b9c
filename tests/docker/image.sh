#!/usr/bin/env bash
# Builds the image from this machine's own program, on a base made on the spot, and tells how to use it.
#
#   tests/docker/image.sh [ARCHIVE]    prints the words that run buildah on the store; ARCHIVE: the image for containerd
#
# The image is localhost/lockstep:test, in a store below build/images, where base and layers stay. No registry is asked;
# packages come from this machine's Debian mirror (DEBIAN_MIRROR names another). Exits 77 after a line that says what is
# missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$PWD/build/images
build=${LOCKSTEP_BUILD:-build/release}

skip() { echo "skipped: $*"; exit 77; }
say() { echo "image: $*" >&2; }

[ "$(id -u)" -eq 0 ] || skip "an image is built by root here"
for tool in buildah debootstrap cpack; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (scripts/install-dependencies.sh --k8s)"
done
unshare --mount true 2>/dev/null || skip "no right to mount here"
# shellcheck source=/dev/null
suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
# shellcheck disable=SC2016  # apt-get's own variable
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)}
[ -n "$mirror" ] || skip "this machine has no Debian mirror; name one with DEBIAN_MIRROR"

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9

# Without overlays every layer is a copy of those below it, which takes minutes.
overlays() {
  local at status=0
  at=$(mktemp -d "$folder/probe.XXXXXX")
  mkdir "$at"/{lower,upper,work,merged}
  unshare --mount mount -t overlay probe -o "lowerdir=$at/lower,upperdir=$at/upper,workdir=$at/work" "$at/merged" \
    2>/dev/null || status=1
  rm -rf "$at"
  return $status
}
driver=vfs
! overlays || driver=overlay
store=(buildah --root "$folder/$driver" --runroot "$folder/run-$driver" --storage-driver "$driver")
base=localhost/base:$suite

make_base() {
  local root
  root=$(mktemp -d "$folder/base.XXXXXX")
  say "making the base, Debian $suite from $mirror"
  # A mount namespace of its own: debootstrap leaves /proc mounted.
  unshare --mount --propagation private debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$folder/base.log" 2>&1 ||
    { tail "$folder/base.log" >&2; rm -rf --one-file-system "$root"; exit 1; }
  local container
  container=$("${store[@]}" from scratch)
  "${store[@]}" add -q "$container" "$root" / >&2
  "${store[@]}" commit -q "$container" "$base" >&2
  "${store[@]}" rm "$container" >&2
  rm -rf --one-file-system "$root"
}
"${store[@]}" inspect --type image "$base" >/dev/null 2>&1 || make_base

say "packing the program"
(cd "$build" && cpack -G TGZ >/dev/null)
mapfile -t package < <(ls -t "$build"/lockstep-*.tar.gz)
say "building the image"
"${store[@]}" bud -q --isolation chroot --pull-never --format docker --layers --tag localhost/lockstep:test \
  --build-arg BUILD_BASE="$base" --build-arg RUN_BASE="$base" --build-arg PACKAGE="${package[0]#"$PWD"/}" \
  --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" --file docker/Dockerfile . >&2
if [ $# -gt 0 ]; then
  rm -f "$1"
  "${store[@]}" push -q localhost/lockstep:test "docker-archive:$1:localhost/lockstep:test" >&2
fi
echo "${store[*]}"
