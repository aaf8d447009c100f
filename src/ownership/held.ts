import type { Handle, Inodes, Name, Stat } from '../host/host.ts'
import { CAPABILITY } from './change.ts'
import { isRegular, ownershipOf } from './policy.ts'
import type { InodeRecord } from './record.ts'
import { gone } from './traverse.ts'

/** The inode a walk saw under a name, held so that no rename can put another in its place. Undefined: it is gone. */
export function hold(
  inodes: Inodes,
  parent: Handle,
  name: Name,
  seen: Stat,
): { handle: Handle; stat: Stat } | undefined {
  const handle = gone(() => inodes.openEntry(parent, name))
  if (handle === undefined) return undefined
  const stat = inodes.stat(handle)
  if (stat.inode === seen.inode && stat.mountId === seen.mountId && stat.links === seen.links) return { handle, stat }
  inodes.close(handle)
  return undefined
}

/** The first record of an inode: what it is now is what restore will put back. */
export function firstRecord(inodes: Inodes, handle: Handle, stat: Stat, path: Uint8Array): InodeRecord {
  const now = ownershipOf(stat)
  return {
    inode: stat.inode,
    born: stat.born,
    path,
    uid: stat.uid,
    before: now,
    capability: isRegular(stat) ? (inodes.getAttribute(handle, CAPABILITY) ?? null) : null,
    after: now,
    prior: now,
    settled: false,
  }
}

export function keyOf(inode: Pick<InodeRecord, 'inode' | 'born'>): string {
  return `${inode.inode}.${inode.born}`
}
