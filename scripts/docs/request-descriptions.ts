import type { CONFIG_KEY_SCHEMAS } from '../../src/config/config.ts'
import type { MapRule } from '../../src/config/map-rule.ts'
import type { RecordedRequest } from '../../src/config/mount-request.ts'
import type { VolumeOptions } from '../../src/config/request.ts'
import type { AllowRule } from '../../src/config/rule.ts'

/** What a key means to a reader of docs/options.md. No call of kubelet's loads this: it is for the generator alone. */
export interface KeyDescription {
  text: string
  /** A value as it is written: text for a pod's options, anything JSON has for the node's. */
  example: unknown
  /** What is allowed, where the schema alone does not say it. */
  values?: string
  /** With what it has an effect, where that is not everything. */
  appliesTo?: string
}

/** An option that a pod's author writes. */
export interface AuthorOption extends KeyDescription {
  /** Its member of a recorded request, where that has another name: what this is where the option is left out is asked of the code. */
  member?: keyof RecordedRequest
  /** What that is in words, where it is no value. */
  leftOut?: string
}

export type AuthorOptionKey = Exclude<keyof VolumeOptions, `kubernetes.io/${string}`>
type KubeletKey = Extract<keyof VolumeOptions, `kubernetes.io/${string}`>

const GROUP_ID_VALUES = 'a decimal number from 0 to 4294967294'

export const OPTION_TEXTS: Readonly<Record<AuthorOptionKey, AuthorOption>> = {
  source: {
    text: 'What is mounted. A path of the node must exist, have no symbolic link and be allowed by a rule.',
    values: 'a path, a device, `host:/export`, `//server/share`, `user@host:/directory`; see the kinds',
    example: '/srv/volumes/data',
    leftOut: '–',
  },
  subPath: {
    text: 'Mounts only this part of the source: a directory, a file, a socket or a FIFO. Links that stay inside are followed.',
    values: 'a relative path without `..`',
    example: 'current/pages',
    leftOut: 'all of the source',
  },
  mountOptions: {
    text: 'Always with `nosuid,nodev`, unless the node allows `suid` or `dev` and the pod requests it. In the container they hold [under conditions](mounts.md#mount-options-in-containers).',
    values: 'a list with commas; see the tables of each kind',
    example: 'noatime,noexec',
    leftOut: 'none',
  },
  ownership: {
    text: "How the pod's `fsGroup` is applied: not at all; by a walk of the volume; by the mount, which shows the group on disk as the pod's; or by the best of these for the volume.",
    example: 'walk',
    appliesTo: 'pods with an `fsGroup`; see the kinds',
  },
  idmapFrom: {
    text: "The group on disk that is shown as the pod's group, if it is not the group of the volume's root.",
    values: GROUP_ID_VALUES,
    example: '100',
    leftOut: "the root's group",
    appliesTo: '`ownership: idmap` and `auto`',
  },
  groupAccess: {
    text: "What a walk applies. `keep`: the group, and set-gid on directories. `grant`: also kubelet's bits, mode | 0660 for files and | 02770 for directories.",
    example: 'grant',
    appliesTo: '`ownership: walk` and `auto`',
  },
  fsGroupChangePolicy: {
    text: "For a new mount: walk only if the root lacks the group or the last walk is incomplete, or always. Kubelet does not pass the field of a pod's `securityContext` on.",
    example: 'Always',
    member: 'changePolicy',
    appliesTo: '`ownership: walk` and `auto`',
  },
  restoreOnUnmount: {
    text: "Restores groups, modes, ACLs and capabilities at the volume's last unmount: to what the last `modekeep apply` left, otherwise to the first state.",
    example: 'true',
    appliesTo: '`ownership: walk` and `auto`',
  },
  setGid: {
    text: 'Sets the set-gid bit on the root of a mapped volume, so that [new files](any-volume.md#new-files) there get the group. It is recorded, and removed with the last mapped mount. A rule has to permit it (`setGid`).',
    leftOut: 'the bit stays as it is',
    example: 'root',
    member: 'rootSetGid',
    appliesTo: '`ownership: idmap` and `auto`',
  },
  submounts: {
    text: 'Mounts inside the source. `refuse`: the mount fails. `hide`: the pod sees the directories beneath them. `include`: the pod sees them as they are at the mount, if a rule has `submounts: include` and allows each as a source.',
    example: 'hide',
    leftOut: '`refuse` for a new writable mount, else `hide`',
    appliesTo: '`bind`; `include` with `ownership: none`',
  },
}

