import type { InodeRecord } from '../inode/record.ts'

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

/** @param spare memory to use, if it is large enough */
export function encode(records: readonly InodeRecord[], spare?: ArrayBuffer): Uint8Array<ArrayBuffer> {
  const size = records.reduce((sum, record) => sum + sizeOf(record), 0)
  const memory = spare && spare.byteLength >= size ? spare : new ArrayBuffer(size)
  const bytes = new Uint8Array(memory, 0, size)
  const view = new DataView(memory)
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

/** Puts records that were split together again, one at a time: nothing of them is kept but the bytes. */
export class Joiner {
  #memory: ArrayBuffer
  #length = 0

  /** @param spare memory to use while it is large enough */
  constructor(spare: ArrayBuffer | undefined) {
    this.#memory = spare ?? new ArrayBuffer(1 << 16)
  }

  add({ inode, born, first, last }: Encoded): void {
    const start = this.#length
    this.#length += HEADER + first.length + last.length
    if (this.#length > this.#memory.byteLength) this.#grow(start)
    const view = new DataView(this.#memory)
    view.setUint32(start, first.length, true)
    view.setUint32(start + 4, last.length, true)
    view.setBigInt64(start + 8, inode, true)
    view.setBigInt64(start + 16, born, true)
    const bytes = new Uint8Array(this.#memory)
    put(bytes, put(bytes, start + HEADER, first), last)
  }

  #grow(used: number): void {
    const larger = new ArrayBuffer(Math.max(this.#length, this.#memory.byteLength * 2))
    new Uint8Array(larger).set(new Uint8Array(this.#memory, 0, used))
    this.#memory = larger
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory, 0, this.#length)
  }
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

function put(bytes: Uint8Array, at: number, value: Uint8Array | null): number {
  if (value !== null) bytes.set(value, at)
  return at + length(value)
}
