import type { PodSecrets } from '../../config/json-options.ts'
import type { MountRequest } from '../../config/mount-request.ts'
import type { VolumeKindRules } from '../../config/request.ts'
import type { FaultCode } from '../../errors/entries/index.ts'
import type { Handle, Host, Stat } from '../../kernel/host.ts'
import type { OptionRules } from './options.ts'

/** An open source of a request, and its real path. */
export interface OpenedSource {
  handle: Handle
  stat: Stat
  path: string
}

export interface MountContext {
  host: Host
  request: MountRequest
  source: OpenedSource | undefined
  /** The group that `groupOptions` apply; undefined: none. */
  group: number | undefined
  secrets: PodSecrets
  /** The mountinfo ids of the included mounts inside of the source; undefined: none is included. */
  includedMounts?: ReadonlySet<number> | undefined
  /** A directory of modekeep's own on the node's disk, in which helper programs mount. */
  stateDir: string
  /** The name of the staging directory, which is unique during a boot. */
  staging: string
  /** The limit for each helper program. */
  timeoutSeconds: number
  tmpfsMaxSize: string
  /** Whether the mount at a path is a pod's volume, and not the node's own. */
  isVolume(path: string): boolean
  /** Reports a problem that an administrator should check, though the mount succeeds. */
  warn(message: string, code: FaultCode): void
}

/** Whether this node alone can mount a mounted volume of the kind again, with the same content. */
export function canRemountSameContent({ persistent, root }: Pick<VolumeKind, 'persistent' | 'root'>): boolean {
  return persistent && root !== 'text'
}

/** A kind of volume: the requests it accepts, the place of its data, and how its detached mount is made. */
export interface VolumeKind extends VolumeKindRules {
  /** False if the data ends with the mount: then no volume is recorded, and a mount cannot be replaced. */
  readonly persistent: boolean
  /** True if a walk may apply the group, otherwise the reason as a clause: 'its server decides about groups'. */
  readonly walk: true | string
  /** Returns the rules of the kind's mountOptions, in addition to those of every mount (FLAGS). */
  optionRules(): OptionRules
  /** The program gets options that modekeep does not list, if a rule of the node names them. */
  readonly takesAny?: true
  /** Returns mount options that show the volume's files with a group; undefined if the kind has none. */
  groupOptions?(group: number): string[]
  /**
   * The root of the mount: the source's inode (a bind mount), or an inode that only the mount has. That is identified by its
   * file system (a disk) or by the source's text (a server, a daemon).
   */
  readonly root: 'source' | 'file system' | 'text'
  /** A process of the node serves the mount. Its arguments contain the staging directory. */
  readonly hasDaemon?: true
  /** A call without secrets, such as heal's, cannot repeat a mount that used them. */
  readonly usesSecrets?: true
  /**
   * Opens the request's source on this node; undefined if no source exists before the mount.
   * @throws {Refusal} naming the source and what to do
   */
  openSource?(host: Host, request: MountRequest): OpenedSource | undefined
  /** @throws {Refusal} with the message of the helper program or the kernel, without a secret */
  openTree(context: MountContext): Handle | Promise<Handle>
}
