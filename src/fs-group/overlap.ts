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

/** What is known of a volume, or of a part of one. */
export interface Volume {
  volume?: string | undefined
  /** Undefined: it has none, as a tmpfs. */
  source?: string | undefined
  location?: TreeLocation | undefined
  /** Where it lies on an NFS server. */
  exported?: RemoteSource | undefined
}

/** Whether one is, has or is in the other. */
export function overlap(one: Volume, other: Volume): boolean {
  if (one.volume !== undefined && one.volume === other.volume) return true
  if (areOnServer(one.exported, other.exported)) return true
  if (isUnlisted(one.location) || isUnlisted(other.location))
    return mayBeOneFileSystem(fileSystemOf(one.volume), fileSystemOf(other.volume))
  if (one.location && other.location) return isNested(one.location, other.location)
  return one.source !== undefined && other.source !== undefined && areNested(one.source, other.source)
}

/** What an export's text names, and what the mount table says of a path of the node that lies on one. */
export function exportsFrom(table: readonly MountRow[]): (source: string) => RemoteSource | undefined {
  const mountsTo = createMountFinder(table)
  return (source) => {
    if (!source.startsWith('/')) return parseRemote(source, 'export')
    const mount = mountsTo(source).at(-1)
    if (mount === undefined || !/^nfs4?$/.test(mount.fsType)) return undefined
    // The kernel writes the path of the mount's own root there, of a bind mount too.
    const exported = parseRemote(mount.source, 'export')
    const below = source.slice(toPathPrefix(mount.mountPoint).length)
    return exported && { ...exported, path: `${toPathPrefix(exported.path)}${below}` }
  }
}

/** Whether one of two directories of a server lies in the other. Of a server's several names the kernel knows one. */
function areOnServer(one: RemoteSource | undefined, other: RemoteSource | undefined): boolean {
  if (one?.server.toLowerCase() !== other?.server.toLowerCase() || !one || !other) return false
  return areNested(toPathPrefix(one.path), toPathPrefix(other.path))
}

/** Whether a mount of which only its location is known may show the volume, a part of it, or what it is a part of. */
export function mayOverlap(one: TreeLocation | undefined, other: TreeLocation | undefined): boolean {
  if (one === undefined || other === undefined || isUnlisted(one) || isUnlisted(other)) return true
  return isNested(one, other)
}

/** On btrfs the mount table names file systems as nothing else does: what is not in it yet is told by its identity. */
const isUnlisted = (location: TreeLocation | undefined) => location?.device === ''
const fileSystemOf = (volume: string | undefined) => volume?.replace(/-[0-9a-f]+-[0-9a-f]+$/, '')

const isUuid = (id: string) => /^[0-9a-f]{32}$/.test(id)

/** One of two parts of a btrfs may have the name that it had on a kernel that told no UUID of one. */
function mayBeOneFileSystem(one: string | undefined, other: string | undefined): boolean {
  if (one === other) return true
  if (one === undefined || other === undefined || one.includes('.') === other.includes('.')) return false
  const [id, uuid] = one.includes('.') ? [one, other] : [other, one]
  return isUuid(uuid) && mayHaveUuid(id, Buffer.from(uuid, 'hex'))
}
