export const OPTION_FAULT_ENTRIES = {
  'option-unknown': {
    meaning: 'A key below `flexVolume.options` does not exist.',
    remedy:
      'Use a key that the message lists. Write `fsType`, `readOnly` and `secretRef` next to `options`, not below it.',
    see: 'options.md#in-a-pod',
  },
  'option-contradiction': {
    meaning: 'Two options contradict each other, or the kind of volume does not support the value.',
    cause:
      'CIFS, FUSE, squashfs and single files cannot be walked. `submounts: include` needs a rule that permits it, and no `ownership`. The kernel does not clone `unbindable` mounts.',
    remedy: 'Write the value that the message names. Run `mount --make-private DIR` for an unbindable mount.',
    see: 'options.md#in-a-pod',
  },
  'option-format': {
    meaning: 'An option is not a JSON string, is given twice, or the options are not one JSON object.',
    cause: 'A value of the pod is not quoted, or the call was made by hand.',
    remedy: 'Write every option as a string, such as `restoreOnUnmount: "true"`.',
  },
  'group-invalid': {
    meaning: "The pod's `fsGroup` is not a valid Linux group, or two of kubelet's keys name different groups.",
    remedy:
      "Set `fsGroup` in the pod's `securityContext` to a number from 0 to 4294967294. Remove keys below `kubernetes.io/` from the options.",
  },
  'mount-options': {
    meaning:
      'A value of `mountOptions` is not permitted for this kind of volume, contradicts another one, or is rejected by the kernel.',
    remedy:
      "Use the listed mount options of the kind. Some need the name in a rule's `mountOptions`. An unlisted option cannot be allowed, except for FUSE programs without a list.",
    see: 'options.md#mount-options',
  },
  'fs-type': {
    meaning: 'This version does not mount the `fsType`.',
    remedy: 'Use one of the types in the message. A FUSE program of the node is `fuse.<program>`.',
    see: 'options.md#kinds-of-volume',
  },
  'pod-uid': {
    meaning: "The option `kubernetes.io/pod.uid` names another pod than the mount directory's.",
    cause: 'The options of a static pod, or of a call by hand, contain a key that only kubelet may write.',
    remedy: 'Remove the key from the options.',
  },
  'input-too-large': {
    meaning: 'An input is longer than the kernel or Kubernetes accepts.',
    remedy: 'Shorten the value that the message names. Keep only the keys of the Secret that the volume needs.',
    see: 'limits.md#sizes-of-inputs',
  },
  secret: {
    meaning: 'A key of the Secret is missing, unknown, invalid, or in conflict with a mount option.',
    cause: '`echo x | base64` encodes a newline too: use `stringData` or `printf`.',
    remedy:
      'CIFS needs `username`, `password` and optionally `domain`. sshfs needs `known_hosts` (compare the output of `ssh-keyscan HOST` first) and `ssh-privatekey` or `password`. Remove other keys.',
    see: 'volumes.md#any-other-fuse-program',
  },
  'secret-not-stored': {
    meaning: '`modekeep heal` cannot mount this volume again, because modekeep never stores a Secret.',
    remedy: 'Delete the pod. The mount call of its successor carries the Secret again.',
  },
  'user-namespace': {
    meaning:
      'The pod has a user namespace (`hostUsers: false`), and a mount that is mapped for a group cannot be mapped again.',
    cause: 'The event of the runtime may be `failed to set MOUNT_ATTR_IDMAP`.',
    remedy:
      'Use `ownership: auto` with `heal --watch`, which replaces the mount, or `walk`. With `modekeep nri` on the node both methods work.',
    see: 'any-volume.md',
  },
}

