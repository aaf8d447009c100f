#!/bin/bash
# A FlexVolume driver as they are commonly written: a bind mount, options read with jq. Kubelet's walk gives the group.
# Two options are read; most such drivers read more, each with a jq of its own.

reply() {
  echo "{\"status\": \"$1\", \"message\": \"$2\"}"
  exit "$3"
}

command -v jq >/dev/null 2>&1 || reply Failure 'jq is missing' 1

case "$1" in
  init)
    echo '{"status": "Success", "capabilities": {"attach": false}}'
    ;;
  mount)
    directory=$2
    source=$(jq -r '.source // empty' <<<"$3")
    access=$(jq -r '."kubernetes.io/readwrite" // "rw"' <<<"$3")
    [ -n "$source" ] || reply Failure 'source is missing' 1
    if ! mountpoint -q "$directory"; then
      mkdir -p "$directory"
      mount --bind -o "$access" "$source" "$directory" >/dev/null 2>&1 || reply Failure "cannot mount $source" 1
    fi
    reply Success mounted 0
    ;;
  unmount)
    if mountpoint -q "$2"; then umount "$2" >/dev/null 2>&1 || reply Failure "cannot unmount $2" 1; fi
    reply Success unmounted 0
    ;;
  *)
    reply 'Not supported' "$1" 0
    ;;
esac
