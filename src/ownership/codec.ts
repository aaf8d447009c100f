import type { InodeRecord } from './record.ts'

// Records as bytes, little-endian. Each is: u32 length of the first part, u32 of the last, i64 inode, i64 birth time, the two
// parts. The first part is what the inode was when it was first recorded and never changes; the last is what the latest
// change saw and makes of it. A byte string that may be missing has its length + 1, 0 where it is.
const HEADER = 24
const FIRST = 20
const LAST = 44
const SEEN_WHOLE = 1
const FORFEITED = 2

/** One record as it lies in a chunk of them. */
export interface Encoded {
  inode: bigint
  born: bigint
  first: Uint8Array
  last: Uint8Array
}

export function encode(records: readonly InodeRecord[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(records.reduce((sum, record) => sum + sizeOf(record), 0))
  let at = 0
  for (const record of records) at = write(bytes, at, record)
  return bytes
}

function sizeOf({ path, capability, acl }: InodeRecord): number {
  const { before, seen, after } = acl
  const first = path.length + length(capability) + length(before)
  return HEADER + FIRST + LAST + first + length(seen) + length(after)
}

function write(bytes: Buffer, start: number, record: InodeRecord): number {
  const { path, before, capability, acl, seen, meant, after } = record
  bytes.writeBigInt64LE(BigInt.asIntN(64, record.inode), start + 8)
  bytes.writeBigInt64LE(record.born, start + 16)
  let at = start + HEADER
  bytes.writeUInt32LE(record.uid, at)
  bytes.writeUInt32LE(before.gid, at + 4)
  bytes.writeUInt16LE(before.mode, at + 8)
  bytes.writeUInt16LE(path.length, at + 10)
  bytes.writeUInt32LE(mark(capability), at + 12)
  bytes.writeUInt32LE(mark(acl.before), at + 16)
  at = put(bytes, at + FIRST, path)
  at = put(bytes, at, capability)
  const last = put(bytes, at, acl.before)
  bytes.writeBigInt64LE(record.modified, last)
  bytes.writeBigInt64LE(BigInt.asIntN(64, record.size), last + 8)
  bytes.writeUInt32LE(seen.gid, last + 16)
  bytes.writeUInt32LE(meant.gid, last + 20)
  bytes.writeUInt32LE(after.gid, last + 24)
  bytes.writeUInt16LE(seen.mode, last + 28)
  bytes.writeUInt16LE(meant.mode, last + 30)
  bytes.writeUInt16LE(after.mode, last + 32)
  bytes.writeUInt16LE((record.seenWhole ? SEEN_WHOLE : 0) | (record.forfeited ? FORFEITED : 0), last + 34)
  bytes.writeUInt32LE(mark(acl.seen), last + 36)
  bytes.writeUInt32LE(mark(acl.after), last + 40)
  at = put(bytes, last + LAST, acl.seen)
  at = put(bytes, at, acl.after)
  bytes.writeUInt32LE(last - start - HEADER, start)
  bytes.writeUInt32LE(at - last, start + 4)
  return at
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
  const a = new Reader(first, FIRST)
  const b = new Reader(last, LAST)
  const path = a.take(a.u16(10) + 1) ?? new Uint8Array()
  const capability = a.take(a.u32(12))
  const before = a.take(a.u32(16))
  const flags = b.u16(34)
  return {
    inode: BigInt.asUintN(64, inode),
    born,
    path,
    uid: a.u32(0),
    before: { gid: a.u32(4), mode: a.u16(8) },
    capability,
    acl: { before, seen: b.take(b.u32(36)), after: b.take(b.u32(40)) },
    modified: b.bytes.readBigInt64LE(0),
    size: b.bytes.readBigUInt64LE(8),
    seen: { gid: b.u32(16), mode: b.u16(28) },
    seenWhole: (flags & SEEN_WHOLE) !== 0,
    meant: { gid: b.u32(20), mode: b.u16(30) },
    forfeited: (flags & FORFEITED) !== 0,
    after: { gid: b.u32(24), mode: b.u16(32) },
    settled,
  }
}

class Reader {
  readonly bytes: Buffer
  #at: number

  constructor(bytes: Uint8Array, start: number) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#at = start
  }

  u16(at: number): number {
    return this.bytes.readUInt16LE(at)
  }

  u32(at: number): number {
    return this.bytes.readUInt32LE(at)
  }

  take(marked: number): Uint8Array | null {
    if (marked === 0) return null
    const start = this.#at
    this.#at += marked - 1
    if (this.#at > this.bytes.length) throw new RangeError('a record is cut off')
    return Uint8Array.from(this.bytes.subarray(start, this.#at))
  }
}

function length(bytes: Uint8Array | null): number {
  return bytes === null ? 0 : bytes.length
}

function mark(bytes: Uint8Array | null): number {
  return bytes === null ? 0 : bytes.length + 1
}

function put(bytes: Buffer, at: number, value: Uint8Array | null): number {
  if (value !== null) bytes.set(value, at)
  return at + length(value)
}
