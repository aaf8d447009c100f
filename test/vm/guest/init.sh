#!/bin/busybox sh
# First process of a guest, from the initial RAM disk: the guest's root is the machine's own, read-only, with a tmpfs over it.
# hostfs shows the directory in which the kernel was started: /host is the machine's root, /exchange is where results go.
set -e
b=/bin/busybox
hostfs() {
  # The option is the path alone before Linux 6.11, and "hostfs=" from then on.
  $b mount -t hostfs none "$2" -o "$1" 2>/dev/null || $b mount -t hostfs none "$2" -o "hostfs=$1"
}
$b mkdir -p /proc /below /lib/modules /over /root
$b mount -t proc proc /proc
# io_uring corrupts memory in this kind of kernel (Linux 6.6 and newer can refuse it).
if [ -e /proc/sys/kernel/io_uring_disabled ]; then echo 2 >/proc/sys/kernel/io_uring_disabled; fi
hostfs /host /below
hostfs /usr/lib/uml/modules /lib/modules
$b modprobe overlay
$b mount -t tmpfs -o size=75% over /over
$b mkdir /over/upper /over/work
$b mount -t overlay -o lowerdir=/below,upperdir=/over/upper,workdir=/over/work root /root
$b mkdir -p /root/lib/modules /root/exchange /root/usr/local/sbin
$b mount --move /lib/modules /root/lib/modules
hostfs /exchange /root/exchange
for name in modprobe poweroff; do $b cp $b /root/usr/local/sbin/$name; done
$b umount /proc
exec $b switch_root /root /bin/sh /exchange/run.sh
