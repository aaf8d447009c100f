/** Faults of volumes that `modekeep nri` maps. */
export const MAP_FAULT_ENTRIES = {
  'annotation-invalid': {
    meaning: 'An annotation of the pod has an invalid value.',
    remedy:
      'Write one group, or `NAME=GROUP` separated by commas. A name is that of a volume, or a path in the container.',
    see: 'any-volume.md#the-annotations',
  },
  'annotation-volume': {
    meaning: 'The annotation names a volume that kubelet does not list for this pod.',
    remedy:
      "Use a name from the message, or the path in the container. A claim's volume has the name of its PersistentVolume.",
    see: 'any-volume.md#the-annotations',
  },
  'map-not-allowed': {
    meaning: 'No rule of `map` permits this volume, namespace, group or file system.',
    cause: 'Without `map`, emptyDir, CSI and local volumes are allowed. Rules replace that default.',
    remedy: 'Add a rule that the message shows. Keep `{}` as one of the rules to retain the default.',
    see: 'options.md#rules-for-volumes-of-other-drivers',
  },
  'map-other-driver': {
    meaning:
      "The volume gets its group in another way: from kubelet (ConfigMap, Secret, projected), or from modekeep's own driver.",
    remedy:
      "Remove the volume from the annotation. For a volume of modekeep set the pod's `fsGroup` and option `ownership`.",
    see: 'any-volume.md#which-one-when',
  },
  'map-sub-path': {
    meaning: 'A `subPath` of the container is not a part of the volume now, or has other restrictions than its mount.',
    cause: 'The volume changed meanwhile, another call changes its group, or two volumes of the pod have one name.',
    remedy:
      'Wait: kubelet creates the container again. If the message says so, delete the pod, or rename the hostPath.',
  },
  'map-propagation': {
    meaning: 'The volume has `mountPropagation`, or another mount inside, and a mapped clone shows one mount only.',
    remedy: 'Remove `mountPropagation` or the volume from the annotation, or mount a directory without other mounts.',
    see: 'mounts.md#containers',
  },
  'map-source': {
    meaning:
      "The mount's source is not a volume of this pod, or is the root directory of the node, a directory of kubelet or of modekeep.",
    remedy:
      'Use a volume of the pod, or mount the directory that the pod needs as a hostPath. No rule permits this source.',
  },
  'map-user-namespace': {
    meaning: "The pod's user namespace does not contain the group, or kubelet's file of its ids cannot be used.",
    remedy:
      'Use a group that the message lists (mostly 0 to 65535), or remove `hostUsers: false`. Report an unreadable file with the version of kubelet.',
  },
  'map-own-volume': {
    meaning: 'A volume of modekeep cannot be mounted once more for the user namespace of the pod.',
    remedy:
      'Use `ownership: auto` or `walk`, remove `hostUsers: false`, or delete the pod if its source or record changed. A `subPath` of a disk needs Linux 6.15.',
    see: 'mounts.md#containers',
  },
  'map-failed': {
    meaning: 'The kernel refused a step of the mapping. The message quotes the error.',
    remedy:
      'Read `modekeep logs` on the node. Kubelet tries again. Without the annotation the container starts without the group.',
  },
  'map-too-many': {
    meaning: 'More volumeMounts of one container need a mapping than the runtime gives time for.',
    remedy: 'Mount fewer volumes in the container, or name only those in the annotation that need the group.',
  },
  'map-membership': {
    meaning: "The container's processes are not in the group, so the mapping would not help them.",
    remedy: "Add the group to `supplementalGroups` of the pod's `securityContext`.",
  },
  'map-grant': {
    meaning:
      "The pod's annotation `modekeep/group-access` requests a walk of the volume, which is in progress or not permitted.",
    remedy:
      'Wait: kubelet tries again. `modekeep status` shows the progress. If the message says so, add `groupAccess` to the rule.',
    see: 'any-volume.md#volumes-with-content',
  },
  'map-closed-root': {
    meaning: 'The volume has files, and its root does not let the group create files. An `fsGroup` would change that.',
    remedy:
      'Request a walk by the annotation `modekeep/group-access: "grant"`, run `chmod g+rwxs` for the root, or mount the volume `readOnly`.',
    see: 'any-volume.md#volumes-with-content',
  },
  'map-kubelet-dir': {
    meaning: "`modekeep nri` looks for pods in another directory than kubelet's.",
    remedy:
      'Start it with `--kubelet-dir` and the `--root-dir` of kubelet. Report a pod uid that the runtime does not name as kubelet does.',
    see: 'any-volume.md#the-plugin',
  },
  'map-owner-unknown': {
    meaning: 'The node does not record which driver the volume is of, so no rule can decide.',
    remedy:
      'Name the other volumes in the annotation. In place of a `subPath` of a hostPath, mount the directory itself as a hostPath.',
  },
  'map-unmatched': {
    meaning: 'A warning of the plugin: the annotation names a path that this container does not have.',
    remedy: 'Nothing, if another container of the pod has the path. Otherwise correct it.',
  },
  'map-options': {
    meaning:
      'A warning of the plugin: the mount options of a volume could not be read in time. A current runc clears `nosuid`, `nodev` and `noexec` in the container.',
    remedy: 'Repair the server or disk of the volume, then delete the pod.',
    see: 'mounts.md#mount-options-in-containers',
  },
  'map-unresponsive': {
    meaning:
      'The volume did not respond while modekeep opened it. Later attempts are refused at once, and modekeep tries the volume in the background.',
    remedy: 'Repair the disk or server of the volume, or remove the volume from the annotation. Kubelet tries again.',
  },
  'map-late': {
    meaning:
      'modekeep did not map the volumes in the time that the container runtime permits. The volumes are not the cause.',
    cause: 'The node has too little processor time, memory or disk bandwidth (`/proc/pressure`).',
    remedy: 'Wait: kubelet tries again. If it continues, raise the request timeout of the runtime.',
    see: 'any-volume.md#the-plugin',
  },
  'nri-plugin': {
    meaning: '`modekeep nri` is not running or not connected, or was not when this container was created.',
    remedy:
      'Start `modekeep nri`, and enable NRI in the container runtime. Then delete the pod, so that its successor gets the group.',
    see: 'any-volume.md#where-the-plugin-is-away',
  },
}
