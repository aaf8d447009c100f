#!/bin/sh
# Installs, upgrades or removes the FlexVolume driver modekeep/fs on a Kubernetes node: finds the executable, compares its
# sum, and hands over to its verb `install`, or with --uninstall to `uninstall`. "./install.sh --help" has the options.
set -eu
LC_ALL=C PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
export LC_ALL PATH
unset CDPATH

# die TEXT [MORE]...: every further line says what to do about it.
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  for more in "$@"; do printf '       %s\n' "$more" >&2; done
  exit 1
}

# first_bytes FILE: twenty of them in hexadecimal, an ELF header up to its machine.
first_bytes() { od -An -v -tx1 -N20 "$1" 2>/dev/null | tr -d ' \n'; }

# A shell takes a file that the kernel does not run for a script, and would execute its bytes as commands.
require_program() {
  bytes=$(first_bytes "$runner") || bytes=''
  case $bytes in
    2321*) return 0 ;;
    7f454c46*) ;;
    *) die "$runner is no executable: it has neither an ELF header nor #!" ;;
  esac
  own=$(first_bytes /proc/self/exe) || own=''
  if [ "$own" ] && [ "$(printf '%s' "$own" | cut -c37-40)" != "$(printf '%s' "$bytes" | cut -c37-40)" ]; then
    die "$runner is built for another processor than this one ($(uname -m))"
  fi
}

# require_sum WHAT SUM: nothing of a file that has another sum is run. WHAT asks for it.
require_sum() {
  command -v sha256sum >/dev/null || die "$1 needs the command sha256sum"
  actual=$(sha256sum <"$runner" | cut -d' ' -f1) || actual='unknown'
  [ "$actual" = "$2" ] || die "$runner is not the file that $1 asks for: fetch it again" "expected $2" "found    $actual"
}

# A release has SHA256SUMS beside its files, as sha256sum writes it: the sum, a blank, a blank or a star, the name.
require_sum_beside() {
  sums=${runner%/*}/SHA256SUMS
  [ -e "$sums" ] || return 0
  sum=$(name=${runner##*/} awk 'length($1) == 64 && substr($0, 67) == ENVIRON["name"] { print tolower($1); exit }' "$sums") ||
    die "cannot read $sums"
  case $sum in
    *[!0-9a-f]* | '') die "$sums has no sum of ${runner##*/}" \
      'name the sum with --sha256 SUM, or take SHA256SUMS away if it is about other files' ;;
  esac
  require_sum "$sums" "$sum"
}

main() {
  verb=install binary='' sha256='' left=$#
  for argument; do [ "$argument" != --uninstall ] || verb=uninstall; done
  # Each argument moves to the end of the list; --uninstall does not, and with it none that is about the executable.
  while [ "$left" -gt 0 ]; do
    argument=$1 left=$((left - 1)) && shift
    case $argument in
      --uninstall) continue ;;
      --binary=?*) binary=${argument#*=}; [ "$verb" = install ] || continue ;;
      --sha256=?*) sha256=${argument#*=}; [ "$verb" = install ] || continue ;;
      --binary) [ "$left" -gt 0 ] && binary=$1 && [ "$verb" = uninstall ] && [ "$1" ] && shift && left=$((left - 1)) && continue ;;
      --sha256) [ "$left" -gt 0 ] && sha256=$1 && [ "$verb" = uninstall ] && [ "$1" ] && shift && left=$((left - 1)) && continue ;;
    esac
    set -- "$@" "$argument"
  done

  case $0 in */*) here=${0%/*}/ ;; *) here=. ;; esac
  here=$(cd -P "$here" && pwd) runner=''
  for candidate in "$here/dist/modekeep" "$here/modekeep" "$binary"; do
    if [ -z "$runner" ] && [ -f "$candidate" ]; then runner=$candidate; fi
  done
  case $runner in
    '') die "no modekeep executable beside $here/install.sh" 'build it with "npm run build", or name it with --binary FILE' ;;
    /*) ;;
    *) runner=$PWD/$runner ;;
  esac
  # shellcheck disable=SC3013 # -ef is in every sh of Linux
  if [ "$sha256" ] && { [ -z "$binary" ] || [ "$binary" -ef "$runner" ]; }; then
    require_sum --sha256 "$(printf '%s' "$sha256" | tr 'A-F' 'a-f')"
  else
    require_sum_beside
  fi
  require_program
  # Where it cannot start it says so to kubelet: in JSON, and with status 0.
  said=$("$runner" version 2>&1) || said="status $?: $said"
  case $said in
    'modekeep '*) ;;
    *) die "$runner does not work here" "it said: $(printf '%s' "$said" | tr -cs '[:print:]' ' ' | cut -c1-300)" \
      'it must be executable, and its file system not be mounted noexec' ;;
  esac
  if [ "$verb" = install ] && [ -z "$binary" ]; then set -- --binary "$runner" "$@"; fi
  exec "$runner" "$verb" "$@"
}

# One call at the very end: a script that is cut off while it is downloaded does nothing.
main "$@"
