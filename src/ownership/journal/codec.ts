import { type InodeRecord, NO_ACL } from '../inode/record.ts'
import {
  AFTER_GID,
  AFTER_MODE,
  FIRST,
  FORFEITED,
  HEADER,
  KEY,
  LAST,
  putFirst,
  putKey,
  putLast,
  putLengths,
  SEEN_WHOLE,
} from './layout.ts'

/** Inode and birth time of each in turn. */
export function keysOf(inodes: readonly { inode: bigint; born: bigint }[]): BigInt64Array {
  const keys = new BigInt64Array(inodes.length * 2)
  for (const [index, { inode, born }] of inodes.entries()) {
    keys[index * 2] = inode
    keys[index * 2 + 1] = born
  }
  return keys
}

/** One record as it lies in a chunk of them. */
export interface Encoded {
  chunk: DataView
  at: number
}

export function encode(records: readonly InodeRecord[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(records.reduce((sum, record) => sum + sizeOf(record), 0))
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const record of records) at = write(bytes, view, at, record)
  return bytes
}

function sizeOf({ path, capability, acl }: InodeRecord): number {
  const { before, seen, after } = acl
  const first = path.length + length(capability) + length(before)
  return HEADER + FIRST + LAST + first + length(seen) + length(after)
}

function write(bytes: Uint8Array, view: DataView, start: number, record: InodeRecord): number {
  const { path, before, capability, acl, seen, meant, after } = record
  putKey(view, start, record)
  let at = start + HEADER
  putFirst(view, at, record.uid, before.gid, before.mode, path.length)
  view.setUint32(at + 12, mark(capability), true)
  view.setUint32(at + 16, mark(acl.before), true)
  at = put(bytes, at + FIRST, path)
  at = put(bytes, at, capability)
  const last = put(bytes, at, acl.before)
  const flags = (record.seenWhole ? SEEN_WHOLE : 0) | (record.forfeited ? FORFEITED : 0)
  putLast(view, last, record.modified, record.size, flags)
  view.setUint32(last + 16, seen.gid, true)
  view.setUint32(last + 20, meant.gid, true)
  view.setUint32(last + AFTER_GID, after.gid, true)
  view.setUint16(last + 28, seen.mode, true)
  view.setUint16(last + 30, meant.mode, true)
  view.setUint16(last + AFTER_MODE, after.mode, true)
  view.setUint32(last + 36, mark(acl.seen), true)
  view.setUint32(last + 40, mark(acl.after), true)
  at = put(bytes, last + LAST, acl.seen)
  at = put(bytes, at, acl.after)
  putLengths(view, start, last - start - HEADER, at - last)
  return at
}

/** Puts records together. */
export function join(records: readonly Encoded[]): Uint8Array<ArrayBuffer> {
  return joined(records.map((record) => bytesOf(record)))
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) at = put(bytes, at, part)
  return bytes
}

/** The record whose first part is that of one record and whose last part is that of another. */
export function compose(first: Encoded, last: Encoded): Encoded {
  const [a, b] = [bytesOf(first), bytesOf(last)]
  const [before, now] = [a.subarray(0, HEADER + lengths(first)[0]), b.subarray(HEADER + lengths(last)[0])]
  const bytes = new Uint8Array(before.length + now.length)
  put(bytes, put(bytes, 0, before), now)
  const chunk = viewOf(bytes)
  chunk.setUint32(4, now.length, true)
  return { chunk, at: 0 }
}

function bytesOf({ chunk, at }: Encoded): Uint8Array {
  return new Uint8Array(chunk.buffer, chunk.byteOffset + at, endOf(chunk, at) - at)
}

/** Of the first part and of the last. */
function lengths({ chunk, at }: Encoded): [number, number] {
  return [chunk.getUint32(at, true), chunk.getUint32(at + 4, true)]
}

/** Keys in place of records: their inodes are forgotten. */
export function encodeForgotten(keys: BigInt64Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array((keys.length / 2) * HEADER)
  const view = new DataView(bytes.buffer)
  for (const [index, word] of keys.entries())
    view.setBigInt64((index >> 1) * HEADER + KEY + (index & 1) * 8, word, true)
  return bytes
}

/** Gives memory back that nobody looks at any more: a collector that sees a small object waits until there are many. */
export function free({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** Where each record of a chunk begins. @throws {RangeError} where the bytes are no whole records */
export function startsOf(chunk: DataView): Int32Array {
  const starts = new Int32Array(chunk.byteLength / HEADER)
  let count = 0
  for (let at = 0; at < chunk.byteLength; at = endOf(chunk, at)) starts[count++] = at
  return starts.slice(0, count)
}

function endOf(chunk: DataView, at: number): number {
  const end = at + HEADER + chunk.getUint32(at, true) + chunk.getUint32(at + 4, true)
  if (end > chunk.byteLength) throw new RangeError('a record is cut off')
  return end
}

export function isForgotten(chunk: DataView, at: number): boolean {
  return chunk.getUint32(at, true) === 0
}

/** @throws {RangeError} where the bytes are no whole records */
export function split(chunk: Uint8Array): Encoded[] {
  const view = viewOf(chunk)
  return Array.from(startsOf(view), (at) => ({ chunk: view, at }))
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** @throws {RangeError} where the bytes are no record */
export function decode({ chunk, at }: Encoded, settled: boolean): InodeRecord {
  const [size, rest] = lengths({ chunk, at })
  const first = at + HEADER
  const last = first + size
  if (size < FIRST || rest < LAST) throw new RangeError('a record is cut off')
  const path = take(chunk, first + FIRST, chunk.getUint16(first + 10, true) + 1) ?? new Uint8Array()
  const capability = take(chunk, first + FIRST + path.length, chunk.getUint32(first + 12, true))
  const before = take(chunk, first + FIRST + path.length + length(capability), chunk.getUint32(first + 16, true))
  const seen = take(chunk, last + LAST, chunk.getUint32(last + 36, true))
  const after = take(chunk, last + LAST + length(seen), chunk.getUint32(last + 40, true))
  const flags = chunk.getUint16(last + 34, true)
  return {
    inode: chunk.getBigUint64(at + KEY, true),
    born: chunk.getBigInt64(at + KEY + 8, true),
    path,
    uid: chunk.getUint32(first, true),
    before: { gid: chunk.getUint32(first + 4, true), mode: chunk.getUint16(first + 8, true) },
    capability,
    acl: before || seen || after ? { before, seen, after } : NO_ACL,
    modified: chunk.getBigInt64(last, true),
    size: chunk.getBigUint64(last + 8, true),
    seen: { gid: chunk.getUint32(last + 16, true), mode: chunk.getUint16(last + 28, true) },
    seenWhole: (flags & SEEN_WHOLE) !== 0,
    meant: { gid: chunk.getUint32(last + 20, true), mode: chunk.getUint16(last + 30, true) },
    forfeited: (flags & FORFEITED) !== 0,
    after: { gid: chunk.getUint32(last + AFTER_GID, true), mode: chunk.getUint16(last + AFTER_MODE, true) },
    settled,
  }
}

function take(chunk: DataView, at: number, marked: number): Uint8Array | undefined {
  if (marked === 0) return undefined
  if (at + marked - 1 > chunk.byteLength) throw new RangeError('a record is cut off')
  return new Uint8Array(chunk.buffer, chunk.byteOffset + at, marked - 1)
}

function length(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : bytes.length
}

function mark(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : bytes.length + 1
}

function put(bytes: Uint8Array, at: number, value: Uint8Array | undefined): number {
  if (value !== undefined) bytes.set(value, at)
  return at + length(value)
}
