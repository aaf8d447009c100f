#!/bin/sh
# The shortest FlexVolume driver that works: a bind mount. It says nothing of fsGroup, so the kubelet gives the group.
reply() { printf '{"status":"%s","message":"%s"}\n' "$1" "$2"; }

case $1 in
  init) printf '{"status":"Success","capabilities":{"attach":false}}\n' ;;
  mount)
    source=$(printf '%s' "$3" | sed -n 's/.*"source":"\([^"]*\)".*/\1/p')
    if said=$(mount --bind "$source" "$2" 2>&1); then reply Success ''; else reply Failure 'cannot mount'; fi
    ;;
  unmount) if umount "$2" 2>/dev/null; then reply Success ''; else reply Failure 'cannot unmount'; fi ;;
  *) reply 'Not supported' '' ;;
esac
