import { type InodeBaseline, type InodeRecord, NO_RECORDED_ACLS } from '../inode/record.ts'
import {
  BASELINE_BYTES,
  CAPABILITY_INTACT_FLAG,
  FIRST_PART_BYTES,
  findRecordEnd,
  findRecordStarts,
  HAS_BASELINE_FLAG,
  LAST_PART_BYTES,
  NO_ACL_NUMBER,
  ORIGINAL_ACL_OFFSET,
  PRIVILEGES_FORFEITED_FLAG,
  RECORD_FLAGS_OFFSET,
  RECORD_HEADER_BYTES,
  RECORD_KEY_OFFSET,
  SEEN_ACL_OFFSET,
  TARGET_ACL_OFFSET,
  TARGET_GID_OFFSET,
  TARGET_MODE_OFFSET,
  writeRecordFirstPart,
  writeRecordKey,
  writeRecordLastPart,
  writeRecordPartLengths,
} from './layout.ts'

/** Returns inode and birth time of each in turn. */
export function encodeInodeKeys(inodes: readonly { inode: bigint; born: bigint }[]): BigInt64Array {
  const keys = new BigInt64Array(inodes.length * 2)
  for (const [index, { inode, born }] of inodes.entries()) {
    keys[index * 2] = inode
    keys[index * 2 + 1] = born
  }
  return keys
}

/** The ACLs that records refer to. */
export interface AclStore {
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

export function encodeInodeRecords(records: readonly InodeRecord[], acls: AclStore): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(records.reduce((sum, record) => sum + measureEncodedRecord(record), 0))
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const record of records) at = writeInodeRecord(bytes, view, at, record, acls)
  return bytes
}

function measureEncodedRecord({ path, capability, baseline }: InodeRecord): number {
  return (
    RECORD_HEADER_BYTES +
    FIRST_PART_BYTES +
    LAST_PART_BYTES +
    path.length +
    countOptionalBytes(capability) +
    (baseline ? BASELINE_BYTES : 0)
  )
}

function writeInodeRecord(
  bytes: Uint8Array,
  view: DataView,
  start: number,
  record: InodeRecord,
  acls: AclStore,
): number {
  const { path, before, capability, capabilityIntact, forfeited, acl, seen, intended, after, baseline } = record
  const getAclNumber = (one: Uint8Array | undefined) => (one === undefined ? NO_ACL_NUMBER : acls.assignNumber(one))
  writeRecordKey(view, start, record)
  let at = start + RECORD_HEADER_BYTES
  writeRecordFirstPart(view, at, record.uid, before.gid, before.mode, path.length)
  view.setUint32(at + 12, encodeOptionalLength(capability), true)
  view.setUint32(at + ORIGINAL_ACL_OFFSET, getAclNumber(acl.before), true)
  at = writeOptionalBytes(bytes, at + FIRST_PART_BYTES, path)
  const last = writeOptionalBytes(bytes, at, capability)
  const flags =
    (capabilityIntact ? CAPABILITY_INTACT_FLAG : 0) |
    (forfeited ? PRIVILEGES_FORFEITED_FLAG : 0) |
    (baseline ? HAS_BASELINE_FLAG : 0)
  writeRecordLastPart(view, last, record.modified, record.size, flags)
  view.setUint32(last + 16, seen.gid, true)
  view.setUint32(last + 20, intended.gid, true)
  view.setUint32(last + TARGET_GID_OFFSET, after.gid, true)
  view.setUint16(last + 28, seen.mode, true)
  view.setUint16(last + 30, intended.mode, true)
  view.setUint16(last + TARGET_MODE_OFFSET, after.mode, true)
  view.setUint32(last + SEEN_ACL_OFFSET, getAclNumber(acl.seen), true)
  view.setUint32(last + TARGET_ACL_OFFSET, getAclNumber(acl.after), true)
  if (baseline)
    writeRecordBaseline(view, last + LAST_PART_BYTES, baseline.gid, baseline.mode, getAclNumber(baseline.acl))
  const size = LAST_PART_BYTES + (baseline ? BASELINE_BYTES : 0)
  writeRecordPartLengths(view, start, last - start - RECORD_HEADER_BYTES, size)
  return last + size
}

