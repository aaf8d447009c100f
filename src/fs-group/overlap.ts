import { mayHaveUuid } from '../host/btrfs.ts'
import type { MountRow } from '../mount-table/mountinfo.ts'
import {
  areNested,
  createMountFinder,
  isNested,
  type TreeLocation,
  toPathPrefix,
} from '../mount-table/tree-location.ts'
import { parseRemote, type RemoteSource } from '../request/source.ts'

/** Known properties of a volume, or of a part of one. */
export interface VolumeExtent {
  volume?: string | undefined
  /** Undefined: it has none, like a tmpfs. */
  source?: string | undefined
  location?: TreeLocation | undefined
  /** Its location on an NFS server. */
  exported?: RemoteSource | undefined
}

/** Returns whether two volumes are the same, or one contains the other. */
export function overlap(one: VolumeExtent, other: VolumeExtent): boolean {
  if (one.volume !== undefined && one.volume === other.volume) return true
  if (areNestedOnServer(one.exported, other.exported)) return true
  if (isUnlisted(one.location) || isUnlisted(other.location))
    return mayBeOneFileSystem(extractFileSystemId(one.volume), extractFileSystemId(other.volume))
  if (one.location && other.location) return isNested(one.location, other.location)
  return one.source !== undefined && other.source !== undefined && areNested(one.source, other.source)
}

/** Returns a function that finds the NFS export of a source, which is an export's text or a path of the node. */
export function createExportFinder(table: readonly MountRow[]): (source: string) => RemoteSource | undefined {
  const mountsTo = createMountFinder(table)
  return (source) => {
    if (!source.startsWith('/')) return parseRemote(source, 'export')
    const mount = mountsTo(source).at(-1)
    if (mount === undefined || !/^nfs4?$/.test(mount.fsType)) return undefined
    // The kernel shows the path of the mount's own root as the source, also for a bind mount.
    const exported = parseRemote(mount.source, 'export')
    const below = source.slice(toPathPrefix(mount.mountPoint).length)
    return exported && { ...exported, path: `${toPathPrefix(exported.path)}${below}` }
  }
}

/** Returns whether one of two directories on a server contains the other. The kernel shows only one of its names. */
function areNestedOnServer(one: RemoteSource | undefined, other: RemoteSource | undefined): boolean {
  if (one?.server.toLowerCase() !== other?.server.toLowerCase() || !one || !other) return false
  return areNested(toPathPrefix(one.path), toPathPrefix(other.path))
}

/**
 * Returns whether a mount may show a volume, a part of it, or a tree that contains it, if only its location is known.
 */
export function mayOverlap(one: TreeLocation | undefined, other: TreeLocation | undefined): boolean {
  if (one === undefined || other === undefined || isUnlisted(one) || isUnlisted(other)) return true
  return isNested(one, other)
}

/**
 * On btrfs, the mount table shows device numbers that no other interface returns. So a tree that is not in the table
 * yet is compared by its identity.
 */
const isUnlisted = (location: TreeLocation | undefined) => location?.device === ''
const extractFileSystemId = (volume: string | undefined) => volume?.replace(/-[0-9a-f]+-[0-9a-f]+$/, '')

const isUuid = (id: string) => /^[0-9a-f]{32}$/.test(id)

/** Compares ids of file systems. A part of a btrfs may have a name from a kernel that reported no UUID. */
function mayBeOneFileSystem(one: string | undefined, other: string | undefined): boolean {
  if (one === other) return true
  if (one === undefined || other === undefined || one.includes('.') === other.includes('.')) return false
  const [id, uuid] = one.includes('.') ? [one, other] : [other, one]
  return isUuid(uuid) && mayHaveUuid(id, Buffer.from(uuid, 'hex'))
}
