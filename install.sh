#!/bin/sh
# Installs, upgrades or removes the FlexVolume driver modekeep/fs on a Kubernetes node.
#
# The kubelet watches its volume plugin directory and calls `init` upon every event on a name without a leading dot.
# So a driver appears, or changes, by one rename of something complete and synced under a dot name, and nothing else is
# ever written there. The lock is flock(2) on the directory itself: it leaves no file and dies with its holder.
# shellcheck disable=SC2317 # a trap and act call what it takes for unreachable
set -eu
umask 022
LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
export LC_ALL PATH
unset CDPATH

default_dir=/usr/libexec/kubernetes/kubelet-plugins/volume/exec
writable_dir=/var/lib/kubelet/volumeplugins
lock_seconds=120
init_seconds=30
newline='
'
tab=$(printf '\t')

usage() {
  cat <<'USAGE'
Usage: install.sh [OPTION]...
Install or upgrade the FlexVolume driver modekeep/fs on this node. Needs root; safe to run again at any time.

  --binary FILE      the executable to install (default: dist/modekeep or modekeep beside this script)
  --sha256 SUM       refuse the executable unless this is its SHA-256
                     (default: the one in SHA256SUMS beside it, as releases have it; where that is not there, none)
  --plugin-dir DIR   the kubelet's volume plugin directory (default: what the running kubelet uses)
  --config FILE      install this as the node's configuration, unless the driver finds a fault in it
  --uninstall        remove the driver and its link; state, logs and configuration stay
  --purge            with --uninstall: remove these too, the record of changed owners and modes included
  --force            with --uninstall: even while volumes of modekeep/fs are mounted
  --dry-run          print every step and change nothing; needs no root
  --root DIR         work on the system below DIR (an image), where no kubelet is looked for
  --try-in DIR       try the driver in the system below DIR: for a container that has the node's directories at their
                     own paths, but not its C library
  --proc DIR         look for kubelets and mounts in this proc directory (default: /proc)
  --help             this text

Examples:
  ./install.sh --dry-run
  ./install.sh --binary ./modekeep --sha256 "$(cut -d' ' -f1 modekeep.sha256)"
  ./install.sh --plugin-dir /var/lib/kubelet/volumeplugins
  ./install.sh --root /mnt/image --plugin-dir /etc/kubernetes/kubelet-plugins/volume/exec
  ./install.sh --uninstall

Exit status: 0 done, 1 refused or failed (the driver that was there still is), 2 wrong usage.
USAGE
}

# The text of driver/config.example.json; a test keeps the two equal.
example_config() {
  cat <<'EXAMPLE'
{
  "stateDir": "/var/lib/modekeep",
  "logFile": "/var/log/modekeep/modekeep.log",
  "logLevel": "info",
  "allowedSources": ["/var/lib/modekeep/volumes"],
  "allowedFsTypes": ["bind", "tmpfs"],
  "allowedMountOptions": {},
  "helperTimeoutSeconds": 60,
  "capabilities": {
    "selinuxRelabel": false,
    "supportsMetrics": true
  }
}
EXAMPLE
}

# --- output ---------------------------------------------------------------------------------------------------------

