#!/bin/sh
# The whole suite as an ordinary user has it: in a copy of this checkout that is the user's own. Needs root.
set -eu
cd "$(dirname "$0")/../.."

# Nobody's on a usual machine.
user=64321
place=$(mktemp -d /var/tmp/modekeep-user-XXXXXX)
trap 'rm -rf "$place"' EXIT
trap 'exit 130' HUP INT TERM
mkdir "$place/home" "$place/checkout"
cp -a . "$place/checkout/"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/modekeep
if [ -d "$cache" ]; then
  mkdir -p "$place/home/.cache"
  cp -a "$cache" "$place/home/.cache/"
fi
chmod 755 "$place"
chown -R "$user:$user" "$place"
cd "$place/checkout"
# An ordinary user has an account, which ssh-keygen asks for: here alone, as nothing of the machine is changed.
sed "\$a modekeep-test:x:$user:$user::$place/home:/bin/sh" /etc/passwd >"$place/passwd"
chmod 644 "$place/passwd"
# What is of root's own directories, as HOME and TMPDIR, is not the user's.
# shellcheck disable=SC2016
unshare --mount --propagation private sh -euc 'mount --bind "$1" /etc/passwd; shift; exec "$@"' sh "$place/passwd" \
  setpriv --reuid "$user" --regid "$user" --clear-groups env -u TMPDIR -u XDG_CACHE_HOME HOME="$place/home" \
  npm test
