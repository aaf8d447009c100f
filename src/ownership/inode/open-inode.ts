import type { Handle, Inodes, Name, Stat } from '../../host/host.ts'
import { ACCESS_ACL, aclOf } from './attributes.ts'
import { CAPABILITY, capabilityOf } from './capability.ts'
import { isRegular, type Ownership } from './policy.ts'
import { type Found, type InodeRecord, NO_ACL } from './record.ts'

/** An inode held so that no rename can put another in its place. */
export interface Held extends Found {
  handle: Handle
  /** When it was looked at, milliseconds. */
  at: number
}

/** @param parent and `name`: where the inode was found, see attributeNames */
export function hold(inodes: Inodes, handle: Handle, stat: Stat, parent: Handle, name: Name): Held {
  const names = inodes.attributeNames(handle, parent, name)
  const at = Date.now()
  if (names === '') return { handle, stat, at, capability: null, acl: null }
  const capable = isRegular(stat) && names.includes(CAPABILITY)
  return {
    handle,
    stat,
    at,
    capability: capable ? capabilityOf(inodes, handle) : null,
    acl: names.includes(ACCESS_ACL) ? aclOf(inodes, handle) : null,
  }
}

/**
 * The first record of an inode: what it is now is what restore will put back.
 * @param before what it is; `after` and `aclAfter`: what is to be made of it
 */
export function firstRecord(
  { stat, capability, acl }: Found,
  path: Uint8Array,
  before: Ownership,
  after: Ownership,
  aclAfter: Uint8Array | null,
): InodeRecord {
  return {
    inode: stat.inode,
    born: stat.born,
    path,
    uid: stat.uid,
    before,
    capability,
    acl: acl === null ? NO_ACL : { before: acl, seen: acl, after: aclAfter },
    modified: stat.modified,
    size: stat.size,
    seen: before,
    seenWhole: true,
    meant: before,
    forfeited: false,
    after,
    settled: false,
  }
}

/** Names an inode of a volume: inode numbers are reused. */
export function keyOf({ inode, born }: { inode: bigint; born: bigint }): string {
  return `${inode}-${born}`
}
