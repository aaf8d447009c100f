#!/bin/sh
# A node for the commands of a page: this machine's root below an overlay, with processes, mounts and places of its own.
# Run as: unshare --mount --pid --fork --kill-child --propagation private sh node.sh CHECKOUT EMPTY_DIRECTORY SCRIPT
set -eu
checkout=$1 top=$2 script=$3
mount -t tmpfs -o mode=0755 stage "$top"
mkdir "$top/upper" "$top/work" "$top/node"
mount -t overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" node "$top/node"
cd "$top/node"
mount -t proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=0755 srv srv
# What the machine itself may have of modekeep.
for place in etc/modekeep var/lib/modekeep var/log/modekeep var/lib/kubelet usr/local/sbin/modekeep usr/libexec/kubernetes; do
  rm -rf "./$place"
done
mkdir -p root/modekeep srv/volumes usr/libexec/kubernetes/kubelet-plugins/volume/exec var/lib/kubelet/pods
cp "$checkout/install.sh" root/modekeep/
touch root/modekeep/modekeep
mount --bind "$checkout/dist/modekeep" root/modekeep/modekeep
cp "$checkout/test/docs/node-functions.sh" "$script" tmp/
# Not chroot: what the first process sees is what kubelet would see.
mkdir old
pivot_root . old
cd /
umount --lazy old
rmdir old
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb \
  bash "/tmp/${script##*/}"
