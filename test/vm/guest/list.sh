# What modekeep does on a kernel and a processor, in a guest that has busybox and the C library alone. Each case is a function, which
# ends with `fail` where a result is wrong. /exchange/list gets a line for each: status, title and reason, with tabs between them.
# MODEKEEP_LAB_ONLY chooses cases by their titles. The guest's disks: ext4, xfs, btrfs, and one for an image.
mkdir -p /usr/local/bin /volumes /xfs /btrfs /images /var/log /var/lib/modekeep
cp /exchange/modekeep /usr/local/bin/modekeep
modprobe virtio_blk
for number in 0 1 2 3 4 5 6 7; do [ -e /dev/loop$number ] || mknod /dev/loop$number b 7 $number; done
export MODEKEEP_CONFIG=/etc/modekeep.json NO_COLOR=1
cat >$MODEKEEP_CONFIG <<END
{
  "stateDir": "/var/lib/modekeep",
  "logFile": "/var/log/modekeep.log",
  "allow": [
    { "sources": ["/volumes/*", "/xfs/*", "/btrfs/*"] },
    { "sources": ["/images/*"], "fsTypes": ["ext4"] }
  ]
}
END
# modekeep maps a group of the system, such as 100, from mounts with nosuid alone.
mount -t ext4 -o nosuid /dev/vda /volumes
uname -srm
modekeep version

fail() {
  echo "$*" >/tmp/reason
  exit 1
}

# expect WHAT IS WANTED
expect() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }

check() {
  echo "$1" | grep -Eq -e "$MODEKEEP_LAB_ONLY" || return 0
  echo 'a command failed' >/tmp/reason
  # With "set -e" a subshell that is a condition would go on after a command that fails.
  (
    set -e
    "$2"
  )
  # shellcheck disable=SC2181
  if [ $? = 0 ]; then
    echo "passed: $1"
    printf 'passed\t%s\t\n' "$1" >>/exchange/list
  else
    echo "failed: $1: $(cat /tmp/reason)"
    printf 'failed\t%s\t%s\n' "$1" "$(tr '\n\t' '  ' </tmp/reason)" >>/exchange/list
    isFailed=1
  fi
}

is_mounted() { grep -qF " $1 " /proc/self/mounts; }
directory_of() { echo "/var/lib/kubelet/pods/$1/volumes/modekeep~fs/v"; }

# mount_volume POD SOURCE OWNERSHIP GROUP [MORE], where MORE are further options as JSON, with a comma before them
mount_volume() {
  mkdir -p "$(directory_of "$1")"
  options="{\"source\":\"$2\",\"ownership\":\"$3\",\"kubernetes.io/fsGroup\":\"$4\"$5}"
  expect "mount with $options" "$(modekeep mount "$(directory_of "$1")" "$options" 2>&1)" '{"status":"Success"}'
}

unmount_volume() {
  expect "unmount of pod $1" "$(modekeep unmount "$(directory_of "$1")" 2>&1)" '{"status":"Success"}'
  if is_mounted "$(directory_of "$1")"; then fail "pod $1 is still mounted"; fi
}

