import type { Handle, Host, Stat } from '../../host/host.ts'
import type { Secrets } from '../../request/json-options.ts'
import type { MountRequest } from '../../request/mount-request.ts'
import type { KindRules } from '../../request/request.ts'
import type { OptionRules } from './options.ts'

/** What a request names, held open, and its real path. */
export interface OpenedSource {
  handle: Handle
  stat: Stat
  path: string
}

/** What a detached mount is made of. */
export interface MountContext {
  host: Host
  request: MountRequest
  /** What openSource gave. */
  source: OpenedSource | undefined
  /** The group that `groupOptions` are to give; undefined: none. */
  group: number | undefined
  secrets: Secrets
  /** The ids in mountinfo of the mounts inside of the source that are shown too; undefined: none is. */
  includedMounts?: ReadonlySet<number> | undefined
  /** A directory of modekeep's own on the node's disk, for what a helper program mounts. */
  stateDir: string
  /** The name of its staging directory, of which the boot has only one. */
  staging: string
  /** For each helper program. */
  timeoutSeconds: number
  /** See NodeConfig. */
  tmpfsMaxSize: string
  /** Whether what is mounted at a path is a pod's volume, and not the node's own. */
  isVolume(path: string): boolean
  /** A person should look at this, though the mount is made. */
  warn(message: string): void
}

/** Whether a volume of the kind that is mounted can be mounted once more, by this node alone, and shows the same. */
export function mountsAgain({ persistent, root }: Pick<VolumeKind, 'persistent' | 'root'>): boolean {
  return persistent && root !== 'text'
}

/** A kind of volume: what it accepts, where its data is, how its detached mount is made. One file each. */
export interface VolumeKind extends KindRules {
  /** False where the data goes with the mount: then there is nothing to record, and a mount cannot be replaced. */
  readonly persistent: boolean
  /** Whether a walk may give the group, else why not, as a clause: 'its server decides about groups'. */
  readonly walk: true | string
  /** The mountOptions it takes besides those of every mount (FLAGS). */
  optionRules(): OptionRules
  /** Its program is passed what nobody knows of here, where a rule of the node names it. */
  readonly takesAny?: true
  /** Mount options that show the volume's files as a group's; undefined where this kind has none. */
  groupOptions?(group: number): string[]
  /**
   * Whose inode the mount shows: that of the source itself (a bind mount), or one that only the mount knows, which then
   * is named by its file system (a disk) or by the source's text (a server, a daemon).
   */
  readonly root: 'source' | 'file system' | 'text'
  /** A process of the node serves it: started with its staging directory among its arguments. */
  readonly hasDaemon?: true
  /** A call without secrets, as heal's is, cannot mount what was mounted with them. */
  readonly usesSecrets?: true
  /**
   * Opens what the request names on this node; undefined where nothing is there before the mount, as of kinds without.
   * @throws {Refusal} naming the source and what to do
   */
  openSource?(host: Host, request: MountRequest): OpenedSource | undefined
  /** @throws {Refusal} with what the helper program or the kernel said, without a secret */
  openTree(context: MountContext): Handle | Promise<Handle>
}
