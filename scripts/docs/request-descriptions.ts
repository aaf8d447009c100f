import type { CONFIG_KEYS } from '../../src/request/config.ts'
import type { MapRule } from '../../src/request/map-rule.ts'
import type { MountRequest } from '../../src/request/mount-request.ts'
import type { Options } from '../../src/request/request.ts'
import type { Rule } from '../../src/request/rule.ts'

/** What a key means to a reader of docs/options.md. No call of kubelet's loads this: it is for the generator alone. */
export interface Described {
  text: string
  /** A value as it is written: text for a pod's options, anything JSON has for the node's. */
  example: unknown
  /** What is allowed, where the schema alone does not say it. */
  values?: string
  /** With what it has an effect, where that is not everything. */
  appliesTo?: string
}

/** An option that a pod's author writes. */
export interface AuthorOption extends Described {
  /** Its member of a request, where that has another name: what this is where the option is left out is asked of the code. */
  member?: keyof MountRequest
  /** What that is in words, where it is no value. */
  leftOut?: string
}

export type AuthorKey = Exclude<keyof Options, `kubernetes.io/${string}`>
type KubeletKey = Extract<keyof Options, `kubernetes.io/${string}`>

const GROUP = 'a decimal number from 0 to 4294967294'

export const OPTION_TEXTS: Readonly<Record<AuthorKey, AuthorOption>> = {
  source: {
    text: 'What is mounted. A path of the node must exist, have no symbolic link in it and be allowed by a rule of the node.',
    values: 'a path, a device, `host:/export`, `//server/share`, `user@host:/directory`; see the kinds',
    example: '/srv/volumes/data',
    leftOut: '–',
  },
  subPath: {
    text: 'Mounts this part of the source alone: a directory, a file, a socket or a FIFO. Links inside are followed, none leads out.',
    values: 'a relative path without `..`',
    example: 'current/pages',
    leftOut: 'all of the source',
  },
  mountOptions: {
    text: 'How it is mounted. The mount always has `nosuid,nodev`, unless the node allows `suid` or `dev` and the pod asks for it. In the container these options hold [under conditions](mounts.md#mount-options-in-containers).',
    values: 'a list with commas; see the tables of each kind',
    example: 'noatime,noexec',
    leftOut: 'none',
  },
  ownership: {
    text: "How the pod's `fsGroup` is given: not at all; by a walk over the volume before the pod sees it; by the mount itself, which shows the group on disk as the pod's; or by whichever of these fits the volume best.",
    example: 'walk',
    appliesTo: 'pods with an `fsGroup`; see the kinds',
  },
  idmapFrom: {
    text: "The group on disk that is shown as the pod's group, if it is not the group of the volume's root.",
    values: GROUP,
    example: '100',
    leftOut: "the root's group",
    appliesTo: '`ownership: idmap` and `auto`',
  },
  groupAccess: {
    text: "What a walk gives. `keep`: the group, and set-gid on directories, no permission bit. `grant`: also kubelet's bits, mode | 0660 for files and | 02770 for directories.",
    example: 'grant',
    appliesTo: '`ownership: walk` and `auto`',
  },
  fsGroupChangePolicy: {
    text: "Kubernetes' words, for a new mount: walk only where the root lacks the group or the last walk was not finished, or always. The field of the same name in a pod's `securityContext` does not reach a FlexVolume driver.",
    example: 'Always',
    member: 'changePolicy',
    appliesTo: '`ownership: walk` and `auto`',
  },
  restoreOnUnmount: {
    text: "Restores groups, modes, ACLs and capabilities when the volume's last mount is unmounted: to what the last `modekeep apply` by hand left, else to what they were before modekeep changed them.",
    example: 'true',
    appliesTo: '`ownership: walk` and `auto`',
  },
  setGid: {
    text: 'Sets the set-gid bit on the root of a mapped volume, so that what root creates there gets the group too. It is recorded, and removed with the last mapped mount. A rule has to permit it (`setGid`). Without it a mapping changes nothing on disk.',
    leftOut: 'the bit stays as it is',
    example: 'root',
    member: 'rootSetGid',
    appliesTo: '`ownership: idmap` and `auto`',
  },
  submounts: {
    text: 'What becomes of mounts inside of the source. `refuse`: the mount fails. `hide`: the pod sees the directories beneath them. `include`: the pod sees them as they are when it is mounted, if a rule says `submounts: include` and allows each as a source.',
    example: 'hide',
    leftOut: '`refuse` for a new mount that may be written to, else `hide`',
    appliesTo: '`bind`; `include` with `ownership: none`',
  },
}

