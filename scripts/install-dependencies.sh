#!/usr/bin/env bash
# Installs the Debian packages that lockstep needs. Asks for nothing; does nothing where all are there.
# Debian 12 and 13; Ubuntu 24.04 has the same names and is expected to work, but is not tested.
#
#   scripts/install-dependencies.sh [--build] [--run] [--test] [--portable] [--long] [--k8s] [--slurm] [--fuzz] [--lint] [--docs]
#
# --build (the default) compiles and runs lockstep, --run only runs one that is built, with Open MPI and sshd, --test
# adds what the tests need, --portable what `make portable` needs, --long what the long ones need besides, --k8s what
# `make test-k8s` needs, --slurm what `make test-slurm` needs, --fuzz what `make fuzz` needs, --lint what `make lint` needs,
# --docs what `make docs` needs.
set -euo pipefail
export LC_ALL=C

build=(g++ cmake ninja-build pkg-config make git ccache
  libopenmpi-dev openmpi-bin libdnnl-dev libyaml-cpp-dev libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev
  libssl-dev libjpeg-dev libpng-dev libarchive-dev libcurl4-openssl-dev libpugixml-dev libpcre2-dev libicu-dev zlib1g-dev
  libsnappy-dev prometheus-cpp-dev libprotobuf-dev protobuf-compiler)
portable=(python3 patchelf)
test=(python3 python3-venv iproute2 openssh-client patchelf)
# These packages start daemons that serve the network, so they are left to the user where services are run; the tests
# that want them are then skipped.
[ -d /run/systemd/system ] || test+=(openssh-server prometheus)
long=(debootstrap)
k8s=(openssl buildah debootstrap containerd runc containernetworking-plugins busybox-static iproute2 iptables openssh-client zstd)
# Installing slurm-wlm and munge starts their daemons; where services are run, they are left to the user.
slurm=(iproute2)
[ -d /run/systemd/system ] || slurm+=(slurm-wlm munge slurmdbd mariadb-server-core mariadb-client-core)
fuzz=(clang libclang-rt-dev libomp-dev python3)  # libFuzzer and the sanitizers; an omp.h of clang's own
lint=(clang-format clang-tidy libomp-dev shellcheck python3)  # clang needs an omp.h of its own
docs=(mkdocs python3)

die() { echo "install-dependencies: $*" >&2; exit 1; }

run=()
[ "$(id -u)" -eq 0 ] || run=(sudo -n)
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
update() { "${run[@]}" "${apt[@]}" update </dev/null >/dev/null; }

depends_of() {
  apt-cache depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" |
    sed -n 's/^ *|\{0,1\}Depends: \(lib[^ ]*\|zlib1g\)$/\1/p'
}

# The libraries behind the -dev packages, whose names differ with the release. libjpeg-dev is one package further away.
libraries() {
  local dev found jpeg
  mapfile -t dev < <(printf '%s\n' "${build[@]}" | grep -e '-dev$')
  mapfile -t found < <(depends_of "${dev[@]}")
  mapfile -t jpeg < <(printf '%s\n' "${found[@]}" | grep '^libjpeg.*-dev$')
  { printf '%s\n' "${found[@]}"; depends_of "${jpeg[@]}"; } | grep -v -e '-dev$' -e '^libjs-' | sort -u
}

wanted=()
for option in "${@:---build}"; do
  case $option in
    --build) wanted+=("${build[@]}") ;;
    --run)
      [ -n "$(depends_of libfmt-dev)" ] || update  # a bare image knows no packages
      mapfile -t found < <(libraries)
      # libcurl asks an object store for a certificate, and only recommends who may have signed it.
      wanted+=(openmpi-bin openssh-server openssh-client ca-certificates "${found[@]}")
      ;;
    --test) wanted+=("${build[@]}" "${test[@]}") ;;
    --portable) wanted+=("${build[@]}" "${portable[@]}") ;;
    --long) wanted+=("${build[@]}" "${test[@]}" "${long[@]}") ;;
    --k8s) wanted+=("${build[@]}" "${test[@]}" "${k8s[@]}") ;;
    --slurm) wanted+=("${build[@]}" "${test[@]}" "${slurm[@]}") ;;
    --fuzz) wanted+=("${build[@]}" "${fuzz[@]}") ;;
    --lint) wanted+=("${build[@]}" "${lint[@]}") ;;
    --docs) wanted+=("${docs[@]}") ;;
    -h|--help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown option '$option'; expected --build, --run, --test, --portable, --long, --k8s, --slurm, --fuzz, --lint or --docs" ;;
  esac
done

command -v dpkg-query >/dev/null || die "needs Debian or Ubuntu; elsewhere install: ${wanted[*]}"
# Installed packages, and names that an installed package provides (libjpeg-dev may be one).
have=$(dpkg-query -W -f='${db:Status-Abbrev}|${Package}, ${Provides}\n' |
  sed -n 's/^ii *|//p' | tr ',' '\n' | sed 's/(.*//; s/[[:space:]]//g' | sort -u)
missing=$(printf '%s\n' "${wanted[@]}" | sort -u | comm -23 - <(printf '%s\n' "$have"))
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
  die "these packages are missing and need root (run this script as root, or with sudo): ${missing//$'\n'/ }"
fi
echo "install-dependencies: installing ${missing//$'\n'/ }" >&2
update
# shellcheck disable=SC2086  # one word a package
"${run[@]}" "${apt[@]}" install --no-install-recommends $missing </dev/null >/dev/null
