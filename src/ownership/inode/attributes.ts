import type { Handle, Inodes, Stat } from '../../host/host.ts'
import { isRegular } from './policy.ts'
import type { Found } from './record.ts'

/** The kernel's form of an access ACL (uapi/linux/posix_acl_xattr.h): u32 version, then {u16 tag, u16 bits, u32 id}. */
export const ACCESS_ACL = 'system.posix_acl_access'
export const CAPABILITY = 'security.capability'

const HEADER = 4
const ENTRY = 8
const BITS = 2
const ID = 4
const USER_OBJ = 0x01
const USER = 0x02
const GROUP_OBJ = 0x04
const GROUP = 0x08
const MASK = 0x10

/**
 * The ACL that gives the owner and the owning group `bits` and nobody else anything. The mask has to grow for that, and
 * what it kept from the named users and groups is taken from their own entries. st_mode shows the mask as the group's
 * bits, so it becomes what chmod would have made it. Unchanged where there is no mask: then the mode is all there is.
 */
export function grantAcl(acl: Uint8Array, bits: number): Uint8Array {
  const result = Buffer.from(acl)
  const entries: { tag: number; at: number }[] = []
  for (let at = HEADER; at + ENTRY <= result.length; at += ENTRY) {
    entries.push({ tag: result.readUInt16LE(at), at: at + BITS })
  }
  const mask = entries.find(({ tag }) => tag === MASK)
  if (mask === undefined) return acl
  const effective = result.readUInt16LE(mask.at)
  for (const { tag, at } of entries) {
    const own = result.readUInt16LE(at)
    if (tag === USER || tag === GROUP) result.writeUInt16LE(own & effective, at)
    else if (tag === GROUP_OBJ) result.writeUInt16LE((own & effective) | bits, at)
    else if (tag === USER_OBJ || tag === MASK) result.writeUInt16LE(own | bits, at)
  }
  return result
}

/** Returns the read, write and search bits that an inode gives to a process in `group` that does not own it. */
export function groupBitsOf(
  { mode, gid }: Pick<Stat, 'mode' | 'gid'>,
  acl: Uint8Array | undefined,
  group: number,
): number {
  const own = gid === group ? (mode >> 3) & 0o7 : undefined
  if (acl === undefined) return own ?? mode & 0o7
  const view = Buffer.from(acl)
  let mask = 0o7
  const granted: number[] = []
  for (let at = HEADER; at + ENTRY <= view.length; at += ENTRY) {
    const tag = view.readUInt16LE(at)
    const bits = view.readUInt16LE(at + BITS)
    if (tag === MASK) mask = bits
    else if ((tag === GROUP_OBJ && gid === group) || (tag === GROUP && view.readUInt32LE(at + ID) === group)) {
      granted.push(bits)
    }
  }
  // One entry has to allow the whole request (posix_acl_permission), so bits of several entries are not added up.
  return granted.length === 0 ? mode & 0o7 : Math.max(...granted.map((bits) => bits & mask))
}

export function aclOf(inodes: Inodes, handle: Handle): Uint8Array | undefined {
  return inodes.getAttribute(handle, ACCESS_ACL)
}

/** The file capability of an open inode as the kernel keeps it, undefined where there is none. */
export function capabilityOf(inodes: Inodes, handle: Handle): Uint8Array | undefined {
  return inodes.getAttribute(handle, CAPABILITY)
}

/** An inode held open, so that no rename can put another in its place, and what it was when it was looked at. */
export interface OpenInode extends Found {
  handle: Handle
  /** When it was looked at, milliseconds. */
  at: number
}

/**
 * Looks at an inode that is held open.
 * @param at before it was asked for `stat`
 * @param names of its extended attributes, see Inodes.attributeNames
 */
export function look(inodes: Inodes, handle: Handle, stat: Stat, at: number, names: string): OpenInode {
  const capability = isRegular(stat) && names.includes(CAPABILITY) ? capabilityOf(inodes, handle) : undefined
  return { handle, stat, at, capability, acl: names.includes(ACCESS_ACL) ? aclOf(inodes, handle) : undefined }
}

/** Whether there is more to an inode than its mode says. @param names of its extended attributes */
export function hasMore(names: string): boolean {
  return names !== '' && (names.includes(CAPABILITY) || names.includes(ACCESS_ACL))
}
