import type { Stat } from '../../kernel/host.ts'
import { CHMOD_MODE_BITS, type Ownership } from '../inode/policy.ts'

// Layout of a record, little-endian: u32 length of the first part, u32 length of the last part, i64 inode, i64 birth
// time, the two parts.
// The first part has the state when first recorded and never changes. The last part has the latest change: the state
// before it and the target.
// Both parts are empty if the inode is forgotten. An optional byte string has its length + 1, or 0 if it is missing. An
// ACL has its number in the table of ACLs.
export const RECORD_HEADER_BYTES = 24
/** Offset of inode and birth time in the header. */
export const RECORD_KEY_OFFSET = 8
export const FIRST_PART_BYTES = 20
export const LAST_PART_BYTES = 44
export const TARGET_GID_OFFSET = 24
export const TARGET_MODE_OFFSET = 32
/** Offsets of the ACL numbers. ORIGINAL_ACL_OFFSET is in the first part, the others are in the last. */
export const ORIGINAL_ACL_OFFSET = 16
export const SEEN_ACL_OFFSET = 36
export const TARGET_ACL_OFFSET = 40
/** The inode has no ACL. */
export const NO_ACL_NUMBER = 0
export const CAPABILITY_INTACT_FLAG = 1
export const PRIVILEGES_FORFEITED_FLAG = 2
/** The last part ends with the state after `apply`: u32 group, u16 mode, two zero bytes, u32 number of the ACL. */
export const HAS_BASELINE_FLAG = 4
export const BASELINE_BYTES = 12
/** Offset of the flags in the last part. */
export const RECORD_FLAGS_OFFSET = 34

export function writeRecordKey(view: DataView, start: number, { inode, born }: Pick<Stat, 'inode' | 'born'>): void {
  view.setBigUint64(start + RECORD_KEY_OFFSET, inode, true)
  view.setBigInt64(start + RECORD_KEY_OFFSET + 8, born, true)
}

export function writeRecordPartLengths(view: DataView, start: number, first: number, last: number): void {
  view.setUint32(start, first, true)
  view.setUint32(start + 4, last, true)
}

export function writeRecordFirstPart(
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

export function writeRecordLastPart(view: DataView, last: number, modified: bigint, size: bigint, flags: number): void {
  view.setBigInt64(last, modified, true)
  view.setBigUint64(last + 8, size, true)
  view.setUint16(last + RECORD_FLAGS_OFFSET, flags, true)
}

/** Size of a plain record without its path. */
export const PLAIN_RECORD_BYTES = RECORD_HEADER_BYTES + FIRST_PART_BYTES + LAST_PART_BYTES

/**
 * Writes the record of an inode that has no capability, no ACL and no interrupted change, so that `intended` equals
 * `seen`.
 * @param pathLength the path is already written at `getRecordPathOffset(start)`
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
  const seen = stat.mode & CHMOD_MODE_BITS
  const last = start + RECORD_HEADER_BYTES + FIRST_PART_BYTES + pathLength
  writeRecordKey(view, start, stat)
  writeRecordPartLengths(view, start, FIRST_PART_BYTES + pathLength, LAST_PART_BYTES)
  writeRecordFirstPart(view, start + RECORD_HEADER_BYTES, stat.uid, gid, seen, pathLength)
  view.setBigInt64(start + RECORD_HEADER_BYTES + 12, 0n, true)
  writeRecordLastPart(view, last, stat.modified, stat.size, CAPABILITY_INTACT_FLAG)
  view.setUint32(last + 16, gid, true)
  view.setUint32(last + 20, gid, true)
  view.setUint32(last + TARGET_GID_OFFSET, group, true)
  view.setUint16(last + 28, seen, true)
  view.setUint16(last + 30, seen, true)
  view.setUint16(last + TARGET_MODE_OFFSET, mode, true)
  view.setBigInt64(last + 36, 0n, true)
  return last + LAST_PART_BYTES
}

/** Bytes of a plain record after its path. */
export const RECORD_BYTES_AFTER_PATH = LAST_PART_BYTES

export const getRecordPathOffset = (start: number) => start + RECORD_HEADER_BYTES + FIRST_PART_BYTES

/** Writes the target state of a record. */
export function writeTargetOwnership(view: DataView, start: number, gid: number, mode: number): void {
  const last = start + RECORD_HEADER_BYTES + view.getUint32(start, true)
  view.setUint32(last + TARGET_GID_OFFSET, gid, true)
  view.setUint16(last + TARGET_MODE_OFFSET, mode, true)
}

/**
 * Returns whether the record says nothing but the states before and after: no capability, no ACL, no interrupted call.
 * The inode must have a birth time.
 */
export function isPlainInodeRecord(chunk: DataView, at: number): boolean {
  const first = at + RECORD_HEADER_BYTES
  const last = first + chunk.getUint32(at, true)
  return (
    chunk.getInt32(first + 12, true) === 0 &&
    chunk.getInt32(first + 16, true) === 0 &&
    chunk.getInt32(last + 36, true) === 0 &&
    chunk.getInt32(last + 40, true) === 0 &&
    chunk.getUint16(last + RECORD_FLAGS_OFFSET, true) === CAPABILITY_INTACT_FLAG &&
    // Compared as two words, because a bigint would be garbage for each record.
    (chunk.getInt32(at + RECORD_KEY_OFFSET + 8, true) !== 0 || chunk.getInt32(at + RECORD_KEY_OFFSET + 12, true) !== 0)
  )
}

export function readOriginalOwnership(chunk: DataView, at: number): Ownership {
  const first = at + RECORD_HEADER_BYTES
  return { gid: chunk.getUint32(first + 4, true), mode: chunk.getUint16(first + 8, true) }
}

export function readTargetOwnership(chunk: DataView, at: number): Ownership {
  const last = at + RECORD_HEADER_BYTES + chunk.getUint32(at, true)
  return {
    gid: chunk.getUint32(last + TARGET_GID_OFFSET, true),
    mode: chunk.getUint16(last + TARGET_MODE_OFFSET, true),
  }
}

/** Encodes keys instead of records: their inodes are forgotten. */
export function encodeForgottenInodes(keys: BigInt64Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array((keys.length / 2) * RECORD_HEADER_BYTES)
  const view = new DataView(bytes.buffer)
  for (const [index, word] of keys.entries())
    view.setBigInt64((index >> 1) * RECORD_HEADER_BYTES + RECORD_KEY_OFFSET + (index & 1) * 8, word, true)
  return bytes
}

/** Returns the offset of each record. @throws {RangeError} if the chunk ends within a record */
export function findRecordStarts(chunk: DataView): Int32Array {
  const starts = new Int32Array(chunk.byteLength / RECORD_HEADER_BYTES)
  let count = 0
  for (let at = 0; at < chunk.byteLength; at = findRecordEnd(chunk, at)) starts[count++] = at
  return starts.slice(0, count)
}

export function findRecordEnd(chunk: DataView, at: number): number {
  const end = at + RECORD_HEADER_BYTES + chunk.getUint32(at, true) + chunk.getUint32(at + 4, true)
  if (end > chunk.byteLength) throw new RangeError('a record is cut off')
  return end
}

export function isForgottenInodeRecord(chunk: DataView, at: number): boolean {
  return chunk.getUint32(at, true) === 0
}
