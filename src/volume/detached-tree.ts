import { type Handle, isDirectory, type MountFlags } from '../host/host.ts'
import { isKubeletMountPath } from '../mount-table/kubelet-volume.ts'
import { resolveTreeLocation, type TreeLocation } from '../mount-table/tree-location.ts'
import type { MountRequest } from '../request/mount-request.ts'
import { formatSource } from '../request/source.ts'
import { mountRecords, type SourceFacts } from '../store/mount-record.ts'
import type { Session } from '../store/session.ts'
import { volumeIdentity } from '../store/volume-identity.ts'
import { textIdentity } from '../store/volume-record.ts'
import type { OpenedSource, VolumeKind } from './kind/kind.ts'
import { createStagingName } from './kind/staged.ts'

/** What the request's source, or its subPath in it, is now: its volume is undefined where only the mount knows. */
export interface SourceView extends SourceFacts {
  /** The inode that a mount of it shows; undefined where only the mount knows. */
  root: { device: number; inode: bigint; group: number } | undefined
  isDirectory: boolean
}

/** What is known of a source before its mount is made. */
export function readSourceView(
  session: Session,
  request: MountRequest,
  { root }: VolumeKind,
  source: OpenedSource | undefined,
): SourceView {
  const unknown = { root: undefined, volume: undefined, isDirectory: true }
  if (source === undefined) {
    const volume = root === 'text' ? textIdentity(request) : undefined
    return { ...unknown, volume, path: formatSource(request.source) ?? '' }
  }
  const { handle, stat, path } = source
  const { device, inode, gid: group } = stat
  // A disk's file system has a root of its own, but another disk under its name is another inode or device.
  if (root !== 'source') return { ...unknown, identity: `${device}:${inode}:${stat.born}`, path }
  const volume = volumeIdentity(session, handle, stat)
  return { root: { device, inode, group }, volume, path, isDirectory: isDirectory(stat) }
}

/** What becomes of the mounts inside of a source. */
export interface PlannedSubmounts {
  /** The ids in mountinfo of those that are shown too; undefined: none is. */
  included?: ReadonlySet<number> | undefined
  /** Names those that the pod does not see; undefined: there are none. */
  hidden?: string | undefined
}

/** A request with the real path of what it names, as text; undefined: it names nothing. */
export interface ResolvedRequest extends Omit<MountRequest, 'source'> {
  source: string | undefined
  /** The path that the pod named, where that is a part of a source. */
  asked: string | undefined
}

export type DetachedTree = ReturnType<typeof createDetachedTree>

/** The mount that a call is making: no path leads to it until it is attached. */
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

  return {
    /** The staging directory of the daemon that serves it. */
    staging: undefined as string | undefined,
    hiddenSubmounts: submounts.hidden,

    /** @param group given by the kind's own mount options */
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
        // Decoded where a kind asks for them, and nowhere else.
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

    /** Another one like it: what was tried with the first cannot be undone. */
    async makeAnew(): Promise<void> {
      this.close()
      await this.make(byOption)
      this.setFlags(flags)
    },

    get handle(): Handle {
      if (tree === undefined) throw new Error('the plan has no tree yet')
      return tree
    },

    /** By which its file system is found after its unmount, if something still uses it; empty for a part of another one. */
    get deviceFacts(): { devices?: string[]; tableId?: number } {
      if (kind.root === 'source') return {}
      const tableId = host.mounts.tableId(this.handle)
      return kind.isDisk ? { devices: host.blocks.devicesOf(this.handle), tableId } : { tableId }
    },

    /** What it is a clone of, if it is one. */
    get clonedFrom(): Handle | undefined {
      return kind.root === 'source' ? source?.handle : undefined
    },

    /** Where it lies, if the source's path does not tell. */
    get location(): TreeLocation | undefined {
      return kind.root === 'file system' && kind.persistent ? resolveTreeLocation(host, this.handle) : undefined
    },

    /** The volume's identity; undefined where the volume goes with its mount. */
    get volume(): string | undefined {
      if (!kind.persistent) return undefined
      if (kind.root === 'text') return textIdentity(request)
      volume ??= volumeIdentity(session, this.handle, host.inodes.stat(this.handle))
      return volume
    },

    /** The request with the real path of what its subPath names: what others compare theirs with. */
    get where(): ResolvedRequest {
      const { subPath } = request
      const text = formatSource(request.source)
      return {
        ...request,
        source: source?.path ?? text,
        asked: subPath === undefined ? undefined : `${text}/${subPath}`,
      }
    },

    close(): void {
      if (tree !== undefined) host.inodes.close(tree)
      tree = undefined
    },
  }
}