export const KUBELET_TEXTS: Readonly<Record<KubeletKey, Described>> = {
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
    values: GROUP,
    example: '2000',
  },
  'kubernetes.io/mounterArgs.FsGroup': {
    text: 'The same from kubelet 1.15 on.',
    values: GROUP,
    example: '2000',
  },
  'kubernetes.io/pvOrVolumeName': {
    text: 'The name of the PersistentVolume, or of the volume in the pod. Not used.',
    example: 'data',
  },
  'kubernetes.io/pod.name': { text: 'Shown in `modekeep status`, in messages and in the log.', example: 'web-0' },
  'kubernetes.io/pod.namespace': {
    text: 'Likewise, and which rules of the node are for the pod. Only kubelet can set it where pods come through an API server.',
    example: 'default',
  },
  'kubernetes.io/pod.uid': {
    text: "Has to be the uid in the mount directory's path, which is kubelet's alone: a pod that wrote keys of kubelet's itself is refused.",
    example: '8c03f2a2-6d7e-4b5a-9f58-0c6a3c1f7b11',
  },
  'kubernetes.io/serviceAccount.name': { text: 'Not used.', example: 'default' },
}

export const CONFIG_TEXTS: Readonly<Record<keyof typeof CONFIG_KEYS, Described>> = {
  stateDir: {
    text: 'Records of mounts and of what walks changed. Keep it on a disk of the node that outlives a reboot: what can be restored is in it.',
    values: 'an absolute path outside `/proc` and `/sys`',
    example: '/var/lib/modekeep',
  },
  logFile: {
    text: 'One JSON line for each call.',
    values: 'an absolute path outside `/proc` and `/sys`',
    example: '/var/log/modekeep/modekeep.log',
  },
  logLevel: { text: 'What is written to it.', example: 'debug' },
  allow: {
    text: "Who may have what: see [Rules](#rules). The first rule that matches a pod's request decides; where none does, the mount is refused.",
    values: 'rules',
    example: [{ namespaces: ['shop'], sources: ['/srv/volumes/shop/*'], fsTypes: ['bind', 'ext4'] }],
  },
  map: {
    text: 'Who may have volumes of other drivers shown to a group of its pod ([any-volume.md](any-volume.md)): a list of rules, [below](#rules-for-volumes-of-other-drivers). One rule that allows it is enough; no rule, and nobody may.',
    values: 'rules',
    example: [{ namespaces: ['shop'] }],
  },
  tmpfsMaxSize: {
    text: 'The size of a tmpfs whose pod names none, and the most that a pod may name. A tmpfs has at most one file or directory for each KiB of it.',
    values: 'from 64k to 4096g',
    example: '256m',
  },
  helperTimeoutSeconds: {
    text: 'How long a helper program such as `mount.nfs` may take before it is ended, and how long (5 s at least) a call waits for a server, a daemon or a disk that says nothing.',
    values: 'from 0.1 to 86400',
    example: 120,
  },
  busyUnmountSeconds: {
    text: 'How long the unmount of a disk or an image fails while its file system is still in use, counted from the first failure. Then it succeeds, and `status` shows the mount as `busy`. 0: it succeeds at once.',
    values: 'from 0 to 86400',
    example: 300,
  },
  stateQuota: {
    text: 'How many bytes the journal of one volume may take. A walk that needs more fails, with its mount; mounts without ownership, unmounts and restores go on. The same holds where the records of all volumes together would take more than a tenth of the file system of `stateDir` (at least 16 MiB).',
    values: 'from 1048576 to 1099511627776',
    example: 268435456,
  },
  capabilities: {
    text: 'What `init` reports to kubelet. With `selinuxRelabel: true` kubelet relabels every volume, which is a second walk. With `supportsMetrics: false` kubelet reports no usage of the volumes.',
    values: '`selinuxRelabel`, `supportsMetrics`',
    example: { selinuxRelabel: true },
  },
  csiPodInfoOnMount: {
    text: 'States that the CSIDriver object says `podInfoOnMount: true`, where `modekeep csi` cannot read that object. Without one of both nothing is published through CSI.',
    example: true,
    appliesTo: '`modekeep csi`',
  },
}

