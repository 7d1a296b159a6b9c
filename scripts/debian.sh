#!/usr/bin/env bash
# The README's two commands on a fresh Debian 12 (g++ 12, Open MPI 4, oneDNN 2) or 13 (g++ 14, Open MPI 5, oneDNN 3),
# in a chroot below build/debian-RELEASE. The chroot and what was built in it are kept, so that only the first run
# takes long; delete the folder to see a first build again.
#
#   scripts/debian.sh 12|13            make run, make test
#   scripts/debian.sh 12|13 COMMAND    only that command, in the source tree there
#
# Needs root and debootstrap on a Debian machine; elsewhere exits 77 (skipped). Takes packages from the same
# mirror as this machine; DEBIAN_MIRROR names another. JOBS limits the compilers that run at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  12) suite=bookworm ;;
  13) suite=trixie ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 64 ;;
esac
name=debian-$1
chroot=$PWD/build/$name
shift

skip() { echo "skipped: $*"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "a chroot needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
# shellcheck disable=SC2016  # apt-get's own variable
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)}
[ -n "$mirror" ] || skip "this machine has no Debian mirror; name one with DEBIAN_MIRROR"
unshare --mount true 2>/dev/null || skip "no right to mount here"

if [ ! -f "$chroot/ready" ]; then
  rm -rf --one-file-system "$chroot"
  mkdir -p "$chroot"
  echo "$name: making the chroot from $mirror"
  debootstrap --variant=minbase "$suite" "$chroot" "$mirror" >"$chroot.log" 2>&1 || { tail "$chroot.log"; exit 1; }
  touch "$chroot/ready"
fi

# The tree as git sees it, with changes that are not committed; files that are gone leave, the build stays. Files are new
# (-m), or what changed before the last build there would be taken for built; ccache has the rest.
mkdir -p "$chroot/src"
find "$chroot/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - 2>/dev/null |
  tar -x -m -C "$chroot/src"
cp -L /etc/resolv.conf "$chroot/etc/resolv.conf"
# Whom this machine trusts, the chroot trusts: pip may have to go through a proxy with a certificate of its own. Under
# a name that the chroot's own ca-certificates do not write to.
trusted=/etc/ssl/trusted-by-host.crt
[ ! -f /etc/ssl/certs/ca-certificates.crt ] ||
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$chroot$trusted"

if [ $# -eq 0 ]; then
  # No more than what a user has after `git clone`; `time` shows what the first build takes.
  set -- apt-get install -y --no-install-recommends make '>/dev/null' '&&' time make run '&&' time make test
fi
export CHROOT=$chroot TRUSTED=$trusted
# A mount namespace of its own: whatever ends this script, no mount is left.
# shellcheck disable=SC2016  # expanded inside
exec nice unshare --mount --propagation private bash -c '
  set -e
  mount --bind "$CHROOT" "$CHROOT"
  mount -t proc proc "$CHROOT/proc"
  mount --rbind /sys "$CHROOT/sys"
  mount --rbind /dev "$CHROOT/dev"
  mount -t tmpfs tmpfs "$CHROOT/tmp"
  # A root of the namespace and not only of the process, since the tests make namespaces of their own below it.
  cd "$CHROOT"
  mkdir -p old-root
  pivot_root . old-root
  umount --lazy old-root
  exec chroot . /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    ${JOBS:+JOBS="$JOBS"} PIP_CERT="$TRUSTED" DEBIAN_FRONTEND=noninteractive bash -c "cd /src && $*"' "$name" "$@"
