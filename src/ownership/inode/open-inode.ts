import type { Handle, Inodes, Name, Stat } from '../../host/host.ts'
import { ACCESS_ACL, aclOf, CAPABILITY, capabilityOf } from './attributes.ts'
import { isRegular } from './policy.ts'
import type { Found } from './record.ts'

/** An inode held open, so that no rename can put another in its place, and what it was when it was looked at. */
export interface OpenInode extends Found {
  handle: Handle
  /** When it was looked at, milliseconds. */
  at: number
}

/** Looks at an inode that is held open. @param parent and `name`: where it was found, see Inodes.attributeNames */
export function look(inodes: Inodes, handle: Handle, stat: Stat, parent: Handle, name: Name): OpenInode {
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
