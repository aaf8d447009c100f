import { type Baseline, type InodeRecord, NO_ACL } from '../inode/record.ts'
import {
  ACL_AFTER_OFFSET,
  ACL_BEFORE_OFFSET,
  ACL_SEEN_OFFSET,
  AFTER_GID_OFFSET,
  AFTER_MODE_OFFSET,
  BASELINE_SIZE,
  CAPABILITY_INTACT,
  FIRST_SIZE,
  FLAGS_OFFSET,
  FORFEITED,
  HAS_BASELINE,
  HEADER_SIZE,
  KEY_OFFSET,
  LAST_SIZE,
  NO_ACL_NUMBER,
  putFirstPart,
  putKey,
  putLastPart,
  putLengths,
} from './layout.ts'

/** Returns inode and birth time of each in turn. */
export function encodeKeys(inodes: readonly { inode: bigint; born: bigint }[]): BigInt64Array {
  const keys = new BigInt64Array(inodes.length * 2)
  for (const [index, { inode, born }] of inodes.entries()) {
    keys[index * 2] = inode
    keys[index * 2 + 1] = born
  }
  return keys
}

/** The ACLs that records refer to. */
export interface Acls {
  /** @returns the number of the ACL; the first is 1 */
  assignNumber(acl: Uint8Array): number
  /** @throws {RangeError} if the number is missing */
  get(number: number): Uint8Array
}

/** One record within a chunk of records. */
export interface EncodedRecord {
  chunk: DataView
  at: number
}

export function encodeRecords(records: readonly InodeRecord[], acls: Acls): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(records.reduce((sum, record) => sum + measureRecord(record), 0))
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const record of records) at = writeRecord(bytes, view, at, record, acls)
  return bytes
}

function measureRecord({ path, capability, baseline }: InodeRecord): number {
  return HEADER_SIZE + FIRST_SIZE + LAST_SIZE + path.length + countBytes(capability) + (baseline ? BASELINE_SIZE : 0)
}

function writeRecord(bytes: Uint8Array, view: DataView, start: number, record: InodeRecord, acls: Acls): number {
  const { path, before, capability, capabilityIntact, forfeited, acl, seen, intended, after, baseline } = record
  const getAclNumber = (one: Uint8Array | undefined) => (one === undefined ? NO_ACL_NUMBER : acls.assignNumber(one))
  putKey(view, start, record)
  let at = start + HEADER_SIZE
  putFirstPart(view, at, record.uid, before.gid, before.mode, path.length)
  view.setUint32(at + 12, encodeLength(capability), true)
  view.setUint32(at + ACL_BEFORE_OFFSET, getAclNumber(acl.before), true)
  at = putBytes(bytes, at + FIRST_SIZE, path)
  const last = putBytes(bytes, at, capability)
  const flags = (capabilityIntact ? CAPABILITY_INTACT : 0) | (forfeited ? FORFEITED : 0) | (baseline ? HAS_BASELINE : 0)
  putLastPart(view, last, record.modified, record.size, flags)
  view.setUint32(last + 16, seen.gid, true)
  view.setUint32(last + 20, intended.gid, true)
  view.setUint32(last + AFTER_GID_OFFSET, after.gid, true)
  view.setUint16(last + 28, seen.mode, true)
  view.setUint16(last + 30, intended.mode, true)
  view.setUint16(last + AFTER_MODE_OFFSET, after.mode, true)
  view.setUint32(last + ACL_SEEN_OFFSET, getAclNumber(acl.seen), true)
  view.setUint32(last + ACL_AFTER_OFFSET, getAclNumber(acl.after), true)
  if (baseline) putBaseline(view, last + LAST_SIZE, baseline.gid, baseline.mode, getAclNumber(baseline.acl))
  const size = LAST_SIZE + (baseline ? BASELINE_SIZE : 0)
  putLengths(view, start, last - start - HEADER_SIZE, size)
  return last + size
}

