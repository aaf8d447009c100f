#!/bin/sh
# Runs a command, .ci/run if none is given, in a copy of this checkout on a Debian that has Node and npm and nothing else.
# Needs root and debootstrap. Leaves nothing, unless MODEKEEP_BARE_ROOT names a directory to keep the Debian in.
set -eu
cd "$(dirname "$0")/../.."

if [ "${MODEKEEP_BARE_PLACE:-}" = "" ]; then
  if [ "$(id -u)" != 0 ]; then echo 'test:bare: needs root' >&2; exit 1; fi
  command -v debootstrap >/dev/null || { echo 'test:bare: needs debootstrap: apt-get install debootstrap' >&2; exit 1; }
  place=${MODEKEEP_BARE_ROOT:-$(mktemp -d /var/tmp/modekeep-bare-XXXXXX)}
  # In namespaces of its own: what is mounted or started goes with them, however this ends.
  child=
  trap 'exit 130' HUP INT TERM
  trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true; [ "${MODEKEEP_BARE_ROOT:-}" ] || rm -rf "$place"' EXIT
  MODEKEEP_BARE_PLACE=$place setpriv --pdeathsig KILL \
    unshare --mount --propagation private --pid --fork --kill-child "$0" "$@" <&0 &
  child=$!
  wait "$child"
  exit
fi

root=$MODEKEEP_BARE_PLACE
mkdir -p "$root"
# mktemp(1) made it for root alone, and it is to be everybody's root.
chmod 0755 "$root"
if ! [ -e "$root/made" ]; then
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" >&2
  # The machine's way to Debian's archive.
  apt-config dump | grep -iE '^Acquire::(http|https)::' >"$root/etc/apt/apt.conf.d/machine" || true
  if [ -f /etc/apt/sources.list.d/debian.sources ]; then
    rm "$root/etc/apt/sources.list"
    cp /etc/apt/sources.list.d/debian.sources "$root/etc/apt/sources.list.d/"
  fi
  touch "$root/made"
fi

# And to npm's registry.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/machine-ca.crt"
registry=$(npm config get registry)
checkout=$root/modekeep
mkdir -p "$checkout"
find "$checkout" -mindepth 1 -maxdepth 1 ! -name node_modules ! -name dist -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -C "$checkout" -xf -

mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
# Its own root, which chroot(2) would not make: nobody in a chroot may have a user namespace, and idmapped mounts need one.
mkdir -p "$root/machine"
cd "$root"
pivot_root . machine
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
umount --lazy /machine

[ "$#" -gt 0 ] || set -- .ci/run
run() {
  env -i HOME="$HOME" PATH="$PATH" LANG="$LANG" CI="${CI:-}" NPM_CONFIG_REGISTRY="$registry" \
    NPM_CONFIG_CAFILE=/etc/machine-ca.crt NODE_EXTRA_CA_CERTS=/etc/machine-ca.crt "$@"
}
run sh -c 'command -v npm >/dev/null || {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
}' </dev/null
cd /modekeep
run "$@"