# Makes a directory with six files of group 100.
make_tree() {
  # It may be a mount point.
  rm -rf "${1:?}"/*
  mkdir -p "$1/sub"
  for name in plain program sub/inner; do echo content >"$1/$name"; done
  ln "$1/plain" "$1/sub/hard-link"
  mkfifo "$1/pipe"
  ln -s plain "$1/link"
  chown -hR 0:100 "$1"
  chmod 0751 "$1/program"
  chmod 0600 "$1/plain"
}

# Lists owner, group and mode of each inode below a directory.
list_ownership() { find "$1" -exec stat -c '%n %u:%g %a' {} + | sort; }

# Counts the inodes below a directory that have a group. No walk changes symbolic links.
count_group() { find "$1" ! -type l -group "$2" | wc -l; }

reports_init() {
  case $(modekeep init 2>&1) in
    '{"status":"Success",'*) ;;
    *) fail "init: $(modekeep init 2>&1)" ;;
  esac
}

finds_no_fault() {
  modekeep doctor --json >/tmp/doctor || true
  [ -s /tmp/doctor ] || fail 'doctor printed nothing'
  expect 'faults' "$(tr '{' '\n' </tmp/doctor | grep -E '"level": ?"fault"')" ''
}

mounts_without_change() {
  make_tree /volumes/none
  before=$(list_ownership /volumes/none)
  mount_volume none /volumes/none none 2000
  expect content "$(cat "$(directory_of none)/plain")" content
  expect ownership "$(list_ownership /volumes/none)" "$before"
  unmount_volume none
}

walks_and_restores() {
  make_tree /volumes/walk
  before=$(list_ownership /volumes/walk)
  inodes=$(count_group /volumes/walk 100)
  mount_volume walk /volumes/walk walk 2000 ',"restoreOnUnmount":"true"'
  expect 'inodes of the group' "$(count_group "$(directory_of walk)" 2000)" "$inodes"
  mount_volume walk /volumes/walk walk 2000 ',"restoreOnUnmount":"true"'
  unmount_volume walk
  expect 'restored ownership' "$(list_ownership /volumes/walk)" "$before"
}

maps_the_group() {
  make_tree /volumes/idmap
  before=$(list_ownership /volumes/idmap)
  mount_volume idmap /volumes/idmap idmap 2000
  expect 'mapped group' "$(stat -c %g "$(directory_of idmap)/plain")" 2000
  : >"$(directory_of idmap)/new"
  chown 0:2000 "$(directory_of idmap)/new"
  expect 'group of a new file on disk' "$(stat -c %g /volumes/idmap/new)" 100
  rm /volumes/idmap/new
  expect 'ownership on disk' "$(list_ownership /volumes/idmap)" "$before"
  unmount_volume idmap
}

mounts_an_image() {
  cp /dev/vdd /images/disk.img
  mkdir -p /mnt
  mount -o loop /images/disk.img /mnt
  make_tree /mnt
  umount /mnt
  mount_volume image /images/disk.img walk 2000 ',"kubernetes.io/fsType":"ext4","restoreOnUnmount":"true"'
  expect 'group in the image' "$(stat -c %g "$(directory_of image)/plain")" 2000
  unmount_volume image
  for _ in 1 2 3 4 5; do if losetup -a | grep -q /images/; then sleep 1; fi; done
  expect 'loop devices' "$(losetup -a | grep /images/)" ''
  mount -o loop /images/disk.img /mnt
  expect 'restored group' "$(stat -c %g /mnt/plain)" 100
  umount /mnt
}

heals() {
  make_tree /volumes/heal
  mount_volume heal /volumes/heal walk 2000
  umount "$(directory_of heal)"
  modekeep heal || fail "heal ended with status $?"
  is_mounted "$(directory_of heal)" || fail 'nothing is mounted after heal'
  expect content "$(cat "$(directory_of heal)/plain")" content
  unmount_volume heal
}

walks_2000_files() {
  mkdir /volumes/many
  for directory in 0 1 2 3 4 5 6 7 8 9; do
    mkdir "/volumes/many/$directory"
    file=0
    while [ "$file" -lt 200 ]; do
      : >"/volumes/many/$directory/$file"
      file=$((file + 1))
    done
  done
  chown -R 0:100 /volumes/many
  mount_volume many /volumes/many walk 2000 ',"restoreOnUnmount":"true"'
  expect 'inodes of the group' "$(count_group /volumes/many 2000)" 2011
  unmount_volume many
  expect 'restored inodes' "$(count_group /volumes/many 100)" 2011
}

# keeps_identity TYPE DISK: the disk gets another loop device between two pods.
keeps_identity() {
  losetup /dev/loop5 "$2"
  mount -t "$1" /dev/loop5 "/$1"
  make_tree "/$1/data"
  before=$(list_ownership "/$1/data")
  mount_volume first "/$1/data" walk 2000
  unmount_volume first
  umount "/$1"
  losetup -d /dev/loop5
  losetup /dev/loop6 "$2"
  mount -t "$1" /dev/loop6 "/$1" || fail "$1 on the other device cannot be mounted"
  mount_volume second "/$1/data" walk 3000 ',"restoreOnUnmount":"true"'
  expect 'group of the second pod' "$(stat -c %g "/$1/data/plain")" 3000
  unmount_volume second
  expect 'restored ownership' "$(list_ownership "/$1/data")" "$before"
  umount "/$1"
  losetup -d /dev/loop6
}
keeps_identity_on_xfs() { keeps_identity xfs /dev/vdb; }
keeps_identity_on_btrfs() { keeps_identity btrfs /dev/vdc; }

# A kernel that is locked down stays so: this is the last case.
works_locked_down() {
  echo confidentiality >/sys/kernel/security/lockdown || fail 'the kernel was built without lockdown'
  mounts_without_change
  walks_and_restores
  maps_the_group
  mounts_an_image
  heals
}

# A kernel before 5.12 has no mount_setattr.
is_refused() {
  make_tree /volumes/refused
  before=$(list_ownership /volumes/refused)
  mkdir -p "$(directory_of refused)"
  options='{"source":"/volumes/refused","ownership":"walk","kubernetes.io/fsGroup":"2000"}'
  reply=$(modekeep mount "$(directory_of refused)" "$options" 2>&1)
  case $reply in
    '{"status":"Failure",'*'modekeep needs Linux 5.12 or newer'*) ;;
    *) fail "mount: $reply" ;;
  esac
  if is_mounted "$(directory_of refused)"; then fail 'the volume is mounted'; fi
  expect ownership "$(list_ownership /volumes/refused)" "$before"
  unmount_volume refused
  expect records "$(find /var/lib/modekeep -path '*mounts*' -type f)" ''
}

reports_the_old_kernel() {
  modekeep doctor --json >/tmp/doctor || true
  tr '{' '\n' </tmp/doctor | grep -E '"level": ?"fault"' | grep -q 'Linux 5.12' || fail 'doctor does not name Linux 5.12'
}

isFailed=0
check 'init reports its capabilities' reports_init
case $(uname -r) in
  5.10.*)
    check 'doctor reports that the kernel is older than 5.12' reports_the_old_kernel
    check 'a mount is refused with the Linux version that is needed, and nothing is changed' is_refused
    exit $isFailed
    ;;
esac
check 'doctor finds no fault' finds_no_fault
check 'a mount without ownership changes no inode' mounts_without_change
check 'a walk on ext4 applies the group and the unmount restores every inode' walks_and_restores
check 'idmap on ext4 shows the group and changes no inode' maps_the_group
check 'an ext4 image is walked, restored, and its loop device detached' mounts_an_image
check 'heal mounts a volume again that was unmounted' heals
check 'a walk and a restore of 2,000 files reach every inode' walks_2000_files
check 'on xfs, a volume whose disk has another device gets its first group back' keeps_identity_on_xfs
check 'on btrfs, a volume whose disk has another device gets its first group back' keeps_identity_on_btrfs
check 'with the kernel locked down for confidentiality, walks, mappings, images and heal work' works_locked_down
exit $isFailed