bold='' plain='' red='' yellow='' plain_error=''
if [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  escape=$(printf '\033')
  if [ -t 1 ]; then bold="${escape}[1m" plain="${escape}[0m"; fi
  if [ -t 2 ]; then red="${escape}[31m" yellow="${escape}[33m" plain_error="${escape}[0m"; fi
fi

# say LABEL TEXT
say() { printf '%s%-11s%s %s\n' "$bold" "$1" "$plain" "$2"; }
warn() { printf '%swarning:%s %s\n' "$yellow" "$plain_error" "$1" >&2; }
# die TEXT [MORE]...: every further line says what to do about it.
die() {
  told=yes
  printf '%serror:%s %s\n' "$red" "$plain_error" "$1" >&2
  shift
  for more in "$@"; do printf '       %s\n' "$more" >&2; done
  exit 1
}
misuse() {
  told=yes
  printf '%serror:%s %s\n       try: %s --help\n' "$red" "$plain_error" "$1" "${0##*/}" >&2
  exit 2
}
# act TEXT COMMAND...: in a dry run only the text.
act() {
  if [ "$dry" ]; then
    say would "$1"
  else
    shift
    "$@"
  fi
}

# --- arguments ------------------------------------------------------------------------------------------------------

binary='' sha256='' plugin_dir='' config='' try_in='' root='' proc='' mode=install purge='' force='' dry=''

parse_arguments() {
  while [ $# -gt 0 ]; do
    option=$1
    shift
    case $option in
      --binary | --sha256 | --plugin-dir | --config | --try-in | --root | --proc)
        [ $# -gt 0 ] || misuse "$option needs a value"
        value=$1
        shift
        ;;
      --binary=* | --sha256=* | --plugin-dir=* | --config=* | --try-in=* | --root=* | --proc=*)
        value=${option#*=}
        option=${option%%=*}
        ;;
    esac
    case $option in
      --binary | --sha256 | --plugin-dir | --config | --try-in | --root | --proc) [ "$value" ] || misuse "$option needs a value" ;;
    esac
    case $option in
      --binary) binary=$(absolute "$value") ;;
      --sha256) sha256=$(printf '%s' "$value" | tr 'A-F' 'a-f') ;;
      --plugin-dir) plugin_dir=$value ;;
      --config) config=$(absolute "$value") ;;
      --try-in) try_in=$(absolute "$value") ;;
      --root) root=$(absolute "$value") ;;
      --proc) proc=$(absolute "$value") ;;
      --uninstall) mode=uninstall ;;
      --purge) purge=yes ;;
      --force) force=yes ;;
      --dry-run) dry=yes ;;
      --help | -h) usage && exit 0 ;;
      -*) misuse "unknown option $option" ;;
      *) misuse "unexpected argument $option" ;;
    esac
  done

  if [ "$mode" = install ]; then
    [ -z "$purge" ] || misuse '--purge goes with --uninstall'
    [ -z "$force" ] || misuse '--force goes with --uninstall'
  else
    [ -z "$config" ] || misuse '--config goes with an install'
  fi
  case $plugin_dir in
    /) misuse '--plugin-dir cannot be /' ;;
    '' | /*) ;;
    *) misuse "--plugin-dir needs an absolute path, got $plugin_dir" ;;
  esac
  case $sha256 in
    *[!0-9a-f]*) misuse '--sha256 needs 64 hexadecimal digits' ;;
  esac
  [ -z "$sha256" ] || [ ${#sha256} -eq 64 ] || misuse '--sha256 needs 64 hexadecimal digits'
  if [ "$root" ]; then
    # Canonical, as mountinfo has it, and empty for the real root: every path is "$root/...".
    root=$(cd -P "$root" 2>/dev/null && pwd) || die "--root: no such directory"
    [ "$root" != / ] || root=''
  fi
}

absolute() {
  case $1 in
    /*) printf '%s' "$1" ;;
    *) printf '%s/%s' "$PWD" "$1" ;;
  esac
}

find_binary() {
  if [ -z "$binary" ]; then
    here=$(cd -P "$(dirname "$0")" && pwd)
    for candidate in "$here/dist/modekeep" "$here/modekeep"; do
      if [ -f "$candidate" ]; then binary=$candidate && break; fi
    done
    [ "$binary" ] || die "no modekeep executable beside $here/install.sh" \
      'build it with "npm run build", or name it with --binary FILE'
  fi
  if [ ! -f "$binary" ] || [ ! -r "$binary" ] || [ ! -s "$binary" ]; then
    die "$binary is not a readable, non-empty file"
  fi
  read_sums
  [ -z "$sha256" ] || require_sum "$binary"
  if [ "$config" ] && { [ ! -f "$config" ] || [ ! -r "$config" ]; }; then die "--config: $config is not a readable file"; fi
}

# A release has SHA256SUMS beside its files. Who names a sum does not need it; without either nothing is compared.
read_sums() {
  sums=${binary%/*}/SHA256SUMS
  if [ "$sha256" ] || [ ! -e "$sums" ]; then
    sums=''
    return 0
  fi
  name=${binary##*/}
  # As sha256sum writes it: the sum, a blank, a blank or a star, the name.
  sha256=$(name=$name awk 'length($1) == 64 && substr($0, 67) == ENVIRON["name"] { print tolower($1); exit }' "$sums") ||
    die "cannot read $sums"
  case $sha256 in
    *[!0-9a-f]* | '') die "$sums has no sum of $name" \
      'name the sum with --sha256 SUM, or take SHA256SUMS away if it is about other files' ;;
  esac
}

sum_of() { sha256sum <"$1" | cut -d' ' -f1; }

require_sum() {
  command -v sha256sum >/dev/null || die "${sums:---sha256} needs the command sha256sum"
  actual=$(sum_of "$1")
  [ "$actual" = "$sha256" ] || die "$binary is not the file that ${sums:---sha256} asks for: fetch it again" \
    "expected $sha256" "found    $actual"
}

# --- the kubelet's volume plugin directory --------------------------------------------------------------------------