function writeRecordBaseline(view: DataView, at: number, gid: number, mode: number, acl: number): void {
  view.setUint32(at, gid, true)
  view.setUint16(at + 4, mode, true)
  view.setUint16(at + 6, 0, true)
  view.setUint32(at + 8, acl, true)
}

type RecordAclNumbers = [before: number, seen: number, after: number, baseline: number]

/** Returns a copy of the record whose baseline is the target state of its last change. */
export function addRecordBaseline(record: EncodedRecord): EncodedRecord {
  const [first] = readRecordPartLengths(record)
  const last = RECORD_HEADER_BYTES + first
  const bytes = new Uint8Array(last + LAST_PART_BYTES + BASELINE_BYTES)
  bytes.set(sliceRecordBytes(record).subarray(0, last + LAST_PART_BYTES))
  const chunk = createDataView(bytes)
  chunk.setUint16(
    last + RECORD_FLAGS_OFFSET,
    chunk.getUint16(last + RECORD_FLAGS_OFFSET, true) | HAS_BASELINE_FLAG,
    true,
  )
  const readNumber = (at: number) => chunk.getUint32(last + at, true)
  const mode = chunk.getUint16(last + TARGET_MODE_OFFSET, true)
  writeRecordBaseline(chunk, last + LAST_PART_BYTES, readNumber(TARGET_GID_OFFSET), mode, readNumber(TARGET_ACL_OFFSET))
  chunk.setUint32(4, LAST_PART_BYTES + BASELINE_BYTES, true)
  return { chunk, at: 0 }
}

/**
 * Returns the numbers of the record's ACLs, or NO_ACL_NUMBER.
 * @throws {RangeError} if it is not a record
 */
export function readRecordAclNumbers({ chunk, at }: EncodedRecord): RecordAclNumbers {
  const [size, rest] = readRecordPartLengths({ chunk, at })
  const last = at + RECORD_HEADER_BYTES + size
  if (size < FIRST_PART_BYTES || rest < LAST_PART_BYTES) throw new RangeError('a record is cut off')
  const readNumber = (offset: number) => chunk.getUint32(offset, true)
  const hasBaseline = (chunk.getUint16(last + RECORD_FLAGS_OFFSET, true) & HAS_BASELINE_FLAG) !== 0
  if (hasBaseline && rest < LAST_PART_BYTES + BASELINE_BYTES) throw new RangeError('a record is cut off')
  const baseline = hasBaseline ? readNumber(last + LAST_PART_BYTES + 8) : NO_ACL_NUMBER
  const before = readNumber(at + RECORD_HEADER_BYTES + ORIGINAL_ACL_OFFSET)
  return [before, readNumber(last + SEEN_ACL_OFFSET), readNumber(last + TARGET_ACL_OFFSET), baseline]
}

export function joinEncodedRecords(records: readonly EncodedRecord[]): Uint8Array<ArrayBuffer> {
  return concatBytes(records.map((record) => sliceRecordBytes(record)))
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) at = writeOptionalBytes(bytes, at, part)
  return bytes
}

/** Returns a record with the first part of one record and the last part of another. */
export function composeRecordFromParts(first: EncodedRecord, last: EncodedRecord): EncodedRecord {
  const before = sliceRecordBytes(first).subarray(0, RECORD_HEADER_BYTES + readRecordPartLengths(first)[0])
  const now = sliceRecordBytes(last).subarray(RECORD_HEADER_BYTES + readRecordPartLengths(last)[0])
  const bytes = new Uint8Array(before.length + now.length)
  writeOptionalBytes(bytes, writeOptionalBytes(bytes, 0, before), now)
  const chunk = createDataView(bytes)
  chunk.setUint32(4, now.length, true)
  return { chunk, at: 0 }
}