export const SOURCE_FAULT_ENTRIES = {
  'not-allowed': {
    meaning: "No rule of the node's configuration permits this request of the pod's namespace.",
    cause:
      'Without rules a namespace may use the directories below `/var/lib/modekeep/volumes/<namespace>`. The first rule that matches decides.',
    remedy:
      'Add a rule to `allow` and try it with `modekeep doctor --config FILE`. The next call uses it. For a read-only rule set `readOnly` on the volume.',
    see: 'options.md#rules',
  },
  'source-protected': {
    meaning:
      "The source is modekeep's own state, log or configuration, or contains kubelet's directory of pods. A bind mount of these counts too.",
    remedy:
      'Name another directory. No rule can permit this one, except read-only access to the log and the configuration.',
  },
  'source-second-path': {
    meaning: 'A bind mount gives the source a second path, and the rules do not permit the pod that path.',
    remedy:
      'Add a rule that permits the second path, with what the end of the message names. Or remove the bind mount.',
    see: 'options.md#rules',
  },
  'source-changed': {
    meaning: 'The source was unmounted, deleted or replaced while modekeep mounted it.',
    remedy: 'Wait: kubelet tries again. If it continues, stop the process that replaces the source.',
  },
  'submounts-hidden': {
    meaning:
      'Something is mounted below the source, for example a disk, and the pod would see the empty directory beneath it.',
    remedy:
      'Name the mounted directory as the source, or set option `submounts` to `hide` or `include`. A mount that exists does not fail: `modekeep status` reports it.',
    see: 'options.md#in-a-pod',
  },
  'directory-system': {
    meaning:
      '`apply` or `plan` was called for a directory of the system, such as `/etc`, or for a file system of the kernel.',
    remedy:
      'Name the directory of a volume. `modekeep plan DIR` shows what would change. `--yes` permits a directory of the system, but never `/proc` or `/sys`.',
  },
  'image-writable': {
    meaning:
      'A pod can write to the image or disk, which lets it attack the kernel or a FUSE program that runs as root.',
    remedy:
      'Move the image to a directory that no rule lets a pod mount, such as `/srv/images/database.img`. Remove its other hard links. Delete a pod that the message names.',
  },
  'source-missing': {
    meaning: 'The source does not exist on this node, or has another type than the volume needs.',
    remedy: 'Create the source on every node where the pod may run, or correct its name. modekeep creates no source.',
  },
  'source-link': {
    meaning: 'The path of the source contains a symbolic link, so rules could not be compared with it.',
    remedy: 'Write the path that `realpath DIR` prints, and allow that path.',
  },
  'source-invalid': {
    meaning: 'Option `source` is missing, or has another form than the kind of volume needs.',
    remedy: 'Write the form that the message shows. Kinds without a source take no such option.',
    see: 'options.md#kinds-of-volume',
  },
  'source-read-only': {
    meaning: 'The source is on a read-only mount or file system, so a walk cannot change its inodes.',
    remedy:
      'Make it writable on the node, use `ownership: idmap`, or set `readOnly` if its files have the group. A volume with `readOnly: true` is never changed.',
  },
  'source-exchanged': {
    meaning:
      'A restore is pending, but the source is another directory or disk than the one that was walked. Nothing is changed there.',
    remedy: 'Put the original back. The next unmount, or `modekeep restore DIR`, then restores it.',
  },
}

export const SUB_PATH_FAULT_ENTRIES = {
  'sub-path': {
    meaning: 'The part of the source that `subPath` names does not exist, or is not a directory, file, socket or FIFO.',
    remedy: 'Create it before the pod starts, or correct the name. Unlike kubelet, modekeep does not create it.',
    see: 'mounts.md#subpath',
  },
  'sub-path-outside': {
    meaning:
      'A link in `subPath` leads out of the source or in a circle. Or another user created it in a directory that is open to all.',
    remedy: 'Mount the target of the link as a source of its own, or remove the link.',
    see: 'mounts.md#subpath',
  },
  'sub-path-unsupported': {
    meaning: 'This kind of volume has no `subPath`, or needs Linux 6.15 or newer for it.',
    remedy: "Use the container's `volumeMounts[].subPath`, or name the directory in the source.",
  },
  'sub-path-changed': {
    meaning: '`modekeep heal` found that the part of the volume changed from a file to a directory, or back.',
    remedy: 'Delete the pod. The container can start only after kubelet mounts the part again.',
  },
}