# shellcheck disable=SC2016 # awk's fields, not the shell's
# One process' arguments, one a line -> four lines: kubelet|k3s|rke2, and the three flags that name the directory.
read_arguments='
  NR == 1 {
    word = $0
    # k3s and rke2 overwrite their argument list with "/path/k3s server", to hide secrets.
    if (match(word, / (agent|server)$/)) { titled = 1; word = substr(word, 1, RSTART - 1) }
    sub(/.*\//, "", word)
    if (word ~ /^(k3s|rke2)-(agent|server)$/) { titled = 1; sub(/-.*/, "", word) }
    if (word == "kubelet" || (titled && word ~ /^(k3s|rke2)$/)) kind = word
    else if (word == "hyperkube" || word == "k3s" || word == "rke2") pending = word
    else exit
    next
  }
  NR == 2 && pending != "" {
    if (pending == "hyperkube" && $0 == "kubelet") kind = $0
    else if (pending != "hyperkube" && ($0 == "agent" || $0 == "server")) kind = pending
    else exit
    next
  }
  {
    word = $0
    if (awaited != "") { word = "--" awaited "=" word; awaited = "" }
    if (sub(/^--/, "", word) == 0) next
    if (kind != "kubelet") {
      if (word == "kubelet-arg") { awaited = word; next }
      if (sub(/^kubelet-arg=-*/, "", word) == 0) next
    }
    equals = index(word, "=")
    key = equals ? substr(word, 1, equals - 1) : word
    gsub(/_/, "-", key)
    if (key != "volume-plugin-dir" && key != "config" && key != "config-dir") next
    if (equals) flag[key] = substr(word, equals + 1)
    else if (kind == "kubelet") awaited = key
  }
  END {
    if (kind != "") print kind "\n" flag["volume-plugin-dir"] "\n" flag["config"] "\n" flag["config-dir"]
  }'

# shellcheck disable=SC2016
# KubeletConfiguration (YAML or JSON) on standard input -> its volumePluginDir, if any.
read_configuration='
  {
    sub(/\r$/, "")
    if (!match($0, /(^|[{, \t])["\047]?volumePluginDir["\047]?[ \t]*:[ \t]*/)) next
    if (substr($0, 1, RSTART) ~ /#/) next
    value = substr($0, RSTART + RLENGTH)
    quote = substr(value, 1, 1)
    if (quote == "\"" || quote == "\047") {
      value = substr(value, 2)
      sub(quote ".*", "", value)
    } else sub(/[,} \t].*/, "", value)
    found = value
  }
  END { if (found != "") print found }'

# kubelet_file PID PATH: where a file that the kubelet names is for us, its root may be a container's.
kubelet_file() {
  if [ -e "$proc/$1/root$2" ]; then printf '%s' "$proc/$1/root$2"; else printf '%s' "$root$2"; fi
}

# report PID DIR WHY: DIR is ? when it cannot be told.
report() { printf '%s\t%s\t%s\n' "${2%/}" "$1" "$3"; }

# directory_of_process PID: prints a report for a kubelet, nothing for any other process.
directory_of_process() {
  facts=$(tr '\000' '\n' 2>/dev/null <"$proc/$1/cmdline" | awk "$read_arguments") || return 0
  [ "$facts" ] || return 0
  {
    read -r kind
    read -r flag || flag=''
    read -r config || config=''
    read -r drop_ins || drop_ins=''
  } <<FACTS
$facts
FACTS
  if [ "$flag" ]; then
    report "$1" "$flag" "$kind, pid $1, volume-plugin-dir in its arguments"
    return 0
  fi

  # Drop-in files override the main file, a later one an earlier one.
  set -- "$1" "$config"
  if [ "$drop_ins" ]; then
    for file in "$(kubelet_file "$1" "$drop_ins")"/*.conf; do [ ! -e "$file" ] || set -- "$@" "$file"; done
  fi
  pid=$1 value='' origin=''
  if [ "$config" ]; then
    file=$(kubelet_file "$pid" "$config")
    if [ ! -r "$file" ]; then
      report "$pid" '?' "$kind, pid $pid: cannot read its configuration $config"
      return 0
    fi
    value=$(awk "$read_configuration" <"$file") origin=$config
  fi
  shift 2
  for file in "$@"; do
    next=$(awk "$read_configuration" <"$file")
    [ -z "$next" ] || { value=$next && origin=$file; }
  done
  if [ -z "$value" ] && [ "$kind" != kubelet ]; then
    for file in "$root/etc/systemd/system/$kind"*.service "$root/etc/rancher/$kind/config.yaml" \
      "$root/etc/rancher/$kind/config.yaml.d"/*.yaml; do
      [ -r "$file" ] || continue
      next=$(sed -n "s/^[^#]*volume-plugin-dir=\\([^\"',[:space:]]*\\).*/\\1/p" "$file" | tail -n 1)
      [ -z "$next" ] || { value=$next && origin=$file; }
    done
    for file in "$root/var/lib/rancher/$kind/agent/etc/kubelet.conf.d"/*.conf; do
      if [ "$value" ] || [ ! -r "$file" ]; then continue; fi
      value=$(awk "$read_configuration" <"$file") origin=$file
    done
  fi
  if [ "$value" ]; then
    report "$pid" "$value" "$kind, pid $pid, $origin"
  elif [ "$kind" != rke2 ]; then
    # rke2 starts a kubelet process of its own, which is the one to ask.
    report "$pid" "$default_dir" "$kind, pid $pid, says nothing: the kubelet's default"
  fi
}

kubelet_directories() {
  grep -lE 'kubelet|hyperkube|k3s|rke2' "$proc"/[0-9]*/cmdline 2>/dev/null | while IFS= read -r file; do
    file=${file%/cmdline}
    directory_of_process "${file##*/}"
  done
}

known_directories() {
  for known in $writable_dir /etc/kubernetes/kubelet-plugins/volume/exec /etc/kubernetes/volumeplugins \
    /home/kubernetes/flexvolume /var/lib/kubelet/volume-plugins /opt/rke/var/lib/kubelet/volumeplugins \
    $default_dir; do
    [ ! -d "$root$known" ] || printf '%s\n' "$known"
  done
}

# identity PATH: device and inode, empty when it cannot be told.
identity() { stat -Lc %d:%i "$1" 2>/dev/null || :; }

warn_about_containers() {
  printf '%s\n' "$found" | while IFS=$tab read -r dir pid _; do
    its_root=$(identity "$proc/$pid/root/")
    if [ -z "$its_root" ] || [ "$its_root" = "$(identity "$root/")" ]; then continue; fi
    shown=$(identity "$proc/$pid/root$dir")
    if [ "$shown" ] && [ "$shown" = "$(identity "$root$dir")" ]; then continue; fi
    warn "the kubelet (pid $pid) runs in a container that does not show this host's $dir: mount it there"
  done
}

choose_plugin_dir() {
  if [ "$plugin_dir" ]; then
    reason='named by --plugin-dir'
    return 0
  fi

  found=''
  [ -z "$proc" ] || found=$(kubelet_directories)
  if [ "$found" ]; then
    # shellcheck disable=SC2016
    list=$(printf '%s\n' "$found" | awk -F "$tab" '{ print $1 "  (" $3 ")" }')
    unknown=$(printf '%s\n' "$found" | sed -n "s/^?${tab}[^${tab}]*${tab}//p")
    [ -z "$unknown" ] || die 'a running kubelet cannot be asked for its volume plugin directory' "$unknown" \
      'run this as root, or name the directory with --plugin-dir DIR'
    plugin_dir=$(printf '%s\n' "$found" | cut -f1 | sort -u)
    case $plugin_dir in
      *"$newline"*)
        printf '%serror:%s the kubelets here use different volume plugin directories:\n' "$red" "$plain_error" >&2
        printf '%s\n' "$list" | sed 's/^/       /' >&2
        printf '       run this once for each, with --plugin-dir DIR\n' >&2
        told=yes
        exit 1
        ;;
      /*) ;;
      *) die "the kubelet's volume plugin directory is not an absolute path: $list" 'name it with --plugin-dir DIR' ;;
    esac
    reason=$(printf '%s\n' "$found" | head -n 1 | cut -f3)
    warn_about_containers
    return 0
  fi

  found=$(known_directories)
  installed_in=$(printf '%s\n' "$found" | while IFS= read -r known; do
    [ -z "$known" ] || [ ! -e "$root$known/modekeep~fs/fs" ] || printf '%s\n' "$known"
  done)
  # A directory that has the driver already is no guess.
  [ -z "$installed_in" ] || found=$installed_in
  case $found in
    '') die 'no kubelet was found, and none of the known volume plugin directories exists' \
      'name the directory with --plugin-dir DIR (the kubelet'"'"'s default is '$default_dir')' ;;
    *"$newline"*)
      printf '%serror:%s no kubelet was found, and several volume plugin directories exist:\n' "$red" "$plain_error" >&2
      printf '%s\n' "$found" | sed 's/^/       /' >&2
      printf '       name the right one with --plugin-dir DIR\n' >&2
      told=yes
      exit 1
      ;;
  esac
  plugin_dir=$found
  if [ "$installed_in" ]; then
    reason='no kubelet was found; the driver is there already'
  else
    reason='no kubelet was found; the only known directory that exists'
  fi
}

cannot_write() {
  die "cannot write to $root$plugin_dir${1:+: $1}" \
    "where /usr is read-only, set the kubelet's flag --volume-plugin-dir=$writable_dir" \
    "(or volumePluginDir: $writable_dir in its configuration), restart it, and run this again"
}

make_plugin_dir() {
  created=''
  if [ ! -d "$plugins" ]; then
    created=yes
    if [ "$dry" ]; then
      say would "create $plugins (0755)"
      return 0
    fi
    mkdir -p "$plugins" 2>/dev/null || cannot_write 'it does not exist and cannot be created'
  fi
  if [ ! -w "$plugins" ] && [ -z "$dry" ]; then cannot_write 'it is read-only'; fi
  return 0
}

# warn_about_writers DIR WHAT: who can write to DIR, or rename one above it, can replace WHAT. With the driver that is to run
# programs as root through the kubelet, with the configuration to mount what the node's pods may not.
warn_about_writers() {
  [ -d "$1" ] || return 0
  dir=$(cd -P "$1" && pwd)
  unsafe=$(find "$dir" -prune -perm -0002)
  while [ ${#dir} -gt ${#root} ] && [ "$dir" != / ]; do
    unsafe="$unsafe$newline$(find "$dir" -prune \
      \( ! -user 0 -o -perm -0020 ! -group 0 -o -perm -0002 ! -perm -1000 \))"
    dir=${dir%/*}
  done
  printf '%s\n' "$unsafe" | sort -u | while IFS= read -r dir; do
    [ -z "$dir" ] || warn "$dir can be written by others than root: they could replace $2"
  done
}

# --- writing --------------------------------------------------------------------------------------------------------

stage='' aside='' probing='' locked='' new_config='' told=''
# However this ends; a shell that cannot go on (no process, no pipe, no memory) has an exit status of its own.
finish() {
  status=$?
  # Not to be ended by a command of its own.
  clean_up || :
  case $status in
    0 | 129 | 130 | 143) ;;
    *)
      if [ -z "$told" ]; then
        printf '%serror:%s stopped, as something failed (status %s): mend that and run this again\n' \
          "$red" "$plain_error" "$status" >&2
        status=1
      fi
      ;;
  esac
  exit "$status"
}

clean_up() {
  # An uninstall that did not come to its end: a node with volumes keeps its driver.
  if [ -d "$aside" ]; then
    if [ -e "$driver_dir" ] || ! mv "$aside" "$driver_dir"; then
      warn "cannot put the driver back: rename $aside to $driver_dir"
      return 0
    fi
    fsync "$plugins"
  fi
  if [ "$stage" ]; then discard "$stage"; fi
  # A signal can come between the making of a staged file and the noting of its name; under the lock all are ours.
  if [ "$locked" ]; then
    staged_files | while read -r leftover; do discard "$leftover"; done
  fi
  if [ "$probing" ]; then rm -f "$probe_config"; fi
  if [ "$locked" ] && [ "$new_config" ]; then rm -f "$new_config"; fi
}

staged_files() {
  for leftover in "$plugins"/.modekeep~fs.?????? "$driver_dir"/.fs.??????; do
    if [ -e "$leftover" ] && [ ! -L "$leftover" ]; then printf '%s\n' "$leftover"; fi
  done
}

take_lock() {
  [ -z "$dry" ] || return 0
  command -v flock >/dev/null || die 'this needs the command flock (package util-linux)'
  exec 9<"$plugins"
  waited=0
  # A loop, because busybox' flock has no time limit.
  until flock -n 9; do
    # 1 is the answer for a lock that somebody else has.
    [ $? -eq 1 ] || die "cannot lock $plugins"
    [ $waited -gt 0 ] || say waiting 'another install is running'
    [ $waited -lt $lock_seconds ] || die "another install has been running for $lock_seconds seconds"
    waited=$((waited + 1))
    sleep 1
  done
  locked=yes
}

fsync() { sync "$1" 2>/dev/null || sync; }

# rename FROM TO: never into TO. Both are in one directory, so mv is one rename(2).
rename() {
  if [ -d "$2" ]; then die "$2 is a directory: remove it, then run this again"; fi
  if [ -z "${mv_flags:-}" ]; then
    mv_flags=-f
    if mv --help 2>&1 | grep -q -e '-T'; then mv_flags=-fT; fi
  fi
  mv "$mv_flags" "$1" "$2" || die "cannot rename $1 to $2"
}

# discard PATH: a staged file, or a staged directory with the driver in it. Nothing but our own names is removed.
discard() {
  if [ -d "$1" ] && [ ! -L "$1" ]; then
    for inner in "$1/gone" "$1"; do
      if [ ! -d "$inner" ] || [ -L "$inner" ]; then continue; fi
      rm -f "$inner/fs" "$inner"/.fs.??????
      rmdir "$inner" 2>/dev/null || :
    done
    [ ! -d "$1" ] || warn "$1 holds files that are not modekeep's: left in place"
  else
    rm -f "$1"
  fi
}

sweep() {
  for leftover in "$probe_config" "$new_config" "$new_example" "$new_link"; do
    if [ -e "$leftover" ] || [ -L "$leftover" ]; then act "remove $leftover" rm -f "$leftover"; fi
  done
  staged_files | while read -r leftover; do
    act "remove $leftover, left by an interrupted install" discard "$leftover"
    [ "$dry" ] || say swept "$leftover"
  done
}

# make_dir PATH MODE
make_dir() {
  if [ -d "$1" ]; then return 0; fi
  if [ "$dry" ]; then
    say would "create $1 ($2)"
    return 0
  fi
  mkdir -p "${1%/*}" || die "cannot create ${1%/*}"
  # The second test: a concurrent install may have been first.
  mkdir -m "$2" "$1" 2>/dev/null || [ -d "$1" ] || die "cannot create $1"
  say created "$1 ($2)"
}

# --- the driver -----------------------------------------------------------------------------------------------------

same_bytes() {
  if command -v cmp >/dev/null; then cmp -s "$1" "$2"; else [ "$(sum_of "$1")" = "$(sum_of "$2")" ]; fi
}

# With a sum the driver itself is asked for it: the file that had it could have been exchanged since.
has_these_bytes() {
  if [ "$sha256" ]; then [ "$(sum_of "$driver")" = "$sha256" ]; else same_bytes "$binary" "$driver"; fi
}

already_installed() {
  [ -f "$driver" ] && [ ! -L "$driver" ] && has_these_bytes &&
    [ "$(find "$driver" -prune -type f -perm 0755 -user 0 -group 0)" ] &&
    [ "$(find "$driver_dir" -prune -type d -perm 0755 -user 0 -group 0)" ]
}

# first_bytes FILE: twenty of them in hexadecimal, an ELF header up to its machine.
first_bytes() { od -An -v -tx1 -N20 "$1" 2>/dev/null | tr -d ' \n'; }

# env, timeout and the shell hand a file that the kernel does not run to /bin/sh, which would execute its bytes as
# commands. The kubelet does not, so such a file is never tried.
require_program() {
  bytes=$(first_bytes "$1")
  case $bytes in
    2321*) return 0 ;;
    7f454c46*) ;;
    *) die "$binary is no executable: it has neither an ELF header nor #!" ;;
  esac
  own=$(first_bytes /proc/self/exe)
  if [ "$own" ] && [ "$(printf '%s' "$own" | cut -c37-40)" != "$(printf '%s' "$bytes" | cut -c37-40)" ]; then
    die "$binary is built for another processor than this one ($(uname -m))"
  fi
}

# ask_init DRIVER [CONFIG]
# The answer as the kubelet gets it: both outputs as one document. No variable of ours may change it.
ask_init() {
  require_program "$1"
  tried=${2:-}
  set -- "$1" init
  [ -z "$try_in" ] || set -- chroot "$try_in" "$@"
  if command -v timeout >/dev/null && timeout 5 true 2>/dev/null; then set -- timeout $init_seconds "$@"; fi
  if [ "$tried" ]; then
    set -- MODEKEEP_CONFIG="$tried" "$@"
  elif [ "$root" ]; then
    # Below --root the executable must not log to, or read from, the system that runs this.
    probing=yes
    escaped=$(printf '%s' "$root" | sed 's/["\\]/\\&/g')
    printf '{"stateDir":"%s/var/lib/modekeep","logFile":"%s/var/log/modekeep/modekeep.log"}\n' \
      "$escaped" "$escaped" >"$probe_config"
    set -- MODEKEEP_CONFIG="$probe_config" "$@"
  fi
  answer=$(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" 2>&1 </dev/null 9>&-) &&
    code=0 || code=$?
  if [ "$probing" ]; then rm -f "$probe_config" && probing=''; fi
}

# judge_init: what is wrong with the last answer, in fault; nothing where it is empty.
judge_init() {
  fault=''
  case $answer in
    *"$newline"*) fault='more than one line' ;;
    '{'*'}') ;;
    *) fault='no JSON object' ;;
  esac
  if [ -z "$fault" ]; then
    printf '%s\n' "$answer" | grep -q '"status"[[:space:]]*:[[:space:]]*"Success"' || fault='no success'
  fi
  if [ "$code" -ne 0 ]; then fault="exit status $code"; fi
  if [ "$code" -eq 124 ] && [ -z "$answer" ]; then fault="no answer within $init_seconds seconds"; fi
  shown=$(printf '%s' "$answer" | tr -cs '[:print:]' ' ' | cut -c1-300)
}

require_init() {
  ask_init "$1"
  judge_init
  [ "$fault" ] || return 0
  hint='the driver that was installed before, if any, is untouched'
  case $answer in
    *'error while loading shared libraries'*) hint='install the named library (libatomic.so.1: package libatomic1 or libatomic)' ;;
    *'Permission denied'*) hint="is the file system of $plugins mounted noexec?" ;;
  esac
  die "$binary does not work here: init gave $fault" "it said: ${shown:-nothing}" "$hint"
}

# open_to_all PATH: 0755 root:root. In words, because chmod 0755 leaves a directory's inherited set-gid bit.
open_to_all() {
  chown 0:0 "$1" || die "cannot set the owner of $1"
  chmod ug-s,u=rwx,go=rx "$1" || die "cannot set the mode of $1"
}

# stage_binary FILE: complete, synced and tried before any rename shows it.
stage_binary() {
  cp "$binary" "$1" || die "cannot copy $binary to $1"
  # The copy is what gets installed, so the copy is what is checked.
  [ -z "$sha256" ] || require_sum "$1"
  open_to_all "$1"
  fsync "$1"
  require_init "$1"
}

first_install() {
  stage=$(mktemp -d "$plugins/.modekeep~fs.XXXXXX") || cannot_write
  stage_binary "$stage/fs"
  open_to_all "$stage"
  fsync "$stage"
  rename "$stage" "$driver_dir"
  # Without mv -T somebody else's directory could have been moved into.
  if [ -e "$driver_dir/${stage##*/}" ]; then
    stage=$driver_dir/${stage##*/}
    die "$driver_dir appeared meanwhile, run this again"
  fi
  stage=''
  fsync "$plugins"
  say installed "$driver"
}

upgrade() {
  # First, as who may write to it could replace what is staged there between its check and its use.
  [ "$(find "$driver_dir" -prune -perm 0755 -user 0 -group 0)" ] || open_to_all "$driver_dir"
  stage=$(mktemp "$driver_dir/.fs.XXXXXX") || cannot_write
  stage_binary "$stage"
  had=''
  if [ -e "$driver" ]; then had=yes; fi
  rename "$stage" "$driver"
  stage=''
  fsync "$driver_dir"
  if [ "$had" ]; then say upgraded "$driver"; else say installed "$driver"; fi
}

check_driver_dir() {
  if [ -L "$driver_dir" ]; then die "$driver_dir is a symbolic link, which the kubelet skips: remove it first"; fi
  if [ -e "$driver_dir" ] && [ ! -d "$driver_dir" ]; then die "$driver_dir is not a directory: remove it first"; fi
}

install_driver() {
  check_driver_dir
  if already_installed; then
    say unchanged "$driver has these bytes already"
  elif [ "$dry" ]; then
    staged="$driver_dir/.fs.XXXXXX" renamed="$driver"
    [ -d "$driver_dir" ] || staged="$plugins/.modekeep~fs.XXXXXX/fs" renamed="$driver_dir"
    say would "copy $binary to $staged (0755), sync it"
    say would 'run its init and go on only if it answers Success'
    say would "rename ${staged%/fs} to $renamed"
  elif [ -d "$driver_dir" ]; then
    upgrade
  else
    first_install
  fi
}

# --- state, configuration, link -------------------------------------------------------------------------------------

# configured KEY: a string of the node's configuration.
configured() {
  [ -r "$root/etc/modekeep/config.json" ] || return 0
  tr '\n' ' ' <"$root/etc/modekeep/config.json" |
    sed -n 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"\(\/[^"\\]*\)".*/\1/p'
}