function putBaseline(view: DataView, at: number, gid: number, mode: number, acl: number): void {
  view.setUint32(at, gid, true)
  view.setUint16(at + 4, mode, true)
  view.setUint16(at + 6, 0, true)
  view.setUint32(at + 8, acl, true)
}

type AclNumbers = [before: number, seen: number, after: number, baseline: number]

/** Returns a copy of the record whose baseline is the target state of its last change. */
export function addBaseline(record: EncodedRecord): EncodedRecord {
  const [first] = readPartLengths(record)
  const last = HEADER_SIZE + first
  const bytes = new Uint8Array(last + LAST_SIZE + BASELINE_SIZE)
  bytes.set(sliceRecord(record).subarray(0, last + LAST_SIZE))
  const chunk = createView(bytes)
  chunk.setUint16(last + FLAGS_OFFSET, chunk.getUint16(last + FLAGS_OFFSET, true) | HAS_BASELINE, true)
  const readNumber = (at: number) => chunk.getUint32(last + at, true)
  const mode = chunk.getUint16(last + AFTER_MODE_OFFSET, true)
  putBaseline(chunk, last + LAST_SIZE, readNumber(AFTER_GID_OFFSET), mode, readNumber(ACL_AFTER_OFFSET))
  chunk.setUint32(4, LAST_SIZE + BASELINE_SIZE, true)
  return { chunk, at: 0 }
}

/**
 * Returns the numbers of the record's ACLs, or NO_ACL_NUMBER.
 * @throws {RangeError} if it is not a record
 */
export function readAclNumbers({ chunk, at }: EncodedRecord): AclNumbers {
  const [size, rest] = readPartLengths({ chunk, at })
  const last = at + HEADER_SIZE + size
  if (size < FIRST_SIZE || rest < LAST_SIZE) throw new RangeError('a record is cut off')
  const readNumber = (offset: number) => chunk.getUint32(offset, true)
  const hasBaseline = (chunk.getUint16(last + FLAGS_OFFSET, true) & HAS_BASELINE) !== 0
  if (hasBaseline && rest < LAST_SIZE + BASELINE_SIZE) throw new RangeError('a record is cut off')
  const baseline = hasBaseline ? readNumber(last + LAST_SIZE + 8) : NO_ACL_NUMBER
  const before = readNumber(at + HEADER_SIZE + ACL_BEFORE_OFFSET)
  return [before, readNumber(last + ACL_SEEN_OFFSET), readNumber(last + ACL_AFTER_OFFSET), baseline]
}

export function joinRecords(records: readonly EncodedRecord[]): Uint8Array<ArrayBuffer> {
  return concatBytes(records.map((record) => sliceRecord(record)))
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) at = putBytes(bytes, at, part)
  return bytes
}

/** Returns a record with the first part of one record and the last part of another. */
export function composeRecord(first: EncodedRecord, last: EncodedRecord): EncodedRecord {
  const before = sliceRecord(first).subarray(0, HEADER_SIZE + readPartLengths(first)[0])
  const now = sliceRecord(last).subarray(HEADER_SIZE + readPartLengths(last)[0])
  const bytes = new Uint8Array(before.length + now.length)
  putBytes(bytes, putBytes(bytes, 0, before), now)
  const chunk = createView(bytes)
  chunk.setUint32(4, now.length, true)
  return { chunk, at: 0 }
}

function sliceRecord({ chunk, at }: EncodedRecord): Uint8Array {
  return new Uint8Array(chunk.buffer, chunk.byteOffset + at, findRecordEnd(chunk, at) - at)
}

/** Lengths of the first part and of the last. */
function readPartLengths({ chunk, at }: EncodedRecord): [number, number] {
  return [chunk.getUint32(at, true), chunk.getUint32(at + 4, true)]
}

/** Encodes keys instead of records: their inodes are forgotten. */
export function encodeForgotten(keys: BigInt64Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array((keys.length / 2) * HEADER_SIZE)
  const view = new DataView(bytes.buffer)
  for (const [index, word] of keys.entries())
    view.setBigInt64((index >> 1) * HEADER_SIZE + KEY_OFFSET + (index & 1) * 8, word, true)
  return bytes
}

