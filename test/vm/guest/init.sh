#!/bin/busybox sh
# First process of a guest, from the initial RAM disk: the guest's root is a directory of the machine, read-only, with a tmpfs
# over it. share NAME DIRECTORY mounts what the machine shows: host, the guest's root; modules, those of its kernel; exchange,
# where results go.
set -e
b=/bin/busybox
$b mkdir -p /proc /below /lib/modules /over /root
$b mount -t proc proc /proc
if $b grep -qw hostfs /proc/filesystems; then
  # User-mode Linux: hostfs shows the directory in which the kernel was started.
  # io_uring corrupts memory in this kind of kernel (Linux 6.6 and newer can refuse it).
  if [ -e /proc/sys/kernel/io_uring_disabled ]; then echo 2 >/proc/sys/kernel/io_uring_disabled; fi
  share() {
    case $1 in
      modules) path=/usr/lib/uml/modules ;;
      *) path=/$1 ;;
    esac
    # The option is the path alone before Linux 6.11, and "hostfs=" from then on.
    $b mount -t hostfs none "$2" -o "$path" 2>/dev/null || $b mount -t hostfs none "$2" -o "hostfs=$path"
  }
else
  for module in virtio_pci 9pnet_virtio 9p; do $b modprobe $module; done
  share() {
    case $1 in
      exchange) cache=none ;;
      *) cache=loose ;;
    esac
    $b mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,cache=$cache" "$1" "$2"
  }
fi
share host /below
share modules /lib/modules
$b modprobe overlay
$b mount -t tmpfs -o size=75% over /over
$b mkdir /over/upper /over/work
$b mount -t overlay -o lowerdir=/below,upperdir=/over/upper,workdir=/over/work root /root
for directory in dev etc lib/modules exchange proc run sys tmp usr/local/sbin; do
  $b mkdir -p /root/$directory
done
# A root without a shell has busybox alone.
if ! [ -e /root/bin/sh ]; then $b chroot /root /bin/busybox --install -s; fi
$b mount --move /lib/modules /root/lib/modules
share exchange /root/exchange
for name in modprobe poweroff; do $b cp $b /root/usr/local/sbin/$name; done
$b umount /proc
exec $b switch_root /root /bin/sh /exchange/run.sh