read_places() {
  state_dir=$(configured stateDir)
  state_dir=${state_dir:-/var/lib/modekeep}
  log_file=$(configured logFile)
  log_file=${log_file:-/var/log/modekeep/modekeep.log}
  log_dir=${log_file%/*}
  volumes_dir=/var/lib/modekeep/volumes
  config_dir=$root/etc/modekeep
  # One name, so that the next run removes what an interrupted one left.
  probe_config=$root$state_dir/.install-probe.json
  new_config=$config_dir/.config.json.new
  new_example=$config_dir/.config.example.json.new
  new_link=${link%/*}/.modekeep.new
}

# Below --root a link that is right in that system can lead to the same place of the one that runs this.
stay_below_root() {
  [ "$root" ] || return 0
  for place in "$plugins" "$root$state_dir" "$root$log_dir" "$config_dir" "${link%/*}"; do
    existing=$place
    while [ ! -d "$existing" ]; do existing=${existing%/*}; done
    case $(cd -P "$existing" && pwd)/ in
      "$root"/*) ;;
      *) die "$place leads out of $root" 'make the link or path in it relative, or run this in that system with chroot' ;;
    esac
  done
}

make_places() {
  make_dir "$root$state_dir" 0700
  if [ -d "$root$state_dir" ] && [ -z "$(find -H "$root$state_dir" -prune -perm 0700)" ]; then
    act "set the mode of $root$state_dir to 0700" chmod ug-s,u=rwx,go= "$root$state_dir"
  fi
  # Only the default prefix is ours to create; one that the configuration names is the operator's.
  if ! grep -q '"allowedSources"' "$config_dir/config.json" 2>/dev/null; then
    [ "$state_dir" = "${volumes_dir%/*}" ] || make_dir "$root${volumes_dir%/*}" 0700
    make_dir "$root$volumes_dir" 0755
  fi
  make_dir "$root$log_dir" 0750
  make_dir "$config_dir" 0755

  example=$config_dir/config.example.json
  if [ "$(cat "$example" 2>/dev/null || :)" != "$(example_config)" ]; then
    act "write $example (0644)" write_example
  fi
}

write_example() {
  rm -f "$new_example"
  example_config >"$new_example"
  rename "$new_example" "$example"
  say written "$example"
}

# install_config: tried by the driver that is installed by now, then shown by one rename. The faults that it finds are the
# last thing in its answer.
install_config() {
  [ "$config" ] || return 0
  installed=$config_dir/config.json
  if [ "$dry" ]; then
    say would "rename a copy of $config to $installed, unless the driver finds a fault in it"
    return 0
  fi
  rm -f "$new_config"
  cp "$config" "$new_config" || die "cannot copy $config to $new_config"
  if ! chown 0:0 "$new_config" || ! chmod 0644 "$new_config"; then die "cannot set owner and mode of $new_config"; fi
  fsync "$new_config"
  ask_init "$driver" "$new_config"
  judge_init
  faults=$(printf '%s\n' "$answer" | sed -n 's/.*"message":"\(.*\)"}$/\1/p' | sed 's/\\"/"/g')
  [ -z "$faults" ] || die "$config is refused; the configuration that was there, if any, is in force" "$faults"
  # Who cannot answer has not found that there is no fault.
  [ -z "$fault" ] || die "$config was not tried; the configuration that was there, if any, is in force" \
    "init gave $fault" "it said: ${shown:-nothing}"
  if [ -f "$installed" ] && same_bytes "$new_config" "$installed"; then
    rm -f "$new_config"
    say unchanged "$installed has these bytes already"
  else
    rename "$new_config" "$installed"
    fsync "$config_dir"
    say configured "$installed"
  fi
}

# is_ours LINK: a link to a modekeep driver in whatever plugin directory.
is_ours() {
  [ -L "$1" ] || return 1
  case $(readlink "$1") in
    */modekeep~fs/fs) return 0 ;;
  esac
  return 1
}

