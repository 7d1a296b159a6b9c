#!/usr/bin/env bash
# Builds the image from this machine's own program, on a base made on the spot, and tells how to use it.
#
#   tests/docker/image.sh [--cuda] [ARCHIVE]    prints the words that run buildah on the store; ARCHIVE: the image for
#                                               containerd
#
# The image is localhost/lockstep:test, in a store below build/images, where base and layers stay. No registry is asked;
# packages come from this machine's Debian mirror (DEBIAN_MIRROR names another). --cuda: localhost/lockstep:cuda, with
# the CUDA module, on a base with the libraries of build/cuda-toolkit. PACKAGE: a tarball of the program, relative to the
# source tree, instead of this build's. Exits 77 after a line that says what is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$PWD/build/images
build=${LOCKSTEP_BUILD:-build/release}
kit=$PWD/build/cuda-toolkit
tag="test"
if [ "${1:-}" = --cuda ]; then tag=cuda; shift; fi

skip() { echo "skipped: $*"; exit 77; }
say() { echo "image: $*" >&2; }

[ "$(id -u)" -eq 0 ] || skip "an image is built by root here"
for tool in buildah debootstrap cpack; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (scripts/install-dependencies.sh --k8s)"
done
if [ "$tag" = cuda ]; then
  [ -f "$kit/stamp" ] || skip "there is no CUDA toolkit (scripts/cuda-toolkit.sh)"
  [ -n "${PACKAGE:-}" ] || [ -f "$build/bin/liblockstep_cuda.so" ] || skip "this build has no CUDA module"
fi
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
# What a base for GPUs has: the libraries of CUDA, cuDNN and NCCL, where the system looks for them.
make_cuda_base() {
  local container
  say "making the base with CUDA"
  container=$("${store[@]}" from --pull-never "$1")
  "${store[@]}" copy -q "$container" "$kit"/lib/lib{cudart,cublas,cudnn,nccl}*.so.* /usr/local/cuda/lib64/ >&2
  "${store[@]}" run --isolation chroot "$container" -- \
    sh -c 'echo /usr/local/cuda/lib64 >/etc/ld.so.conf.d/cuda.conf && ldconfig' >&2
  "${store[@]}" commit -q "$container" "$base" >&2
  "${store[@]}" rm "$container" >&2
}
made() { "${store[@]}" inspect --type image "$base" >/dev/null 2>&1; }
made || make_base
if [ "$tag" = cuda ]; then
  plain=$base base=localhost/base-cuda:$suite-$(cut -c1-12 "$kit/stamp")
  made || make_cuda_base "$plain"
fi

package=${PACKAGE:-}
if [ -z "$package" ]; then
  say "packing the program"
  (cd "$build" && cpack -G TGZ >/dev/null)
  mapfile -t packages < <(ls -t "$build"/lockstep-*.tar.gz)
  package=${packages[0]}
fi
say "building the image"
"${store[@]}" bud -q --isolation chroot --pull-never --format docker --layers --tag "localhost/lockstep:$tag" \
  --build-arg BUILD_BASE="$base" --build-arg RUN_BASE="$base" --build-arg PACKAGE="${package#"$PWD"/}" \
  --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" --file docker/Dockerfile . >&2
if [ $# -gt 0 ]; then
  # Others may read the archive that is there.
  rm -f "$1.new"
  "${store[@]}" push -q "localhost/lockstep:$tag" "docker-archive:$1.new:localhost/lockstep:$tag" >&2
  mv "$1.new" "$1"
fi
echo "${store[*]}"
