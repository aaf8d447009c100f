export const GROUP_FAULT_ENTRIES = {
  'group-conflict': {
    meaning: 'Another pod uses the volume or a part of it with another group. At least one of the two needs a walk.',
    remedy:
      'Use `ownership: idmap` in both, the same `fsGroup` in both, or wait. `modekeep status` shows the other pod, the log names it as `heldBy`.',
  },
  'mount-unrecorded': {
    meaning:
      'A mount of the volume has no record any more. The group that its pod relies on is unknown, so other groups and restores are refused.',
    remedy:
      'Delete the pod that `modekeep status` lists under "mounts without a record", or use the group of the volume\'s root. With CSI kubelet\'s next call writes the record again.',
  },
  'group-not-applied': {
    meaning: "The kernel or the file system refused to give the root of the volume the pod's group.",
    remedy:
      'Remove the reason in the message: `chattr -i -a DIR`, space in the quota, or `no_root_squash` of the export. Or use `ownership: idmap` or `none`. An existing mount stays, and `modekeep status` shows it as `partial`.',
  },
  'group-partial': {
    meaning: 'The walk skipped inodes, or the pod has no `fsGroup` and no group was applied. The mount succeeds.',
    remedy:
      'Remove the reasons that `modekeep status` shows below the volume, or set `fsGroup` in the `securityContext` of the pod. Symbolic links do not count.',
  },
  'group-changed': {
    meaning:
      'An administrator or a program changed the owner, group or mode of the volume after modekeep applied the group, and modekeep does not undo that.',
    remedy:
      'Run `modekeep apply DIR --fsgroup G --force` (with `--group-access grant` if the pod has it). On a server run `chgrp G` for the root of the volume.',
  },
  'identity-twice': {
    meaning: 'Two disks or images have the same identity, or the records of this volume are those of another one.',
    remedy:
      'Put the original back, or give the copy a new UUID (`tune2fs -U random`, `xfs_admin -U generate`, `btrfstune -u`), or use `ownership: idmap`. If it is the new original, run `modekeep restore DIR --force` or `modekeep gc --forget VOLUME`.',
    see: 'volumes.md#what-to-know-about-disks-and-images',
  },
  'idmap-impossible': {
    meaning: "The file system, the kernel or the node's limits do not permit an idmapped mount of this volume.",
    remedy:
      'Use `ownership: auto`, which walks instead. Raise `user.max_user_namespaces` if the message names it. After an interrupted walk, run `modekeep restore DIR`. The log names the path of a system group.',
    see: 'any-volume.md#groups-of-the-system',
  },
  'set-gid': {
    meaning:
      'A rule does not permit the set-gid bit on the root of the volume, or modekeep could not remove the bit that it had set. Without the bit new files do not get the group.',
    remedy:
      'Set option `setGid` or annotation `modekeep/set-gid` to `root` where a rule has `"setGid": "root"`. Remove the cause in the message, then run `modekeep gc`.',
    see: 'any-volume.md#new-files',
  },
  'root-squash': {
    meaning: 'The NFS server maps root to another user, so this node cannot change the group of files.',
    remedy: 'Export with `no_root_squash`, or set the group on the server and remove option `ownership`.',
  },
  'restore-in-use': {
    meaning: 'A pod uses the volume with the group that a restore would remove.',
    remedy: 'Delete the pods that `modekeep status` lists, then call `modekeep restore` again.',
  },
  'restore-pending': {
    meaning:
      'The restore of a volume failed, or skipped files that their users changed since modekeep applied the group.',
    remedy:
      'A failed restore runs again at the next unmount, or by `modekeep restore DIR`. For skipped files `modekeep restore VOLUME --force` restores these too, and `modekeep gc --forget VOLUME` accepts them as they are.',
    see: 'commands.md#restore',
  },
  'volume-busy': {
    meaning:
      'A program creates, deletes or renames entries of the volume faster than the walk can visit them. The message names the directory.',
    remedy:
      "Stop that program, or use `ownership: idmap`, which visits no file. Kubelet's next call continues the walk.",
  },
  'hard-links': {
    meaning:
      'The volume has more hard links than a walk can keep in memory: two million names of one inode, or 400,000 inodes with names outside.',
    remedy: 'Remove hard links, or use `ownership: idmap`. `modekeep restore` restores what was changed before.',
  },
  'tree-invalid': {
    meaning: 'A directory is nested too deep for a walk, or lists the same entries repeatedly.',
    cause:
      'A program or an attack creates such trees. A repeating directory is a damaged file system or a faulty server.',
    remedy: 'Remove the nested directories with `rm -r`, or use `ownership: idmap`. Run fsck for the file system.',
  },
  'overlay-inodes': {
    meaning: 'The volume is on an overlay of several file systems whose inodes have no unique numbers.',
    remedy: 'Mount the overlay with `xino=on`, or put all of its layers on one file system.',
  },
  capability: {
    meaning: 'The kernel removed a set-gid bit, because the process that called modekeep has no CAP_FSETID.',
    remedy:
      "Add `FSETID` to the capabilities of that container, as `driver/kubernetes` does. Kubelet's next call continues.",
  },
}