link_command() {
  target=$plugin_dir/modekeep~fs/fs
  if [ -e "$link" ] || [ -L "$link" ]; then
    if ! is_ours "$link"; then
      warn "$link is not modekeep's: left alone, the operator's command is $driver"
      return 0
    fi
    if [ "$(readlink "$link")" = "$target" ]; then return 0; fi
  fi
  act "link $link -> $target" make_link
}

make_link() {
  if mkdir -p "${link%/*}" 2>/dev/null && rm -f "$new_link" 2>/dev/null && ln -s "$target" "$new_link" 2>/dev/null; then
    rename "$new_link" "$link"
    say linked "$link -> $target"
  else
    warn "cannot write ${link%/*}: no link there, the operator's command is $driver"
  fi
}

# --- uninstall ------------------------------------------------------------------------------------------------------

as_in_mountinfo() { printf '%s' "$1" | sed 's/ /\\040/g'; }

# mounts_matching PATTERN: mount points below --root that match, here and where the first process lives.
mounts_matching() {
  mount_tables=${proc:-/proc}
  [ -r "$mount_tables/self/mountinfo" ] || return 1
  cat "$mount_tables/self/mountinfo" "$mount_tables/1/mountinfo" 2>/dev/null |
    base=$(as_in_mountinfo "$root/") pattern=$(as_in_mountinfo "$1") awk '
      index($5, ENVIRON["base"]) == 1 && index($5, ENVIRON["pattern"]) { print $5 }' | sort -u
}