export const KUBELET_TEXTS: Readonly<Record<KubeletKey, KeyDescription>> = {
  'kubernetes.io/fsType': {
    text: 'The field `flexVolume.fsType`: the kind of volume. Empty means `bind`.',
    values: 'a kind of volume',
    example: 'ext4',
  },
  'kubernetes.io/readwrite': {
    text: 'The field `flexVolume.readOnly`. A read-only volume is mounted read-only, and no inode of it is changed.',
    example: 'ro',
  },
  'kubernetes.io/fsGroup': {
    text: "The pod's `securityContext.fsGroup`, from kubelet up to 1.14. -1 and none at all mean no group.",
    values: GROUP_ID_VALUES,
    example: '2000',
  },
  'kubernetes.io/mounterArgs.FsGroup': {
    text: 'The same from kubelet 1.15 on.',
    values: GROUP_ID_VALUES,
    example: '2000',
  },
  'kubernetes.io/pvOrVolumeName': {
    text: 'The name of the PersistentVolume, or of the volume in the pod. Not used.',
    example: 'data',
  },
  'kubernetes.io/pod.name': { text: 'Shown in `modekeep status`, in messages and in the log.', example: 'web-0' },
  'kubernetes.io/pod.namespace': {
    text: "Likewise; the node's rules decide by it. The API server lets only kubelet set it.",
    example: 'default',
  },
  'kubernetes.io/pod.uid': {
    text: "Must be the uid in the mount directory's path, which only kubelet writes.",
    example: '8c03f2a2-6d7e-4b5a-9f58-0c6a3c1f7b11',
  },
  'kubernetes.io/serviceAccount.name': { text: 'Not used.', example: 'default' },
}

export const CONFIG_TEXTS: Readonly<Record<keyof typeof CONFIG_KEY_SCHEMAS, KeyDescription>> = {
  stateDir: {
    text: 'Records of mounts and of changed inodes. Keep it on a disk that survives a reboot: a restore needs it.',
    values: 'an absolute path outside `/proc` and `/sys`',
    example: '/var/lib/modekeep',
  },
  logFile: {
    text: 'One JSON line for each call.',
    values: 'an absolute path outside `/proc` and `/sys`',
    example: '/var/log/modekeep/modekeep.log',
  },
  logLevel: { text: 'What is logged.', example: 'debug' },
  allow: {
    text: "[Rules](#rules) for mounts. The first rule that matches a pod's request decides; without a match the mount is refused.",
    values: 'rules',
    example: [{ namespaces: ['shop'], sources: ['/srv/volumes/shop/*'], fsTypes: ['bind', 'ext4'] }],
  },
  map: {
    text: '[Rules](#rules-for-volumes-of-other-drivers) for [volumes of other drivers](any-volume.md). One rule that allows it is enough; `[]` allows nothing.',
    values: 'rules',
    example: [{ namespaces: ['shop'] }],
  },
  tmpfsMaxSize: {
    text: "The default and the limit of a tmpfs's `size`. A tmpfs has at most one inode for each KiB of it.",
    values: 'from 64k to 4096g',
    example: '256m',
  },
  helperTimeoutSeconds: {
    text: 'The limit for a helper program such as `mount.nfs`, and for a call (5 s at least) that waits for an unresponsive server, daemon or disk.',
    values: 'from 0.1 to 86400',
    example: 120,
  },
  busyUnmountSeconds: {
    text: 'How long the unmount of a disk or an image [that is still in use](volumes.md#disks-and-images-that-are-still-in-use) fails. 0: it succeeds at once.',
    values: 'from 0 to 86400',
    example: 300,
  },
  stateQuota: {
    text: 'The limit for the journal of one volume, in bytes. A walk that needs more fails, with its mount. All volumes together have a limit too: a tenth of the file system of `stateDir` (at least 16 MiB).',
    values: 'from 1048576 to 1099511627776',
    example: 268435456,
  },
  capabilities: {
    text: 'What `init` reports to kubelet. With `selinuxRelabel: true` kubelet relabels every volume, which is a second walk. With `supportsMetrics: false` kubelet reports no usage of the volumes.',
    values: '`selinuxRelabel`, `supportsMetrics`',
    example: { selinuxRelabel: true },
  },
  csiPodInfoOnMount: {
    text: 'States that the CSIDriver object has `podInfoOnMount: true`, where `modekeep csi` [cannot read it](csi.md#which-pod-a-volume-is-for).',
    example: true,
    appliesTo: '`modekeep csi`',
  },
}

const SYSTEM_GROUPS = {
  text: 'Also maps volumes with a [group of the system](any-volume.md#groups-of-the-system) that users of the node reach. **It grants more than an fsGroup.**',
  leftOut: '`false`',
  example: true,
}

const PROTECTED_GROUPS = {
  text: 'Groups on disk that are protected like those below 1000.',
  values: 'numbers and ranges',
  leftOut: 'none',
  example: ['5000-5099'],
}

const RULE_NAMESPACES = {
  text: 'The namespaces of the pods it is for.',
  values: 'names, `*` in them for anything',
  leftOut: 'any',
  example: ['shop', 'team-*'],
}

