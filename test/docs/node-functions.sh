#!/bin/bash
# What happens on a node beside what its administrator does, for the lines "<!-- stage: … -->" of a page.
PLUGINS=/usr/libexec/kubernetes/kubelet-plugins/volume/exec
PODS=/var/lib/kubelet/pods
ORDINARY='{ "allow": [{ "sources": ["/srv/volumes/*"] }] }'

kubelet() {
  (exec -a /usr/bin/kubelet sleep 3600) &
}

# installed [CONFIGURATION]: the driver, and what pods of the examples may mount.
installed() {
  /root/modekeep/install.sh >/dev/null
  echo "${1:-$ORDINARY}" >/etc/modekeep/config.json
}

# files VOLUME: four files as somebody left them.
files() {
  mkdir -p "/srv/volumes/$1"
  for file in 644:readme 600:secret 755:program 640:notes; do
    echo content >"/srv/volumes/$1/${file#*:}"
    chmod "${file%%:*}" "/srv/volumes/$1/${file#*:}"
  done
}

# pod NAME OPTION=VALUE...: kubelet's call for a pod with fsGroup 2000, or with the one named fsGroup=.
pod() {
  name=$1 group=2000 fs_type='' options=''
  shift
  for option in "$@"; do
    case $option in
      fsGroup=*) group=${option#*=} ;;
      fsType=*) fs_type=${option#*=} ;;
      *) options="$options,\"${option%%=*}\":\"${option#*=}\"" ;;
    esac
  done
  mkdir -p "$PODS/$name/volumes/modekeep~fs/data"
  answer=$("$PLUGINS/modekeep~fs/fs" mount "$PODS/$name/volumes/modekeep~fs/data" \
    "{\"kubernetes.io/fsType\":\"$fs_type\",\"kubernetes.io/readwrite\":\"rw\",\"kubernetes.io/pod.name\":\"$name\",\"kubernetes.io/pod.namespace\":\"default\",\"kubernetes.io/mounterArgs.FsGroup\":\"$group\"$options}")
  case $answer in
    *'"Success"'*) ;;
    *) rmdir "$PODS/$name/volumes/modekeep~fs/data" && echo "$answer" ;;
  esac
}

# gone NAME: kubelet's call when a pod goes.
gone() {
  "$PLUGINS/modekeep~fs/fs" unmount "$PODS/$1/volumes/modekeep~fs/data" | grep -v '^{"status":"Success"}$'
  rmdir "$PODS/$1/volumes/modekeep~fs/data"
}

# What a restart of the node leaves: no mounts, all files, another boot.
reboot() {
  grep -o "$PODS/[^ ]*" /proc/self/mountinfo | while read -r place; do umount "$place"; done
  cat /proc/sys/kernel/random/uuid >/tmp/boot_id
  mount --bind /tmp/boot_id /proc/sys/kernel/random/boot_id
}
