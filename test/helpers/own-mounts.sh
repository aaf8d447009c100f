#!/bin/sh
# Node in a mount namespace of its own: whatever a file of tests mounts is seen by no other and goes with it.
exec unshare --mount --propagation private "$(dirname "$0")/../../node_modules/.bin/node" "$@"
