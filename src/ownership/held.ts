import type { Handle, Inodes, Name, Stat } from '../host/host.ts'
import { capabilityOf } from './capability.ts'
import { isRegular, ownershipOf } from './policy.ts'
import type { Found, InodeRecord } from './record.ts'
import { gone } from './traverse.ts'

export interface Held extends Found {
  handle: Handle
}

/**
 * The inode a walk saw under a name, held so that no rename can put another in its place. Undefined: the name is gone
 * or means another inode by now. More links than were seen do no harm: a link into the volume can only be made inside it.
 */
export function hold(inodes: Inodes, parent: Handle, name: Name, seen: Stat): Held | undefined {
  const handle = gone(() => inodes.openEntry(parent, name))
  if (handle === undefined) return undefined
  const stat = inodes.stat(handle)
  if (stat.inode === seen.inode && stat.born === seen.born && stat.mountId === seen.mountId) {
    const capability = isRegular(stat) ? capabilityOf(inodes, handle) : null
    return { handle, stat, capability }
  }
  inodes.close(handle)
  return undefined
}

/** The first record of an inode: what it is now is what restore will put back. */
export function firstRecord({ stat, capability }: Found, path: Uint8Array): InodeRecord {
  const { inode, born, uid, modified, size } = stat
  const before = ownershipOf(stat)
  const now = { before, seen: before, meant: before, after: before, seenWhole: true, forfeited: false }
  return { inode, born, path, uid, capability, modified, size, settled: false, ...now }
}

export function keyOf(inode: Pick<InodeRecord, 'inode' | 'born'>): string {
  return `${inode.inode}.${inode.born}`
}
