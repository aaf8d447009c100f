import { type Baseline, type InodeRecord, NO_ACL } from '../inode/record.ts'
import {
  ACL_AFTER,
  ACL_BEFORE,
  ACL_SEEN,
  AFTER_GID,
  AFTER_MODE,
  BASELINE,
  FIRST,
  FLAGS,
  FORFEITED,
  HAS_BASELINE,
  HEADER,
  KEY,
  LAST,
  NO_NUMBER,
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

/** The ACLs that records refer to. */
export interface Acls {
  /** @returns from 1 on */
  numberOf(acl: Uint8Array): number
  /** @throws {RangeError} where there is none of that number */
  get(number: number): Uint8Array
}

/** One record as it lies in a chunk of them. */
export interface Encoded {
  chunk: DataView
  at: number
}

export function encode(records: readonly InodeRecord[], acls: Acls): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(records.reduce((sum, record) => sum + sizeOf(record), 0))
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const record of records) at = write(bytes, view, at, record, acls)
  return bytes
}

function sizeOf({ path, capability, baseline }: InodeRecord): number {
  return HEADER + FIRST + LAST + path.length + length(capability) + (baseline ? BASELINE : 0)
}

function write(bytes: Uint8Array, view: DataView, start: number, record: InodeRecord, acls: Acls): number {
  const { path, before, capability, acl, seen, meant, after, baseline } = record
  const numberOf = (one: Uint8Array | undefined) => (one === undefined ? NO_NUMBER : acls.numberOf(one))
  putKey(view, start, record)
  let at = start + HEADER
  putFirst(view, at, record.uid, before.gid, before.mode, path.length)
  view.setUint32(at + 12, mark(capability), true)
  view.setUint32(at + ACL_BEFORE, numberOf(acl.before), true)
  at = put(bytes, at + FIRST, path)
  const last = put(bytes, at, capability)
  const flags = (record.seenWhole ? SEEN_WHOLE : 0) | (record.forfeited ? FORFEITED : 0) | (baseline ? HAS_BASELINE : 0)
  putLast(view, last, record.modified, record.size, flags)
  view.setUint32(last + 16, seen.gid, true)
  view.setUint32(last + 20, meant.gid, true)
  view.setUint32(last + AFTER_GID, after.gid, true)
  view.setUint16(last + 28, seen.mode, true)
  view.setUint16(last + 30, meant.mode, true)
  view.setUint16(last + AFTER_MODE, after.mode, true)
  view.setUint32(last + ACL_SEEN, numberOf(acl.seen), true)
  view.setUint32(last + ACL_AFTER, numberOf(acl.after), true)
  if (baseline) putBaseline(view, last + LAST, baseline.gid, baseline.mode, numberOf(baseline.acl))
  const size = LAST + (baseline ? BASELINE : 0)
  putLengths(view, start, last - start - HEADER, size)
  return last + size
}

function putBaseline(view: DataView, at: number, gid: number, mode: number, acl: number): void {
  view.setUint32(at, gid, true)
  view.setUint16(at + 4, mode, true)
  view.setUint16(at + 6, 0, true)
  view.setUint32(at + 8, acl, true)
}

/** A copy of a record whose baseline is what its last change makes of the inode. */
export function withBaseline(record: Encoded): Encoded {
  const [first] = lengths(record)
  const last = HEADER + first
  const bytes = new Uint8Array(last + LAST + BASELINE)
  bytes.set(bytesOf(record).subarray(0, last + LAST))
  const chunk = viewOf(bytes)
  chunk.setUint16(last + FLAGS, chunk.getUint16(last + FLAGS, true) | HAS_BASELINE, true)
  const number = (at: number) => chunk.getUint32(last + at, true)
  putBaseline(chunk, last + LAST, number(AFTER_GID), chunk.getUint16(last + AFTER_MODE, true), number(ACL_AFTER))
  chunk.setUint32(4, LAST + BASELINE, true)
  return { chunk, at: 0 }
}

/** The numbers of the ACLs that a record refers to, NO_NUMBER among them. @throws {RangeError} where it is no record */
export function aclsIn({ chunk, at }: Encoded): [before: number, seen: number, after: number, baseline: number] {
  const [size, rest] = lengths({ chunk, at })
  const last = at + HEADER + size
  if (size < FIRST || rest < LAST) throw new RangeError('a record is cut off')
  const number = (place: number) => chunk.getUint32(place, true)
  const hasBaseline = (chunk.getUint16(last + FLAGS, true) & HAS_BASELINE) !== 0
  if (hasBaseline && rest < LAST + BASELINE) throw new RangeError('a record is cut off')
  const baseline = hasBaseline ? number(last + LAST + 8) : NO_NUMBER
  return [number(at + HEADER + ACL_BEFORE), number(last + ACL_SEEN), number(last + ACL_AFTER), baseline]
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

/** @throws {RangeError} where the bytes are no record, or an ACL of it is not to be had */
export function decode({ chunk, at }: Encoded, settled: boolean, acls: Pick<Acls, 'get'>): InodeRecord {
  const [before, seen, after, baseline] = aclsIn({ chunk, at }).map((number) =>
    number === NO_NUMBER ? undefined : acls.get(number),
  )
  const first = at + HEADER
  const last = first + lengths({ chunk, at })[0]
  const path = take(chunk, first + FIRST, chunk.getUint16(first + 10, true) + 1) ?? new Uint8Array()
  const capability = take(chunk, first + FIRST + path.length, chunk.getUint32(first + 12, true))
  const flags = chunk.getUint16(last + FLAGS, true)
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
    ...((flags & HAS_BASELINE) !== 0 && { baseline: baselineAt(chunk, last + LAST, baseline) }),
    settled,
  }
}

function baselineAt(chunk: DataView, at: number, acl: Uint8Array | undefined): Baseline {
  return { gid: chunk.getUint32(at, true), mode: chunk.getUint16(at + 4, true), acl }
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
