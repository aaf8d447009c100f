# Imports the archive $1 into a containerd of its own below the empty directory $2, and prints its images. In namespaces of its own.
set -e
mount -t tmpfs tmpfs "$2"
mount -t tmpfs tmpfs /run
cat >"$2/config.toml" <<END
version = 2
root = "$2/root"
state = "$2/state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "$2/socket"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
END
containerd --config "$2/config.toml" >"$2/log" 2>&1 &
client() { command ctr --address "$socket" --namespace k8s.io "$@"; }
socket="$2/socket"
for _ in $(seq 150); do client version >/dev/null 2>&1 && break; sleep 0.2; done
client images import --snapshotter native "$1" >&2
client images import --snapshotter native --digests --base-name docker.io/library/a "$1" >&2
client images ls
kill $!
wait $! || true
