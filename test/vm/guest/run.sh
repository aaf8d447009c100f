# First process of a guest once its root is mounted. /exchange/command.sh is what the guest is for; its exit status goes to
# /exchange/status, all it prints to the console.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=0755 run /run
mount -t tmpfs -o mode=0755 lib /var/lib/modekeep 2>/dev/null
mount -t cgroup2 cgroup /sys/fs/cgroup 2>/dev/null
mount -t securityfs security /sys/kernel/security 2>/dev/null
ip link set lo up
# The kernel loads what a mount needs, like the ciphers of CIFS.
echo /usr/local/sbin/modprobe >/proc/sys/kernel/modprobe
for module in loop fuse xfs btrfs squashfs nfs nfsv3 nfsv4 nfsd cifs veth; do
  modprobe $module || echo "modprobe $module failed"
done
sh /exchange/command.sh
echo $? >/exchange/status
sync
poweroff -f