/** What a key of a rule of `map` means. */
export const MAP_RULE_TEXTS: Readonly<Record<keyof MapRule, KeyDescription & { leftOut: string }>> = {
  namespaces: RULE_NAMESPACES,
  volumes: {
    text: "The kinds of volume, by their field in a pod or kubelet's plugin. A claim has the kind of its PersistentVolume.",
    values: '`emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, `kubernetes.io/nfs`, …',
    leftOut: '`emptyDir`, `csi` and `local`',
    example: ['csi', 'hostPath'],
  },
  sources: {
    text: 'Paths of hostPath volumes, as in `allow`.',
    values: 'paths',
    leftOut: '**no hostPath**',
    example: ['/srv/shared/{namespace}/*'],
  },
  fsTypes: {
    text: "Types of the volumes' file systems, as in /proc/self/mountinfo.",
    values: 'types',
    leftOut: '`ext4`, `xfs` and `btrfs`',
    example: ['ext4', 'tmpfs'],
  },
  groups: {
    text: 'Groups that a pod may request.',
    values: 'numbers and ranges',
    leftOut: 'any',
    example: ['2000-2999'],
  },
  groupAccess: {
    text: 'The annotation `modekeep/group-access: "grant"` may request a [recorded walk](any-volume.md#volumes-with-content) of the volume.',
    leftOut: 'it is refused',
    example: 'grant',
  },
  setGid: {
    text: 'The annotation `modekeep/set-gid: "root"` may set the set-gid bit on the root of a volume ([any-volume.md](any-volume.md#new-files)).',
    values: '`"root"`',
    leftOut: 'it is refused',
    example: 'root',
  },
  systemGroups: SYSTEM_GROUPS,
  protectedGroups: PROTECTED_GROUPS,
}

/** What a key of a rule means. */
export const RULE_TEXTS: Readonly<Record<keyof AllowRule, KeyDescription & { leftOut: string }>> = {
  namespaces: RULE_NAMESPACES,
  sources: {
    text: "What may be mounted. `/srv/a/*` is everything below `/srv/a`, without `/srv/a`; other entries match exactly. `{namespace}`, as a whole directory name, is the pod's namespace. A tmpfs has no source.",
    values:
      'paths, devices, `host:/export`, `//server/share`, `user@host:/directory`, and names such as `bucket` or `remote:bucket` that a FUSE program understands',
    leftOut: 'any',
    example: ['/srv/volumes/{namespace}/*', 'nfs.example.com:/exports/{namespace}'],
  },
  fsTypes: {
    text: 'The kinds of volume.',
    values: 'kinds of volume; each FUSE program by its own name',
    leftOut: '`bind` and `tmpfs`',
    example: ['bind', 'ext4', 'fuse.sshfs'],
  },
  ownership: {
    text: 'The values of the option `ownership`, each by itself: `auto` may walk and may map.',
    leftOut: 'any',
    example: ['none', 'idmap'],
  },
  groupAccess: {
    text: 'The values of the option `groupAccess`, where `ownership` is `walk` or `auto`.',
    leftOut: 'any',
    example: ['keep'],
  },
  fsGroups: {
    text: 'Groups that a pod may have as its `fsGroup`.',
    values: 'numbers and ranges',
    leftOut: 'any',
    example: ['2000-2999'],
  },
  idmapFrom: {
    text: 'Groups that the option `idmapFrom` may name: their files become accessible to the pod.',
    values: 'numbers and ranges',
    leftOut: '**none**',
    example: ['100'],
  },
  mountOptions: {
    text: 'Only these mount options: by name, or with the value. For a FUSE program that modekeep does not know they are passed on as they are.',
    leftOut: 'those of the kind that no rule must name',
    example: ['noatime', 'sec=krb5p'],
  },
  readOnly: { text: 'A pod that requests write access is refused.', leftOut: '`false`', example: true },
  submounts: {
    text: 'Permits `submounts: include`. Each mount inside the source must be allowed as a source too.',
    leftOut: '`include` is refused',
    example: 'include',
  },
  setGid: {
    text: 'Whether a walk makes directories set-gid, so that new files get the group. `"root"`: as `true`, and a pod may use the option `setGid`.',
    values: '`true`, `false`, `"root"`',
    leftOut: '`true`',
    example: 'root',
  },
  systemGroups: SYSTEM_GROUPS,
  protectedGroups: PROTECTED_GROUPS,
  secretKeys: {
    text: 'How each key of a Secret [reaches a FUSE program](volumes.md#any-other-fuse-program) other than sshfs.',
    values:
      'an object: a key of the Secret and `{"option": …}`, `{"option": …, "keep": "daemon"}` or `{"variable": …}`',
    leftOut: 'a pod with a Secret is refused',
    example: { passwd: { option: 'passwd_file' } },
  },
  volumes: {
    text: 'How a pod has a CSI volume: `inline`, or by a claim, which needs the right to make PersistentVolumes. A rule with this key matches no FlexVolume.',
    leftOut: 'any volume, FlexVolumes too',
    example: ['persistent'],
  },
  singleNode: {
    text: 'States that no other node mounts these exports. Without it a [walk of NFS](volumes.md#what-to-know-about-servers) is refused.',
    leftOut: '`false`',
    example: true,
  },
}
