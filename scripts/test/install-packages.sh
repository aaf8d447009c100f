#!/bin/sh
# Installs Debian packages and starts no server that comes with them.
set -eu

# What asks before it starts a server is told no (deb-systemd-invoke, invoke-rc.d).
policy=/usr/sbin/policy-rc.d
deny='#!/bin/sh
# Put here by the tests of modekeep while they install packages.
exit 101'

if ! [ -e "$policy" ] || [ "$(cat "$policy")" = "$deny" ]; then
  # A signal ends this script when apt-get has ended, and through EXIT.
  trap 'rm -f "$policy"' EXIT
  trap 'exit 130' HUP INT TERM
  printf '%s\n' "$deny" >"$policy"
  chmod 755 "$policy"
elif [ "${IN_OWN_MOUNTS:-}" = "" ]; then
  # Somebody's own stays as it is: ours lies on it, for this script alone.
  IN_OWN_MOUNTS=yes exec unshare --mount --propagation private "$0" "$@"
else
  place=$(mktemp)
  trap 'rm -f "$place"' EXIT
  trap 'exit 130' HUP INT TERM
  printf '%s\n' "$deny" >"$place"
  chmod 755 "$place"
  mount --bind "$place" "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$@" >/dev/null </dev/null
