export const RECORD_FAULT_ENTRIES = {
  journal: {
    meaning:
      'The ownership journal of the volume is missing, damaged or locked, or its disk is full or read-only. Nothing more is changed, and unmounts work.',
    remedy:
      "Make the disk writable or free space: kubelet's next call continues. For a damaged or missing journal follow the page. For another format install the version that wrote it.",
    see: 'operations.md#the-journal-is-damaged',
  },
  'journal-exposed': {
    meaning: 'Users other than root can replace the journal of the volume, which decides what root changes.',
    remedy: 'Run `chown root` and `chmod go-w` for the directories that `modekeep doctor` names.',
  },
  'journal-full': {
    meaning: 'The journal reached `stateQuota`, or all journals reached a tenth of the file system of `stateDir`.',
    remedy:
      'Run `modekeep gc`, raise `stateQuota`, use a larger disk, or restore the volume that the message names. Unmounts, restores and mounts without `ownership` work.',
    see: 'options.md#the-nodes-configuration',
  },
  'format-unknown': {
    meaning: 'Another version of modekeep wrote this record. Unmounts work without it.',
    remedy:
      'Install that version, which can restore the volume. If the record is not needed any more, move the file away. `modekeep status` and `doctor` list such records.',
  },
  'record-damaged': {
    meaning:
      'The content of a record does not match its checksum. The record is not used, and its volume accepts no other group while the mount exists.',
    remedy:
      'Check the disk. The next mount or walk writes a new record. Restore a volume with `modekeep restore DIR`, then move the file away. For a container delete the pod that `crictl inspect` shows.',
  },
  'export-damaged': {
    meaning:
      '`modekeep journal import` cannot use the file: it is damaged, another file, or of another version. Nothing was changed.',
    remedy: 'Export the journal again, and compare the SHA-256 of both files.',
  },
  'volume-unknown': {
    meaning: 'The volume has no record, or is not at its recorded path now.',
    remedy:
      'Use a name that `modekeep status` lists. Mount or put back the volume that the message names, then repeat the command. `modekeep gc --forget VOLUME` is only for a volume that does not exist any more.',
  },
  'records-former': {
    meaning:
      'The volume has older records under a name that another kernel or an earlier version used. Nothing is lost.',
    remedy:
      'Restore by the newer records first, then by the older ones. On an older kernel start a newer one before the volume is walked again.',
    see: 'mounts.md#a-volumes-name-and-the-kernel',
  },
  'records-kept': {
    meaning: '`modekeep gc` kept a record that a mount, a walk or a restore may need.',
    remedy: 'Run the command in the message. While one mount record cannot be read, `gc` keeps all volumes.',
    see: 'commands.md#gc',
  },
  'cleanup-failed': {
    meaning:
      'A warning of the log: modekeep could not remove leftovers of an earlier or interrupted call. The current call is not affected.',
    remedy:
      'Later calls, `modekeep heal` or `modekeep gc` try again. Until then leftovers may keep a volume busy. If it continues, remove the cause in the message.',
  },
}

export const DIRECTORY_FAULT_ENTRIES = {
  'mount-directory': {
    meaning: 'Something else is mounted at the mount directory, or it is not an empty directory that kubelet created.',
    cause: 'modekeep unmounts only its own mounts, and mounts only in volume directories of kubelet.',
    remedy: 'Inspect it with `findmnt --mountpoint DIR`, then unmount it or delete the pod.',
  },
  'options-changed': {
    meaning:
      'The options of a mounted volume changed, and it cannot be replaced: a tmpfs would lose its files, a published CSI volume is in use.',
    remedy: 'Delete the pod. Its successor gets the new options.',
  },
  'unmount-busy': {
    meaning:
      'The mount was removed, but a process still uses the file system. On a disk or image, a mount by another node would now damage it.',
    remedy:
      'End the processes in the message. A disk keeps the unmount failing for `busyUnmountSeconds` (60), then `modekeep status` shows it as `busy`.',
    see: 'volumes.md#disks-and-images-that-are-still-in-use',
  },
  'pod-directory': {
    meaning:
      'The volume is unmounted, but files remain in the directory of its pod, so kubelet cannot remove the directory. modekeep never removes a file.',
    remedy: 'Move the files that the message names elsewhere, or remove them. Then run `modekeep heal`.',
  },
  'mount-namespace': {
    meaning: 'This process is in another mount namespace than the mounts of modekeep, or may not make a mount.',
    remedy: 'On the node run `nsenter --target 1 --mount modekeep status`. Do not run it in a `PrivateMounts` service.',
  },
  'pod-gone': {
    meaning: 'The pod of a mount was deleted while kubelet had no driver, or may have been deleted.',
    remedy:
      'Run `modekeep heal`. If it keeps the mount, restart kubelet with the driver installed. If `kubectl get pod -A` does not list the uid, run `modekeep unmount DIR` and `rmdir DIR`.',
    see: 'mounts.md#mounts-of-deleted-pods',
  },
}

