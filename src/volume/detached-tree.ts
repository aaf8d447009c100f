import type { MountRequest } from '../config/mount-request.ts'
import { formatSource } from '../config/source.ts'
import { type Handle, isDirectory, type MountFlags } from '../kernel/host.ts'
import { isKubeletMountPath } from '../kernel/mount-table/kubelet-volume.ts'
import { resolveTreeLocation, type TreeLocation } from '../kernel/mount-table/tree-location.ts'
import { mountRecords, type SourceFacts } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { computeTextVolumeId, resolveVolumeIdentity } from '../state/volume-identity.ts'
import type { OpenedSource, VolumeKind } from './kind/kind.ts'
import { createStagingName } from './kind/staged.ts'

/** The current state of the request's source or its subPath. `volume` is undefined if the source has no identity before it is mounted. */
export interface SourceView extends SourceFacts {
  /** The root inode of a mount of the source; undefined if only the mount has it. */
  root: { device: number; inode: bigint; group: number } | undefined
  isDirectory: boolean
}

/** Reads the facts of a source before its mount is made. */
export function readSourceView(
  session: Session,
  request: MountRequest,
  { root }: VolumeKind,
  source: OpenedSource | undefined,
): SourceView {
  const unknown = { root: undefined, volume: undefined, isDirectory: true }
  if (source === undefined) {
    const volume = root === 'text' ? computeTextVolumeId(request) : undefined
    return { ...unknown, volume, path: formatSource(request.source) ?? '' }
  }
  const { handle, stat, path } = source
  const { device, inode, gid: group } = stat
  // A disk's file system has a root of its own, but another disk under its name is another inode or device.
  if (root !== 'source') return { ...unknown, identity: `${device}:${inode}:${stat.born}`, path }
  const volume = resolveVolumeIdentity(session, handle, stat)
  return { root: { device, inode, group }, volume, path, isDirectory: isDirectory(stat) }
}

export interface PlannedSubmounts {
  /** The mountinfo ids of the mounts inside the source that the volume includes; undefined: none. */
  included?: ReadonlySet<number> | undefined
  /** Names the mounts that the pod does not see; undefined: there are none. */
  hidden?: string | undefined
}

export type DetachedTree = ReturnType<typeof createDetachedTree>

/** Creates the mount of a call, to which no path leads until it is attached. */
export function createDetachedTree(
  session: Session,
  kind: VolumeKind,
  request: MountRequest,
  source: OpenedSource | undefined,
  submounts: PlannedSubmounts = {},
) {
  const { included } = submounts
  const { host, config, warn } = session
  let tree: Handle | undefined
  let byOption: number | undefined
  let flags: MountFlags = { set: 0, clear: 0 }
  let volume: string | undefined

  const requestedSource = formatSource(request.source)

  return {
    request,
    /** The source's real path, or the text that is its source; undefined if it has none. */
    source: source?.path ?? requestedSource,
    /** The path that the pod requested, if it is a part of a source. */
    requestedPath: request.subPath === undefined ? undefined : `${requestedSource}/${request.subPath}`,
    /** The staging directory of the mount's daemon. */
    staging: undefined as string | undefined,
    hiddenSubmounts: submounts.hidden,

    /** @param group applied by the kind's own mount options */
    async make(group: number | undefined): Promise<void> {
      byOption = group
      const staging = createStagingName()
      if (kind.hasDaemon) this.staging = staging
      tree = await kind.openTree({
        host,
        request,
        source,
        group,
        includedMounts: included,
        // Secrets are decoded only if a kind reads them.
        get secrets() {
          return session.secrets ?? new Map()
        },
        stateDir: config.stateDir,
        staging,
        timeoutSeconds: config.helperTimeoutSeconds,
        tmpfsMaxSize: config.tmpfsMaxSize,
        isVolume: (path) => isKubeletMountPath(path) || mountRecords.has(session, path),
        warn,
      })
    },

    get hadSecrets(): boolean {
      return kind.usesSecrets === true && (session.secrets?.size ?? 0) > 0
    },

    setFlags(wanted: MountFlags): void {
      flags = wanted
      host.mounts.setFlags(this.handle, flags, included !== undefined)
    },

    /** Replaces the tree by a new one, because a failed attempt on the first cannot be undone. */
    async makeAnew(): Promise<void> {
      this.close()
      await this.make(byOption)
      this.setFlags(flags)
    },

    get handle(): Handle {
      if (tree === undefined) throw new Error('internal error: the mount is used before its tree was opened')
      return tree
    },

    /** Facts by which a file system in use is found after its unmount; empty for a part of another file system. */
    get deviceFacts(): { devices?: string[]; tableId?: number } {
      if (kind.root === 'source') return {}
      const tableId = host.mounts.tableId(this.handle)
      return kind.isDisk ? { devices: host.blocks.devicesOf(this.handle), tableId } : { tableId }
    },

    /** The source of the clone, if the tree is one. */
    get clonedFrom(): Handle | undefined {
      return kind.root === 'source' ? source?.handle : undefined
    },

    /** The tree's location, if the source's path does not name it. */
    get location(): TreeLocation | undefined {
      return kind.root === 'file system' && kind.persistent ? resolveTreeLocation(host, this.handle) : undefined
    },

    /** The volume's identity; undefined if the volume ends with its mount. */
    get volume(): string | undefined {
      if (!kind.persistent) return undefined
      if (kind.root === 'text') return computeTextVolumeId(request)
      volume ??= resolveVolumeIdentity(session, this.handle, host.inodes.stat(this.handle))
      return volume
    },

    close(): void {
      if (tree !== undefined) host.inodes.close(tree)
      tree = undefined
    },
  }
}
