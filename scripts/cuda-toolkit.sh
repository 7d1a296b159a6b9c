#!/usr/bin/env bash
# Assembles a CUDA toolkit in build/cuda-toolkit from NVIDIA's Python wheels (scripts/cuda-toolkit.txt): nvcc, NVRTC,
# cudart, cuBLAS, cuDNN with its frontend's headers, NCCL, CUPTI, NVTX, nvml.h, cuobjdump, compute-sanitizer. No root, no
# GPU, no change of the system. Enough to compile, link and run lockstep's CUDA module; a driver is all that a machine
# with GPUs adds.
#
#   scripts/cuda-toolkit.sh           makes it where it is missing or of other pins; else does nothing
#   scripts/cuda-toolkit.sh --check   says whether it is there and current (exit 0), and fetches nothing
#
# Exits 1 with a message where it cannot be made: no network, no room (4 GB while it works, 2 GB afterwards).
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
pins=$PWD/scripts/cuda-toolkit.txt
kit=$PWD/build/cuda-toolkit
needed_mib=4000

die() { echo "cuda-toolkit: $*" >&2; exit 1; }

stamp=$(cat scripts/cuda-toolkit.sh "$pins" | sha256sum | cut -d ' ' -f 1)
current() { [ "$(cat "$kit/stamp" 2>/dev/null)" = "$stamp" ]; }

case ${1:-} in
  '') ;;
  --check)
    current || die "build/cuda-toolkit is missing or of other versions; scripts/cuda-toolkit.sh makes it"
    exit 0 ;;
  *) sed -n '2,10s/^# \{0,1\}//p' scripts/cuda-toolkit.sh; exit 64 ;;
esac
if current; then exit 0; fi

# One at a time; whoever waited finds the work done. The work folder is on the target's disk, so that moves are renames.
mkdir -p build
exec 9>build/cuda-toolkit.lock
flock 9
if current; then exit 0; fi
[ "$(uname -sm)" = "Linux x86_64" ] || die "the pinned wheels are for Linux on x86_64, this is $(uname -sm)"
free_mib=$(df --output=avail -B 1M build | tail -n 1)
[ "$free_mib" -ge "$needed_mib" ] ||
  die "expected $needed_mib MiB free for $PWD/build, found $free_mib; make room, or link build to a larger disk"
work=$(mktemp -d "$PWD/build/cuda-toolkit.XXXXXX")
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv" >"$work/log" 2>&1 ||
  die "python3 -m venv failed; scripts/install-dependencies.sh --test installs it: $(head -n 3 "$work/log")"
echo "cuda-toolkit: fetching 1.2 GB of wheels" >&2
mkdir "$work/tmp"
# The wheels are binaries for any Python, save the frontend's, of which only the headers are wanted: naming one
# version of Python, whatever runs here, takes the same files everywhere. Their tags name many a version of glibc.
mapfile -t platforms < <(printf -- '--platform=manylinux_2_%d_x86_64\n' {17..28})
TMPDIR=$work/tmp "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-input --no-cache-dir \
  --no-compile --no-deps --require-hashes --only-binary :all: --implementation cp --python-version 3.12 \
  "${platforms[@]}" --platform manylinux2014_x86_64 --target "$work/site" --requirement "$pins" \
  </dev/null >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  die "the wheels could not be fetched; see above. A network, or a mirror in pip's settings (pip config), is needed"
}

# One tree with the names that compilers and linkers look for.
site=$work/site
tree=$site/nvidia/cu13
for part in cudnn nccl; do
  cp -al "$site/nvidia/$part/." "$tree/"
done
cp -al "$site/include/." "$tree/include/"
find "$tree" \( -name '*.alt.so.*' -o -name __pycache__ \) -prune -exec rm -rf {} +
for library in "$tree"/lib/*.so.*; do
  plain=${library%%.so.*}.so
  [ -e "$plain" ] || ln -s "$(basename "$library")" "$plain"
done
ln -s lib "$tree/lib64"
chmod +x "$tree"/bin/* "$tree"/nvvm/bin/*
"$tree/bin/nvcc" --version >/dev/null || die "the assembled nvcc does not run here; see above"

echo "$stamp" >"$tree/stamp"
if [ -e "$kit" ]; then mv "$kit" "$work/old"; fi
mv "$tree" "$kit"
echo "cuda-toolkit: $("$kit/bin/nvcc" --version | sed -n 's/^Cuda compilation tools, //p') in build/cuda-toolkit" >&2