export const CSI_FAULT_ENTRIES = {
  'csi-pod-info': {
    meaning: 'modekeep cannot verify that kubelet, and not the author of the pod, names the pod of the volume.',
    remedy:
      'Set `podInfoOnMount: true` in the CSIDriver object. Start `modekeep csi` with `--api-server` and `--api-access`, or set `csiPodInfoOnMount` in the configuration. The parentheses contain the reason.',
    see: 'csi.md#which-pod-a-volume-is-for',
  },
  'csi-single-writer': {
    meaning: 'Another pod uses the PersistentVolume, whose access mode is `ReadWriteOncePod`.',
    remedy: 'Delete that pod, or use another access mode. If the pod does not exist any more, run `modekeep heal`.',
  },
  'csi-target': {
    meaning: "The target path is not below kubelet's directory.",
    remedy: 'Start `modekeep csi` with `--kubelet-dir` and the `--root-dir` of that kubelet.',
  },
  'target-filled': {
    meaning: 'The target path is unmounted, but files were written to it while nothing was mounted.',
    remedy: 'Check the files in the directory, and remove them.',
  },
  'csi-attribute': {
    meaning: 'An attribute of the volume does not exist.',
    remedy: 'Use the attributes that the message lists. Keys below `kubernetes.io/` are for FlexVolume.',
    see: 'csi.md#volumes',
  },
  'csi-fs-group': {
    meaning: 'Kubelet before 1.23 does not pass `fsGroup` to CSI drivers, so `ownership` has no group.',
    remedy: 'Remove option `ownership`, or use the FlexVolume driver.',
  },
  'csi-request': {
    meaning: 'A field of the CSI request is missing or unsupported, for example `volumeMode: Block`.',
    remedy: 'Remove `volumeMode: Block` from the claim. Kubelet makes none of the other mistakes.',
  },
  'csi-server': {
    meaning: '`modekeep csi --probe` found no server, or one that is not ready. Volumes stay as they are.',
    remedy: 'Read the log: `kubectl -n kube-system logs POD -c csi`. The container is restarted after four failures.',
  },
  'server-directory': {
    meaning:
      "A server cannot use kubelet's directory or its socket there. Another user who could replace the socket would receive the Secrets of pods.",
    remedy:
      'Give the `--root-dir` of kubelet as `--kubelet-dir`. Make the path a directory without links, with `chown root` and `chmod go-w`. End another server at the socket.',
  },
}

export const NODE_FAULT_ENTRIES = {
  'config-owner': {
    meaning:
      "A user other than root can change the node's configuration, so it is not used. Mounts fail, and unmounts work.",
    remedy:
      'Check its content first. Then run `chown root` and `chmod go-w` for the file and the directories of its path.',
  },
  'config-invalid': {
    meaning:
      "The node's configuration has a fault, or does not exist. Every mount is refused until it is correct. Pods continue, and unmounts work.",
    remedy:
      'Correct the key in the message, and check the file with `modekeep doctor --config FILE`. Former keys are now rules, which the message contains.',
    see: 'operations.md#the-configuration-is-broken',
  },
  'file-access': {
    meaning: 'A file of modekeep or of an argument cannot be read or written, or another user could replace it.',
    remedy:
      'For `ENOSPC` free space or inodes. If another user put the file there, find out which one can write to the directory, then remove it. Unmounts work.',
  },
  'call-arguments': {
    meaning: 'A call of the FlexVolume driver has the wrong number of arguments or an invalid directory.',
    cause: 'Kubelet never makes such a call.',
    remedy: 'Call `mount DIR JSON` or `unmount DIR` with an absolute directory.',
  },
  usage: {
    meaning: 'The arguments of a command are wrong. The exit status is 2.',
    remedy: 'Follow the message, or read `modekeep VERB --help`.',
    see: 'commands.md',
  },
  command: {
    meaning: 'A command cannot do its work, for example because it needs root or a file exists. Nothing was changed.',
    remedy: 'Follow the message. `modekeep VERB --help` describes the command.',
    see: 'commands.md',
  },
  install: {
    meaning:
      'The installation or removal of the driver was refused, or failed and was undone. The driver that was there stays.',
    remedy:
      'Follow the message. `--dry-run` shows each step. If it names the directory of the running kubelet, install there, or add `--any-kubelet` for a kubelet that is configured later.',
    see: 'operations.md#install-on-a-node',
  },
  internal: {
    meaning: 'modekeep failed in an unexpected way. The log has the stack.',
    remedy: 'Report the line of `modekeep logs --failed`. Kubelet repeats the call.',
  },
}