refuse_while_mounted() {
  if mounted=$(mounts_matching '/volumes/modekeep~fs/'); then
    [ "$mounted" ] || return 0
    problem="volumes of modekeep/fs are mounted:"
  else
    mounted='' problem="cannot read ${proc:-/proc}/self/mountinfo, so volumes of modekeep/fs may be mounted"
  fi
  if [ "$force" ] && [ -z "$purge" ]; then
    [ "$aside" ] || warn "$problem going on because of --force"
    return 0
  fi
  printf '%serror:%s %s\n' "$red" "$plain_error" "$problem" >&2
  printf '%s\n' "$mounted" | sed -n '/./s/^/       /; 1,5p' | grep . >&2 || :
  printf '       without the driver the kubelet cannot unmount them and their pods hang in Terminating:\n' >&2
  printf '       drain the node first%s\n' "$([ "$purge" ] || printf ', or use --force')" >&2
  told=yes
  exit 1
}

remove_driver() {
  stage=$(mktemp -d "$plugins/.modekeep~fs.XXXXXX") || cannot_write
  # Into our own new directory, under a name that does not exist there: one rename with every mv.
  aside=$stage/gone
  mv "$driver_dir" "$aside" || die "cannot rename $driver_dir"
  fsync "$plugins"
  # A call of the kubelet's may have mounted since the last look; from here on none begins.
  refuse_while_mounted
  aside=''
  discard "$stage"
  stage=''
  say removed "$driver_dir"
}

