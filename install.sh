#!/bin/sh
# Installs, upgrades or removes the FlexVolume driver modekeep/fs on a Kubernetes node: copies the executable to where nobody
# else can write, compares the sum of the copy, and hands over to its verb `install` or `uninstall`. --help has the options.
set -eu
export LC_ALL=C PATH="${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
unset CDPATH

# die TEXT [MORE]...: every further line says what to do about it.
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '       %s\n' "$@" >&2
  exit 1
}

# first_bytes FILE: twenty of them in hexadecimal, an ELF header up to its machine.
first_bytes() { od -An -v -tx1 -N20 "$1" 2>/dev/null | tr -d ' \n' || :; }

# A shell takes a file that the kernel does not run for a script, and would execute its bytes as commands.
require_program() {
  own=$(first_bytes /proc/self/exe)
  case $(first_bytes "$copy") in
    2321* | 7f454c46*"${own#"${own%????}"}") ;;
    7f454c46*) die "$runner is built for another processor than this one ($(uname -m))" ;;
    *) die "$runner is no executable: it has neither an ELF header nor #!" ;;
  esac
}

# Nothing that has another sum than was asked for is run. A line of SHA256SUMS: the sum, a blank, a blank or a star, the name.
require_sum() {
  if [ "$sha256" ] && [ -z "$binary" ]; then
    by=--sha256 sum=$(printf '%s' "$sha256" | tr 'A-F' 'a-f') || sum=''
  else
    by=${runner%/*}/SHA256SUMS
    [ -e "$by" ] || return 0
    sum=$(name=${runner##*/} awk 'length($1) == 64 && substr($0, 67) == ENVIRON["name"] { print tolower($1); exit }' "$by") ||
      die "cannot read $by"
    case $sum in *[!0-9a-f]* | '') die "$by has no sum of ${runner##*/}" \
      'name the sum with --sha256 SUM, or take SHA256SUMS away if it is about other files' ;; esac
  fi
  command -v sha256sum >/dev/null || die "$by needs the command sha256sum"
  actual=$(sha256sum <"$copy" | cut -d' ' -f1) || actual='unknown'
  [ "$actual" = "$sum" ] || die "$runner is not the file that $by asks for: fetch it again" "expected $sum" "found    $actual"
}

main() {
  verb=install binary='' sha256='' runner='' said='no directory could be made for a copy of it' left=$#
  for argument; do [ "$argument" != --uninstall ] || verb=uninstall; done
  # Each argument moves to the end of the list, but for --uninstall, --binary, and what `uninstall` does not take.
  while [ "$left" -gt 0 ]; do
    argument=$1 left=$((left - 1)) && shift
    case $argument in
      --uninstall) continue ;;
      --binary=?*) [ "$binary" ] || { binary=${argument#*=} && continue; } ;;
      --binary) [ -z "$binary" ] && [ "$left" -gt 0 ] && [ "$1" ] && binary=$1 && shift && left=$((left - 1)) && continue ;;
      --sha256=?*) sha256=${argument#*=}; [ "$verb" = install ] || continue ;;
      --sha256) [ "$left" -gt 0 ] && sha256=$1 && [ "$verb" = uninstall ] && [ "$1" ] && shift && left=$((left - 1)) && continue ;;
    esac
    set -- "$@" "$argument"
  done
  case $binary in '' | /*) ;; *) binary=$PWD/$binary ;; esac
  here=$(case $0 in */*) cd -P "${0%/*}/" ;; esac && pwd -P)
  for candidate in "$here/dist/modekeep" "$here/modekeep" "$binary"; do
    [ -f "$candidate" ] || continue
    runner=${runner:-$candidate}
    case $(first_bytes "$candidate") in 2321* | 7f454c46*) runner=$candidate && break ;; esac
  done
  [ "$runner" ] ||
    die "no modekeep executable beside $here/install.sh" 'build it with "npm run build", or name it with --binary FILE'
  # shellcheck disable=SC3013 # -ef is in every sh of Linux
  if [ "$binary" ] && [ "$binary" -ef "$runner" ]; then binary=''; fi
  for place in /run /var/lib "${TMPDIR:-/tmp}" /tmp; do
    if [ "${private:-}" ]; then rm -rf "$private"; fi
    private=$(mktemp -d "$place/modekeep-install.XXXXXX" 2>/dev/null) || continue
    copy=$private/${runner##*/}
    said=$({ cp "$runner" "$copy" && chmod 0700 "$copy"; } 2>&1) || continue
    require_sum
    require_program
    # Where it cannot start, or has no such verb, it says so to kubelet: in JSON, and with status 0.
    said=$("$copy" "$verb" --help 2>&1) || said="status $?: $said"
    case $said in "modekeep $verb"*) ;; *) continue ;; esac
    if [ "$verb" = install ]; then set -- --binary "${binary:-$copy}" "$@"; fi
    "$copy" "$verb" "$@" & child=$!
    # A signal ends the waiting before the work has ended.
    while status=0; wait "$child" || status=$?; kill -0 "$child" 2>/dev/null; do :; done
    exit "$status"
  done
  case $said in *'"Not supported"'*) die "$runner is older than this script: it has no verb $verb" \
    'run the install.sh that came with it' ;; esac
  die "$runner does not work here" "it said: $(printf '%s' "$said" | tr -cs '[:print:]' ' ' | cut -c1-300)" \
    "a copy of it must fit into /run, /var/lib or /tmp, and that not be mounted noexec"
}

trap '[ -z "${private:-}" ] || rm -rf "$private"' EXIT
trap '[ "${child:-}" ] && kill -s HUP "$child" 2>/dev/null || exit 129' HUP
trap '[ "${child:-}" ] && kill -s INT "$child" 2>/dev/null || exit 130' INT
trap '[ "${child:-}" ] && kill -s TERM "$child" 2>/dev/null || exit 143' TERM
# One call at the very end: a script that is cut off while it is downloaded does nothing.
main "$@"