export const DISK_FAULT_ENTRIES = {
  'disk-content': {
    meaning: 'The disk or image does not have the file system that `fsType` names, or that file system is damaged.',
    remedy:
      'Create it with `mkfs`, correct `fsType`, or run `fsck`. modekeep never formats and never repairs a disk. A log that must be replayed needs a writable disk.',
  },
  'kernel-module': {
    meaning: 'The kernel cannot mount this file system, or has no loop device.',
    remedy: 'Run `modprobe` for `ext4`, `loop`, `btrfs`, …, and add the module to `/etc/modules-load.d`.',
  },
  'disk-busy': {
    meaning: 'Something else on this node uses the disk or image, or a mounted file system has its UUID.',
    remedy:
      'End the use that the message names. `lsblk`, `losetup -a`, `/proc/swaps` and `dmsetup ls` show more. All pods must mount one disk in one way.',
    see: 'volumes.md#disks-and-images-that-are-still-in-use',
  },
  'disk-read-only': {
    meaning: 'The disk is a read-only device, or the image cannot be written.',
    remedy: 'Set `readOnly` on the volume.',
  },
  'disk-type': {
    meaning: 'The source is not a block device below `/dev` and not an image file.',
    remedy:
      'Name the disk by its link below `/dev/disk/by-id`, or by its name in `/dev`. Links that udev did not create are refused.',
  },
  'disk-errors': {
    meaning:
      'The disk of the volume failed to write, so modekeep keeps all records of it. Kubelet repeats the mount, and a restore stays pending.',
    remedy: 'Check `dmesg` and the disk.',
  },
}

export const SERVER_FAULT_ENTRIES = {
  'program-missing': {
    meaning: 'A helper program is not on this node, or cannot be started.',
    remedy: 'Install the package that the message names. If kubelet runs in a container, install it in that container.',
  },
  'program-failed': {
    meaning: 'A helper program such as `mount.nfs` failed, timed out, or mounted nothing.',
    cause: 'The output follows in the message, but not if the program had secrets.',
    remedy:
      'Call the program by hand on the node to see its output. After a timeout check the network first, then raise `helperTimeoutSeconds`.',
    see: 'options.md#the-nodes-configuration',
  },
  'unmount-forced': {
    meaning: 'A FUSE daemon or a server did not respond during an unmount or a check. A daemon is then ended.',
    cause: 'Data that the daemon had not written yet may be lost.',
    remedy: 'Repair the server or the daemon. The unmount itself succeeds.',
  },
  unresponsive: {
    meaning:
      'A server or FUSE daemon did not respond within five seconds, or a process keeps a directory of the path locked.',
    remedy:
      'Repair the server or end the daemon on the node. Kubelet tries again by itself, a command is called again. Other mounts are not affected.',
  },
  'unresponsive-call': {
    meaning:
      'The server or daemon stopped responding during the call, and the call was given up after `helperTimeoutSeconds`.',
    remedy:
      "End the daemon, or abort its connection: `echo 1 > /sys/fs/fuse/connections/N/abort` with the minor number of the mount's device. The next call, or the next unmount for a restore, continues.",
  },
  'volume-failed': {
    meaning:
      'The file system of the volume returned an error during a walk or a restore: its server, daemon or disk failed, or SELinux denied the access. Each change so far is recorded.',
    remedy:
      'Repair what the message names. The next call, or the next unmount for a restore, continues where this one was.',
  },
  'walk-given-up': {
    meaning:
      'A process that worked on the volume was given up, because the kernel kept it waiting for `helperTimeoutSeconds`.',
    cause:
      'The disk does not respond, or another process keeps a directory locked (`handle_userfault` or `request_wait_answer` in its `/proc/PID/wchan`).',
    remedy:
      'End that process or repair the disk. Kubelet tries again. Walks of this volume are refused early for two minutes.',
  },
  'worker-failed': {
    meaning: 'A worker process of modekeep could not be started, or was ended.',
    cause: 'The node has no free memory, process numbers or open files, or the pod of modekeep ended.',
    remedy: 'Free the resource that the message names. The next call finishes the work.',
  },
  'in-progress': {
    meaning: 'A CSI request needs more time. Nothing failed, and kubelet repeats the request.',
    remedy:
      'Wait. `modekeep status` shows the progress of a walk. Without a walk, check the server or disk of the volume.',
  },
}
