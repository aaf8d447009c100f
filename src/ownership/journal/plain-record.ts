import type { Stat } from '../../host/host.ts'
import { type Ownership, PERMISSIONS } from '../inode/policy.ts'
import {
  AFTER_GID,
  AFTER_MODE,
  FIRST,
  FLAGS,
  HEADER,
  KEY,
  LAST,
  putFirst,
  putKey,
  putLast,
  putLengths,
  SEEN_WHOLE,
} from './layout.ts'

/** The most bytes that a plain record takes beside its path. */
export const PLAIN = HEADER + FIRST + LAST

/**
 * Writes the record of an inode without capability, ACL and anything that an interrupted call has left: it is meant to
 * be what it is seen to be.
 * @param pathLength the path is already there, at `pathAt(start)`
 * @param group and `mode`: what its change makes of it
 * @returns where the next one begins
 */
export function writePlain(
  view: DataView,
  start: number,
  stat: Stat,
  pathLength: number,
  group: number,
  mode: number,
): number {
  const { gid } = stat
  const seen = stat.mode & PERMISSIONS
  const last = start + HEADER + FIRST + pathLength
  putKey(view, start, stat)
  putLengths(view, start, FIRST + pathLength, LAST)
  putFirst(view, start + HEADER, stat.uid, gid, seen, pathLength)
  view.setBigInt64(start + HEADER + 12, 0n, true)
  putLast(view, last, stat.modified, stat.size, SEEN_WHOLE)
  view.setUint32(last + 16, gid, true)
  view.setUint32(last + 20, gid, true)
  view.setUint32(last + AFTER_GID, group, true)
  view.setUint16(last + 28, seen, true)
  view.setUint16(last + 30, seen, true)
  view.setUint16(last + AFTER_MODE, mode, true)
  view.setBigInt64(last + 36, 0n, true)
  return last + LAST
}

/** How many bytes of a plain record come after its path. */
export const AFTER_PATH = LAST

/** Where the path of a record lies that begins at `start`. */
export const pathAt = (start: number) => start + HEADER + FIRST

/** Says what a record's change makes of its inode. */
export function writeAfter(view: DataView, start: number, gid: number, mode: number): void {
  const last = start + HEADER + view.getUint32(start, true)
  view.setUint32(last + AFTER_GID, gid, true)
  view.setUint16(last + AFTER_MODE, mode, true)
}

/**
 * Whether what an inode was and what its change made of it is all that its record says: no capability, no ACL, no
 * interrupted call, and a birth time to know it by.
 */
export function isPlain(chunk: DataView, at: number): boolean {
  const first = at + HEADER
  const last = first + chunk.getUint32(at, true)
  return (
    chunk.getInt32(first + 12, true) === 0 &&
    chunk.getInt32(first + 16, true) === 0 &&
    chunk.getInt32(last + 36, true) === 0 &&
    chunk.getInt32(last + 40, true) === 0 &&
    chunk.getUint16(last + FLAGS, true) === SEEN_WHOLE &&
    // Two words: a bigint would be an object for the collector.
    (chunk.getInt32(at + KEY + 8, true) !== 0 || chunk.getInt32(at + KEY + 12, true) !== 0)
  )
}

export function beforeOf(chunk: DataView, at: number): Ownership {
  const first = at + HEADER
  return { gid: chunk.getUint32(first + 4, true), mode: chunk.getUint16(first + 8, true) }
}

export function afterOf(chunk: DataView, at: number): Ownership {
  const last = at + HEADER + chunk.getUint32(at, true)
  return { gid: chunk.getUint32(last + AFTER_GID, true), mode: chunk.getUint16(last + AFTER_MODE, true) }
}
