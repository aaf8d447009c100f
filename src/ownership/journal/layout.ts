import type { Stat } from '../../kernel/host.ts'
import { type Ownership, PERMISSIONS } from '../inode/policy.ts'

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

/** Size of a plain record without its path. */
export const PLAIN_RECORD_SIZE = HEADER_SIZE + FIRST_SIZE + LAST_SIZE

/**
 * Writes the record of an inode that has no capability, no ACL and no interrupted change, so that `intended` equals
 * `seen`.
 * @param pathLength the path is already written at `getPathOffset(start)`
 * @param group and `mode`: the target state
 * @returns the offset of the next record
 */
export function writePlainRecord(
  view: DataView,
  start: number,
  stat: Stat,
  pathLength: number,
  group: number,
  mode: number,
): number {
  const { gid } = stat
  const seen = stat.mode & PERMISSIONS
  const last = start + HEADER_SIZE + FIRST_SIZE + pathLength
  putKey(view, start, stat)
  putLengths(view, start, FIRST_SIZE + pathLength, LAST_SIZE)
  putFirstPart(view, start + HEADER_SIZE, stat.uid, gid, seen, pathLength)
  view.setBigInt64(start + HEADER_SIZE + 12, 0n, true)
  putLastPart(view, last, stat.modified, stat.size, CAPABILITY_INTACT)
  view.setUint32(last + 16, gid, true)
  view.setUint32(last + 20, gid, true)
  view.setUint32(last + AFTER_GID_OFFSET, group, true)
  view.setUint16(last + 28, seen, true)
  view.setUint16(last + 30, seen, true)
  view.setUint16(last + AFTER_MODE_OFFSET, mode, true)
  view.setBigInt64(last + 36, 0n, true)
  return last + LAST_SIZE
}

/** Bytes of a plain record after its path. */
export const BYTES_AFTER_PATH = LAST_SIZE

export const getPathOffset = (start: number) => start + HEADER_SIZE + FIRST_SIZE

/** Writes the target state of a record. */
export function writeAfterState(view: DataView, start: number, gid: number, mode: number): void {
  const last = start + HEADER_SIZE + view.getUint32(start, true)
  view.setUint32(last + AFTER_GID_OFFSET, gid, true)
  view.setUint16(last + AFTER_MODE_OFFSET, mode, true)
}

/**
 * Returns whether the record says nothing but the states before and after: no capability, no ACL, no interrupted call.
 * The inode must have a birth time.
 */
export function isPlainRecord(chunk: DataView, at: number): boolean {
  const first = at + HEADER_SIZE
  const last = first + chunk.getUint32(at, true)
  return (
    chunk.getInt32(first + 12, true) === 0 &&
    chunk.getInt32(first + 16, true) === 0 &&
    chunk.getInt32(last + 36, true) === 0 &&
    chunk.getInt32(last + 40, true) === 0 &&
    chunk.getUint16(last + FLAGS_OFFSET, true) === CAPABILITY_INTACT &&
    // Compared as two words, because a bigint would be garbage for each record.
    (chunk.getInt32(at + KEY_OFFSET + 8, true) !== 0 || chunk.getInt32(at + KEY_OFFSET + 12, true) !== 0)
  )
}

export function readBefore(chunk: DataView, at: number): Ownership {
  const first = at + HEADER_SIZE
  return { gid: chunk.getUint32(first + 4, true), mode: chunk.getUint16(first + 8, true) }
}

export function readAfter(chunk: DataView, at: number): Ownership {
  const last = at + HEADER_SIZE + chunk.getUint32(at, true)
  return { gid: chunk.getUint32(last + AFTER_GID_OFFSET, true), mode: chunk.getUint16(last + AFTER_MODE_OFFSET, true) }
}
