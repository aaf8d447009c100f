import type { InodeRecord } from '../inode/record.ts'

// Records as bytes, little-endian. Each is: u32 length of the first part, u32 of the last, i64 inode, i64 birth time,
// the two parts. The first part is what the inode was when it was first recorded and never changes; the last is what
// the latest change saw and makes of it. A byte string that may be missing has its length + 1, 0 where it is.
const HEADER = 24
const FIRST = 20
const LAST = 44
const SEEN_WHOLE = 1
const FORFEITED = 2

// SQLite's integers are signed; inode numbers use all 64 bits on some file systems.
export function signed(inode: bigint): bigint {
  return BigInt.asIntN(64, inode)
}

/** Inode and birth time of each in turn. */
export function keysOf(inodes: readonly { inode: bigint; born: bigint }[]): BigInt64Array {
  return BigInt64Array.from(inodes.flatMap(({ inode, born }) => [signed(inode), born]))
}

/** One record as it lies in a chunk of them. */
export interface Encoded {
  inode: bigint
  born: bigint
  first: Uint8Array
  last: Uint8Array
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
  view.setBigUint64(start + 8, record.inode, true)
  view.setBigInt64(start + 16, record.born, true)
  let at = start + HEADER
  view.setUint32(at, record.uid, true)
  view.setUint32(at + 4, before.gid, true)
  view.setUint16(at + 8, before.mode, true)
  view.setUint16(at + 10, path.length, true)
  view.setUint32(at + 12, mark(capability), true)
  view.setUint32(at + 16, mark(acl.before), true)
  at = put(bytes, at + FIRST, path)
  at = put(bytes, at, capability)
  const last = put(bytes, at, acl.before)
  view.setBigInt64(last, record.modified, true)
  view.setBigUint64(last + 8, record.size, true)
  view.setUint32(last + 16, seen.gid, true)
  view.setUint32(last + 20, meant.gid, true)
  view.setUint32(last + 24, after.gid, true)
  view.setUint16(last + 28, seen.mode, true)
  view.setUint16(last + 30, meant.mode, true)
  view.setUint16(last + 32, after.mode, true)
  view.setUint16(last + 34, (record.seenWhole ? SEEN_WHOLE : 0) | (record.forfeited ? FORFEITED : 0), true)
  view.setUint32(last + 36, mark(acl.seen), true)
  view.setUint32(last + 40, mark(acl.after), true)
  at = put(bytes, last + LAST, acl.seen)
  at = put(bytes, at, acl.after)
  view.setUint32(start, last - start - HEADER, true)
  view.setUint32(start + 4, at - last, true)
  return at
}

/** Puts records that were split together again. */
export function join(records: readonly Encoded[]): Uint8Array<ArrayBuffer> {
  const size = records.reduce((sum, { first, last }) => sum + HEADER + first.length + last.length, 0)
  const bytes = new Uint8Array(size)
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const { inode, born, first, last } of records) {
    view.setUint32(at, first.length, true)
    view.setUint32(at + 4, last.length, true)
    view.setBigInt64(at + 8, inode, true)
    view.setBigInt64(at + 16, born, true)
    at = put(bytes, put(bytes, at + HEADER, first), last)
  }
  return bytes
}

/** @throws {RangeError} where the bytes are no whole records */
export function* split(chunk: Uint8Array): Generator<Encoded> {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
  for (let at = 0; at < bytes.length; ) {
    const middle = at + HEADER + bytes.readUInt32LE(at)
    const end = middle + bytes.readUInt32LE(at + 4)
    if (end > bytes.length) throw new RangeError('a record is cut off')
    const [inode, born] = [bytes.readBigInt64LE(at + 8), bytes.readBigInt64LE(at + 16)]
    yield { inode, born, first: bytes.subarray(at + HEADER, middle), last: bytes.subarray(middle, end) }
    at = end
  }
}

/** @throws {RangeError} where the bytes are no record */
export function decode({ inode, born, first, last }: Encoded, settled: boolean): InodeRecord {
  const a = Buffer.from(first.buffer, first.byteOffset, first.length)
  const b = Buffer.from(last.buffer, last.byteOffset, last.length)
  const path = take(a, FIRST, a.readUInt16LE(10) + 1) ?? new Uint8Array()
  const capability = take(a, FIRST + path.length, a.readUInt32LE(12))
  const before = take(a, FIRST + path.length + length(capability), a.readUInt32LE(16))
  const seen = take(b, LAST, b.readUInt32LE(36))
  const after = take(b, LAST + length(seen), b.readUInt32LE(40))
  const flags = b.readUInt16LE(34)
  return {
    inode: BigInt.asUintN(64, inode),
    born,
    path,
    uid: a.readUInt32LE(0),
    before: { gid: a.readUInt32LE(4), mode: a.readUInt16LE(8) },
    capability,
    acl: { before, seen, after },
    modified: b.readBigInt64LE(0),
    size: b.readBigUInt64LE(8),
    seen: { gid: b.readUInt32LE(16), mode: b.readUInt16LE(28) },
    seenWhole: (flags & SEEN_WHOLE) !== 0,
    meant: { gid: b.readUInt32LE(20), mode: b.readUInt16LE(30) },
    forfeited: (flags & FORFEITED) !== 0,
    after: { gid: b.readUInt32LE(24), mode: b.readUInt16LE(32) },
    settled,
  }
}

function take(bytes: Buffer, at: number, marked: number): Uint8Array | undefined {
  if (marked === 0) return undefined
  const end = at + marked - 1
  if (end > bytes.length) throw new RangeError('a record is cut off')
  return Uint8Array.from(bytes.subarray(at, end))
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
