import type { Stat } from '../../host/host.ts'

// Layout of a record, little-endian: u32 length of the first part, u32 length of the last part, i64 inode, i64 birth
// time, the two parts.
// The first part has the state when first recorded and never changes. The last part has the latest change: the state
// before it and the target.
// Both parts are empty if the inode is forgotten. An optional byte string has its length + 1, or 0 if it is missing. An
// ACL has its number in the table of ACLs.
export const HEADER_SIZE = 24
/** Offset of inode and birth time in the header. */
export const KEY_OFFSET = 8
export const FIRST_SIZE = 20
export const LAST_SIZE = 44
export const AFTER_GID_OFFSET = 24
export const AFTER_MODE_OFFSET = 32
/** Offsets of the ACL numbers. ACL_BEFORE_OFFSET is in the first part, the others are in the last. */
export const ACL_BEFORE_OFFSET = 16
export const ACL_SEEN_OFFSET = 36
export const ACL_AFTER_OFFSET = 40
/** The inode has no ACL. */
export const NO_ACL_NUMBER = 0
export const CAPABILITY_INTACT = 1
export const FORFEITED = 2
/** The last part ends with the state after `apply`: u32 group, u16 mode, two zero bytes, u32 number of the ACL. */
export const HAS_BASELINE = 4
export const BASELINE_SIZE = 12
/** Offset of the flags in the last part. */
export const FLAGS_OFFSET = 34

export function putKey(view: DataView, start: number, { inode, born }: Pick<Stat, 'inode' | 'born'>): void {
  view.setBigUint64(start + KEY_OFFSET, inode, true)
  view.setBigInt64(start + KEY_OFFSET + 8, born, true)
}

export function putLengths(view: DataView, start: number, first: number, last: number): void {
  view.setUint32(start, first, true)
  view.setUint32(start + 4, last, true)
}

export function putFirstPart(
  view: DataView,
  at: number,
  uid: number,
  gid: number,
  mode: number,
  pathLength: number,
): void {
  view.setUint32(at, uid, true)
  view.setUint32(at + 4, gid, true)
  view.setUint16(at + 8, mode, true)
  view.setUint16(at + 10, pathLength, true)
}

export function putLastPart(view: DataView, last: number, modified: bigint, size: bigint, flags: number): void {
  view.setBigInt64(last, modified, true)
  view.setBigUint64(last + 8, size, true)
  view.setUint16(last + FLAGS_OFFSET, flags, true)
}