const SYSTEM_GROUPS = {
  text: 'Also maps volumes whose group on disk is below 1000, or in `protectedGroups`, and that users of the node reach through a mount without nosuid. **It grants more than an fsGroup**: [any-volume.md](any-volume.md#groups-of-the-system).',
  leftOut: '`false`',
  example: true,
}

const PROTECTED_GROUPS = {
  text: 'Groups on disk that are protected as those below 1000 are.',
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
export const MAP_RULE_TEXTS: Readonly<Record<keyof MapRule, Described & { leftOut: string }>> = {
  namespaces: RULE_NAMESPACES,
  volumes: {
    text: 'The kinds of volume, by their fields in a pod, or by the plugin of kubelet that mounts them. A claim has the kind of its PersistentVolume.',
    values: '`emptyDir`, `csi`, `local`, `hostPath`, `flexVolume`, `kubernetes.io/nfs`, …',
    leftOut: '`emptyDir`, `csi` and `local`',
    example: ['csi', 'hostPath'],
  },
  sources: {
    text: 'Paths of hostPath volumes, as in `allow`. A hostPath is asked for by its path.',
    values: 'paths',
    leftOut: '**no hostPath**',
    example: ['/srv/shared/{namespace}/*'],
  },
  fsTypes: {
    text: "Types of the volumes' file systems, as /proc/self/mountinfo calls them.",
    values: 'types',
    leftOut: '`ext4`, `xfs` and `btrfs`',
    example: ['ext4', 'tmpfs'],
  },
  groups: {
    text: 'Groups that a pod may ask for.',
    values: 'numbers and ranges',
    leftOut: 'any',
    example: ['2000-2999'],
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
export const RULE_TEXTS: Readonly<Record<keyof Rule, Described & { leftOut: string }>> = {
  namespaces: RULE_NAMESPACES,
  sources: {
    text: "What may be mounted. `/srv/a/*` is what lies strictly below `/srv/a`, anything else is exactly that; by whole names. `{namespace}`, as a whole directory name, is the pod's namespace. A tmpfs has no source.",
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
    text: 'The mount options, these alone: by name, or with the value. Of a FUSE program that modekeep does not know, the options named here are passed on as they are.',
    leftOut: 'those of the kind that no rule has to name',
    example: ['noatime', 'sec=krb5p'],
  },
  readOnly: { text: 'A pod that asks to write is refused.', leftOut: '`false`', example: true },
  submounts: {
    text: 'Lets the option `submounts` be `include`. Each mount inside of the source must be allowed as a source of its own.',
    leftOut: 'a pod that asks for `include` is refused',
    example: 'include',
  },
  setGid: {
    text: 'Whether a walk gives directories set-gid, so that new files get the group. Files never get it. `"root"`: as `true`, and a pod may set the bit on the root of a mapped volume (option `setGid`).',
    values: '`true`, `false`, `"root"`',
    leftOut: '`true`',
    example: 'root',
  },
  systemGroups: SYSTEM_GROUPS,
  protectedGroups: PROTECTED_GROUPS,
  secretKeys: {
    text: 'How each key of a Secret reaches a FUSE program, other than sshfs. `option`: this mount option names a file of mode 0600 in memory, which is gone when the mount is ready. With `keep` the daemon inherits the file instead. `variable`: an environment variable. A value is never an argument.',
    values:
      'an object: a key of the Secret and `{"option": …}`, `{"option": …, "keep": "daemon"}` or `{"variable": …}`',
    leftOut: 'a pod with a Secret is refused',
    example: { passwd: { option: 'passwd_file' } },
  },
  volumes: {
    text: 'How a CSI volume came to its pod: written in the pod, or bound to it by a claim, which only who may make PersistentVolumes can bring about. A rule with this key is for CSI volumes alone: kubelet does not tell it of a FlexVolume.',
    leftOut: 'any volume, FlexVolumes too',
    example: ['persistent'],
  },
  singleNode: {
    text: "No other node mounts what these servers have. Without it a walk of NFS is refused: locks and journals are a node's own, so another node would record the groups of the first walk as the original ones.",
    leftOut: '`false`',
    example: true,
  },
}
