import type { Handle, Inodes, Stat } from '../../kernel/host.ts'
import { isRegularFile } from './policy.ts'
import type { InodeState } from './record.ts'

/**
 * The kernel's encoding of an access ACL (uapi/linux/posix_acl_xattr.h): u32 version, then {u16 tag, u16 bits, u32 id}.
 */
export const ACCESS_ACL_ATTRIBUTE = 'system.posix_acl_access'
export const CAPABILITY_ATTRIBUTE = 'security.capability'

const ACL_HEADER_BYTES = 4
const ACL_ENTRY_BYTES = 8
const ACL_ENTRY_BITS_OFFSET = 2
const ACL_ENTRY_ID_OFFSET = 4
const ACL_USER_OBJ = 0x01
const ACL_USER = 0x02
const ACL_GROUP_OBJ = 0x04
const ACL_GROUP = 0x08
const ACL_MASK = 0x10

/**
 * Adds `bits` to the ACL's entries of the owner and the owning group, and to nothing else. The mask must grow for that,
 * so each named user's and group's entry is first reduced to the bits that the old mask let through.
 * st_mode shows the mask as the group's bits, so the result has the mode that chmod would have made. An ACL without a
 * mask is returned unchanged, because then the mode says everything.
 */
export function grantAclBits(acl: Uint8Array, bits: number): Uint8Array {
  const result = Buffer.from(acl)
  const entries: { tag: number; at: number }[] = []
  for (let at = ACL_HEADER_BYTES; at + ACL_ENTRY_BYTES <= result.length; at += ACL_ENTRY_BYTES) {
    entries.push({ tag: result.readUInt16LE(at), at: at + ACL_ENTRY_BITS_OFFSET })
  }
  const mask = entries.find(({ tag }) => tag === ACL_MASK)
  if (mask === undefined) return acl
  const effective = result.readUInt16LE(mask.at)
  for (const { tag, at } of entries) {
    const entryBits = result.readUInt16LE(at)
    if (tag === ACL_USER || tag === ACL_GROUP) result.writeUInt16LE(entryBits & effective, at)
    else if (tag === ACL_GROUP_OBJ) result.writeUInt16LE((entryBits & effective) | bits, at)
    else if (tag === ACL_USER_OBJ || tag === ACL_MASK) result.writeUInt16LE(entryBits | bits, at)
  }
  return result
}

/** Formats owner, group and mode of an inode: `0:2000 2775`. */
export function formatOwnership({ uid, gid, mode }: Pick<Stat, 'uid' | 'gid' | 'mode'>): string {
  return `${uid}:${gid} ${(mode & 0o7777).toString(8).padStart(4, '0')}`
}

/** Returns the read, write and search bits that an inode gives to a process in `group` that does not own it. */
export function computeGroupBits(
  { mode, gid }: Pick<Stat, 'mode' | 'gid'>,
  acl: Uint8Array | undefined,
  group: number,
): number {
  const own = gid === group ? (mode >> 3) & 0o7 : undefined
  if (acl === undefined) return own ?? mode & 0o7
  const view = Buffer.from(acl)
  let mask = 0o7
  const granted: number[] = []
  for (let at = ACL_HEADER_BYTES; at + ACL_ENTRY_BYTES <= view.length; at += ACL_ENTRY_BYTES) {
    const tag = view.readUInt16LE(at)
    const bits = view.readUInt16LE(at + ACL_ENTRY_BITS_OFFSET)
    if (tag === ACL_MASK) mask = bits
    else if (
      (tag === ACL_GROUP_OBJ && gid === group) ||
      (tag === ACL_GROUP && view.readUInt32LE(at + ACL_ENTRY_ID_OFFSET) === group)
    ) {
      granted.push(bits)
    }
  }
  // One entry must allow the whole request (posix_acl_permission), so the bits of several entries are not added up.
  return granted.length === 0 ? mode & 0o7 : Math.max(...granted.map((bits) => bits & mask))
}

export function readAcl(inodes: Inodes, handle: Handle): Uint8Array | undefined {
  return inodes.getAttribute(handle, ACCESS_ACL_ATTRIBUTE)
}

/** Reads an open inode's file capability in the kernel's encoding. */
export function readCapability(inodes: Inodes, handle: Handle): Uint8Array | undefined {
  return inodes.getAttribute(handle, CAPABILITY_ATTRIBUTE)
}

/** An inode held open, so that no rename can replace it, and its state when it was inspected. */
export interface OpenInode extends InodeState {
  handle: Handle
  /** Time before stat was called. */
  inspectedAtMs: number
}

/**
 * Reads the ACL and the capability of an open inode.
 * @param inspectedAtMs time before `stat` was read
 * @param names the inode's extended attributes, see Inodes.attributeNames
 */
export function inspectInode(
  inodes: Inodes,
  handle: Handle,
  stat: Stat,
  inspectedAtMs: number,
  names: string,
): OpenInode {
  const capability =
    isRegularFile(stat) && names.includes(CAPABILITY_ATTRIBUTE) ? readCapability(inodes, handle) : undefined
  return {
    handle,
    stat,
    inspectedAtMs,
    capability,
    acl: names.includes(ACCESS_ACL_ATTRIBUTE) ? readAcl(inodes, handle) : undefined,
  }
}

/**
 * Returns whether the inode has a capability or an ACL.
 * @param names the inode's extended attributes
 */
export function hasAclOrCapability(names: string): boolean {
  return names !== '' && (names.includes(CAPABILITY_ATTRIBUTE) || names.includes(ACCESS_ACL_ATTRIBUTE))
}