purge_places() {
  below=$(mounts_matching "$root$state_dir/") || below='unknown'
  if [ "$below" ]; then
    warn "something is mounted below $root$state_dir: kept"
    return 0
  fi
  case $state_dir/ in
    */../* | */./*) warn "$root$state_dir is not a plain path: kept" ;;
    *modekeep*) act "remove the state in $root$state_dir" purge_state ;;
    *) warn "$root$state_dir does not look like modekeep's alone: kept" ;;
  esac
  act "remove $root$log_file and its older files" purge_logs
  act "remove $config_dir/config.json and config.example.json" purge_configuration
}

purge_state() {
  for entry in "$root$state_dir"/* "$root$state_dir"/.[!.]*; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    # What the configuration names, and the default source, are the pods' data and not modekeep's state.
    if [ "$entry" = "$root$volumes_dir" ] || grep -qF "\"${entry#"$root"}" "$config_dir/config.json" 2>/dev/null; then
      rmdir "$entry" 2>/dev/null || say kept "$entry: it holds data"
    else
      rm -rf "$entry"
    fi
  done
  rmdir "$root$volumes_dir" "$root$state_dir" "$root${volumes_dir%/*}" 2>/dev/null || :
  say purged "$root$state_dir"
}

purge_logs() {
  rm -f "$root$log_file" "$root$log_file".*
  case $log_dir in
    *modekeep*) rmdir "$root$log_dir" 2>/dev/null || : ;;
  esac
  say purged "$root$log_file"
}

purge_configuration() {
  rm -f "$config_dir/config.json" "$new_config" "$config_dir/config.example.json" "$new_example"
  rmdir "$config_dir" 2>/dev/null || :
  say purged "$config_dir"
}

uninstall() {
  if [ -d "$plugins" ]; then
    take_lock
    sweep
    check_driver_dir
  fi
  refuse_while_mounted
  if [ -d "$driver_dir" ]; then
    act "rename $driver_dir to a dot name, then remove it" remove_driver
  else
    say unchanged "no driver in $plugins"
  fi
  if is_ours "$link" && [ "$(readlink "$link")" = "$plugin_dir/modekeep~fs/fs" ]; then
    act "remove the link $link" rm -f "$link"
    [ "$dry" ] || say removed "$link"
  elif [ -e "$link" ] || [ -L "$link" ]; then
    say kept "$link: it does not lead to this driver"
  fi
  if [ "$purge" ]; then
    purge_places
  else
    for place in "$root$state_dir" "$root$log_dir" "$config_dir"; do
      if [ -e "$place" ]; then say kept "$place"; fi
    done
    say note 'to remove what was kept: install.sh --uninstall --purge'
  fi
}

# --------------------------------------------------------------------------------------------------------------------

main() {
  trap finish EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  parse_arguments "$@"
  if [ -z "$dry" ] && [ "$(id -u)" != 0 ]; then
    die 'this needs root' 'run it with sudo, or look first with --dry-run'
  fi
  [ "$proc" ] || [ "$root" ] || proc=/proc
  if [ "$mode" = install ]; then find_binary; fi
  choose_plugin_dir

  plugin_dir=${plugin_dir%/}
  plugins=$root$plugin_dir
  driver_dir=$plugins/modekeep~fs
  driver=$driver_dir/fs
  link=$root/usr/local/sbin/modekeep
  say 'plugin dir' "$plugins ($reason)"
  read_places
  stay_below_root

  if [ "$mode" = uninstall ]; then
    uninstall
    return 0
  fi
  make_plugin_dir
  warn_about_writers "$plugins" 'the driver'
  take_lock
  sweep
  make_places
  warn_about_writers "$config_dir" 'the configuration'
  install_driver
  install_config
  link_command
  if [ "$created" ] && [ -z "$root" ]; then
    say note 'the plugin directory is new: restart the kubelet, which looks for it only at its start'
  fi
}

# One call at the very end: a script that is cut off while it is downloaded does nothing, and of one that is replaced while it
# runs nothing more is read.
main "$@"; exit
