import type { Stat } from '../../host/host.ts'

// Records as bytes, little-endian. Each is: u32 length of the first part, u32 of the last, i64 inode, i64 birth time,
// the two parts. The first part is what the inode was when it was first recorded and never changes; the last is what
// the latest change saw and makes of it. Both are empty where the inode is forgotten. A byte string that may be missing
// has its length + 1, 0 where it is; an ACL has its number in the table of ACLs.
export const HEADER = 24
/** Where inode and birth time lie in the header. */
export const KEY = 8
export const FIRST = 20
export const LAST = 44
export const AFTER_GID = 24
export const AFTER_MODE = 32
/** Where the numbers of ACLs lie, the first in the first part. */
export const ACL_BEFORE = 16
export const ACL_SEEN = 36
export const ACL_AFTER = 40
/** There is no ACL. */
export const NO_NUMBER = 0
export const SEEN_WHOLE = 1
export const FORFEITED = 2
/** The last part ends in what `apply` left the inode as: u32 group, u16 mode, two bytes of zero, u32 number of the ACL. */
export const HAS_BASELINE = 4
export const BASELINE = 12
/** Where the flags lie in the last part. */
export const FLAGS = 34

export function putKey(view: DataView, start: number, { inode, born }: Pick<Stat, 'inode' | 'born'>): void {
  view.setBigUint64(start + KEY, inode, true)
  view.setBigInt64(start + KEY + 8, born, true)
}

export function putLengths(view: DataView, start: number, first: number, last: number): void {
  view.setUint32(start, first, true)
  view.setUint32(start + 4, last, true)
}

export function putFirst(view: DataView, at: number, uid: number, gid: number, mode: number, pathLength: number): void {
  view.setUint32(at, uid, true)
  view.setUint32(at + 4, gid, true)
  view.setUint16(at + 8, mode, true)
  view.setUint16(at + 10, pathLength, true)
}

export function putLast(view: DataView, last: number, modified: bigint, size: bigint, flags: number): void {
  view.setBigInt64(last, modified, true)
  view.setBigUint64(last + 8, size, true)
  view.setUint16(last + FLAGS, flags, true)
}
