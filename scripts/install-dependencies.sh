#!/usr/bin/env bash
# Installs the Debian packages that lockstep needs. Asks for nothing; does nothing where all are there.
# Debian 12 and 13; Ubuntu 24.04 has the same names and is expected to work, but is not tested.
#
#   scripts/install-dependencies.sh [--build] [--test] [--long] [--k8s] [--lint]
#
# --build (the default) compiles and runs lockstep, --test adds what the tests need, --long what the long ones need
# besides, --k8s what those of Kubernetes need, --lint what `make lint` needs.
set -euo pipefail
export LC_ALL=C

build=(g++ cmake ninja-build pkg-config make git ccache
  libopenmpi-dev openmpi-bin libdnnl-dev libyaml-cpp-dev libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev
  libssl-dev libjpeg-dev libpng-dev libarchive-dev libcurl4-openssl-dev zlib1g-dev prometheus-cpp-dev)
test=(python3 python3-venv iproute2 openssh-client)
# These packages start daemons that serve the network, so they are left to the user where services are run; the tests
# that want them are then skipped.
[ -d /run/systemd/system ] || test+=(openssh-server prometheus)
long=(debootstrap)
k8s=(openssl)
lint=(clang-format clang-tidy libomp-dev shellcheck python3)  # clang needs an omp.h of its own

die() { echo "install-dependencies: $*" >&2; exit 1; }

wanted=()
for option in "${@:---build}"; do
  case $option in
    --build) wanted+=("${build[@]}") ;;
    --test) wanted+=("${build[@]}" "${test[@]}") ;;
    --long) wanted+=("${build[@]}" "${test[@]}" "${long[@]}") ;;
    --k8s) wanted+=("${build[@]}" "${test[@]}" "${k8s[@]}") ;;
    --lint) wanted+=("${build[@]}" "${lint[@]}") ;;
    -h|--help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown option '$option'; expected --build, --test, --long, --k8s or --lint" ;;
  esac
done

command -v dpkg-query >/dev/null || die "needs Debian or Ubuntu; elsewhere install: ${wanted[*]}"
# Installed packages, and names that an installed package provides (libjpeg-dev may be one).
have=$(dpkg-query -W -f='${db:Status-Abbrev}|${Package}, ${Provides}\n' |
  sed -n 's/^ii *|//p' | tr ',' '\n' | sed 's/(.*//; s/[[:space:]]//g' | sort -u)
missing=$(printf '%s\n' "${wanted[@]}" | sort -u | comm -23 - <(printf '%s\n' "$have"))
[ -n "$missing" ] || exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    die "these packages are missing and need root (run this script as root, or with sudo): ${missing//$'\n'/ }"
  fi
  run=(sudo -n)
fi
echo "install-dependencies: installing ${missing//$'\n'/ }" >&2
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
"${run[@]}" "${apt[@]}" update </dev/null >/dev/null
# shellcheck disable=SC2086  # one word a package
"${run[@]}" "${apt[@]}" install --no-install-recommends $missing </dev/null >/dev/null