/** Returns the offset of each record. @throws {RangeError} if the chunk ends within a record */
export function findRecordStarts(chunk: DataView): Int32Array {
  const starts = new Int32Array(chunk.byteLength / HEADER_SIZE)
  let count = 0
  for (let at = 0; at < chunk.byteLength; at = findRecordEnd(chunk, at)) starts[count++] = at
  return starts.slice(0, count)
}

function findRecordEnd(chunk: DataView, at: number): number {
  const end = at + HEADER_SIZE + chunk.getUint32(at, true) + chunk.getUint32(at + 4, true)
  if (end > chunk.byteLength) throw new RangeError('a record is cut off')
  return end
}

export function isForgotten(chunk: DataView, at: number): boolean {
  return chunk.getUint32(at, true) === 0
}

/** @throws {RangeError} if the chunk ends within a record */
export function splitRecords(chunk: Uint8Array): EncodedRecord[] {
  const view = createView(chunk)
  return Array.from(findRecordStarts(view), (at) => ({ chunk: view, at }))
}

export function createView(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** @throws {RangeError} if the bytes are no record, or one of its ACLs is missing */
export function decodeRecord({ chunk, at }: EncodedRecord, settled: boolean, acls: Pick<Acls, 'get'>): InodeRecord {
  const [before, seen, after, baseline] = readAclNumbers({ chunk, at }).map((number) =>
    number === NO_ACL_NUMBER ? undefined : acls.get(number),
  )
  const first = at + HEADER_SIZE
  const last = first + readPartLengths({ chunk, at })[0]
  const path = readBytes(chunk, first + FIRST_SIZE, chunk.getUint16(first + 10, true) + 1) ?? new Uint8Array()
  const capability = readBytes(chunk, first + FIRST_SIZE + path.length, chunk.getUint32(first + 12, true))
  const flags = chunk.getUint16(last + FLAGS_OFFSET, true)
  return {
    inode: chunk.getBigUint64(at + KEY_OFFSET, true),
    born: chunk.getBigInt64(at + KEY_OFFSET + 8, true),
    path,
    uid: chunk.getUint32(first, true),
    before: { gid: chunk.getUint32(first + 4, true), mode: chunk.getUint16(first + 8, true) },
    capability,
    acl: before || seen || after ? { before, seen, after } : NO_ACL,
    modified: chunk.getBigInt64(last, true),
    size: chunk.getBigUint64(last + 8, true),
    seen: { gid: chunk.getUint32(last + 16, true), mode: chunk.getUint16(last + 28, true) },
    capabilityIntact: (flags & CAPABILITY_INTACT) !== 0,
    intended: { gid: chunk.getUint32(last + 20, true), mode: chunk.getUint16(last + 30, true) },
    forfeited: (flags & FORFEITED) !== 0,
    after: {
      gid: chunk.getUint32(last + AFTER_GID_OFFSET, true),
      mode: chunk.getUint16(last + AFTER_MODE_OFFSET, true),
    },
    ...((flags & HAS_BASELINE) !== 0 && { baseline: readBaseline(chunk, last + LAST_SIZE, baseline) }),
    settled,
  }
}

function readBaseline(chunk: DataView, at: number, acl: Uint8Array | undefined): Baseline {
  return { gid: chunk.getUint32(at, true), mode: chunk.getUint16(at + 4, true), acl }
}

function readBytes(chunk: DataView, at: number, encodedLength: number): Uint8Array | undefined {
  if (encodedLength === 0) return undefined
  if (at + encodedLength - 1 > chunk.byteLength) throw new RangeError('a record is cut off')
  return new Uint8Array(chunk.buffer, chunk.byteOffset + at, encodedLength - 1)
}

function countBytes(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : bytes.length
}

function encodeLength(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : bytes.length + 1
}

function putBytes(bytes: Uint8Array, at: number, value: Uint8Array | undefined): number {
  if (value !== undefined) bytes.set(value, at)
  return at + countBytes(value)
}