function sliceRecordBytes({ chunk, at }: EncodedRecord): Uint8Array {
  return new Uint8Array(chunk.buffer, chunk.byteOffset + at, findRecordEnd(chunk, at) - at)
}

/** Lengths of the first part and of the last. */
function readRecordPartLengths({ chunk, at }: EncodedRecord): [number, number] {
  return [chunk.getUint32(at, true), chunk.getUint32(at + 4, true)]
}

/** @throws {RangeError} if the chunk ends within a record */
export function splitRecords(chunk: Uint8Array): EncodedRecord[] {
  const view = createDataView(chunk)
  return Array.from(findRecordStarts(view), (at) => ({ chunk: view, at }))
}

export function createDataView(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** @throws {RangeError} if the bytes are no record, or one of its ACLs is missing */
export function decodeRecord({ chunk, at }: EncodedRecord, settled: boolean, acls: Pick<AclStore, 'get'>): InodeRecord {
  const [before, seen, after, baseline] = readRecordAclNumbers({ chunk, at }).map((number) =>
    number === NO_ACL_NUMBER ? undefined : acls.get(number),
  )
  const first = at + RECORD_HEADER_BYTES
  const last = first + readRecordPartLengths({ chunk, at })[0]
  const path =
    readOptionalBytes(chunk, first + FIRST_PART_BYTES, chunk.getUint16(first + 10, true) + 1) ?? new Uint8Array()
  const capability = readOptionalBytes(chunk, first + FIRST_PART_BYTES + path.length, chunk.getUint32(first + 12, true))
  const flags = chunk.getUint16(last + RECORD_FLAGS_OFFSET, true)
  return {
    inode: chunk.getBigUint64(at + RECORD_KEY_OFFSET, true),
    born: chunk.getBigInt64(at + RECORD_KEY_OFFSET + 8, true),
    path,
    uid: chunk.getUint32(first, true),
    before: { gid: chunk.getUint32(first + 4, true), mode: chunk.getUint16(first + 8, true) },
    capability,
    acl: before || seen || after ? { before, seen, after } : NO_RECORDED_ACLS,
    modified: chunk.getBigInt64(last, true),
    size: chunk.getBigUint64(last + 8, true),
    seen: { gid: chunk.getUint32(last + 16, true), mode: chunk.getUint16(last + 28, true) },
    capabilityIntact: (flags & CAPABILITY_INTACT_FLAG) !== 0,
    intended: { gid: chunk.getUint32(last + 20, true), mode: chunk.getUint16(last + 30, true) },
    forfeited: (flags & PRIVILEGES_FORFEITED_FLAG) !== 0,
    after: {
      gid: chunk.getUint32(last + TARGET_GID_OFFSET, true),
      mode: chunk.getUint16(last + TARGET_MODE_OFFSET, true),
    },
    ...((flags & HAS_BASELINE_FLAG) !== 0 && { baseline: readRecordBaseline(chunk, last + LAST_PART_BYTES, baseline) }),
    settled,
  }
}

function readRecordBaseline(chunk: DataView, at: number, acl: Uint8Array | undefined): InodeBaseline {
  return { gid: chunk.getUint32(at, true), mode: chunk.getUint16(at + 4, true), acl }
}

function readOptionalBytes(chunk: DataView, at: number, encodedLength: number): Uint8Array | undefined {
  if (encodedLength === 0) return undefined
  if (at + encodedLength - 1 > chunk.byteLength) throw new RangeError('a record is cut off')
  return new Uint8Array(chunk.buffer, chunk.byteOffset + at, encodedLength - 1)
}

function countOptionalBytes(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : bytes.length
}

function encodeOptionalLength(bytes: Uint8Array | undefined): number {
  return bytes === undefined ? 0 : bytes.length + 1
}

function writeOptionalBytes(bytes: Uint8Array, at: number, value: Uint8Array | undefined): number {
  if (value !== undefined) bytes.set(value, at)
  return at + countOptionalBytes(value)
}
