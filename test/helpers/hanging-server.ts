import * as fs from 'node:fs'
import { encodeWords, FUSE_HEADER_BYTES, FuseChannel } from './fuse-channel.ts'

// A FUSE file system with some files, whose server takes some kinds of requests and does not answer them while a file is
// there: who waits for it cannot be killed. Arguments: the directory to mount on, that file, the opcodes
// (include/uapi/linux/fuse.h) or "all", and how many files it has. The file may say how many of these requests are answered
// all the same, or "slow": then all are, each after a while, or "error N": then all are, each by that errno.

const [LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS] = [1, 2, 3, 4, 14, 15, 16, 17]
const [OPENDIR, READDIR] = [27, 28]
const [INIT, INTERRUPT, BATCH_FORGET, RELEASE, FLUSH, RELEASEDIR] = [26, 36, 42, 18, 25, 29]
const ENOENT = 2
const ENOSYS = 38
const [ROOT, FILE] = [1n, 2n]
const SIZE = 8192n
const [FATTR_MODE, FATTR_GID] = [1, 4]
const SLOW_MS = 30
/** Without the kernel's pages: so is the file opened by all but the first. */
const [FOPEN_DIRECT_IO, FOPEN_KEEP_CACHE] = [1, 2]
let opens = 0

const [directory = '', flag = '', opcodes = '', count = '1'] = process.argv.slice(2)
const hanging = new Set(opcodes.split(',').map(Number))
/** By inode number: what is not there is as it was at first. */
const changed = new Map<bigint, { mode: number; gid: number; at: number }>()
const names = ['file', ...Array.from({ length: Number(count) - 1 }, (_, index) => `file${index}`)]
/** Requests that wait for an answer. */
const waiting: [unique: bigint, Buffer | number][] = []
let answered = 0

/** The file may be removed at any time: a test of existence before the read would not help. */
function readOrder(): string | undefined {
  try {
    return fs.readFileSync(flag, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The errno by which a request is to be answered. */
function findOrderedError(opcode: number): number | undefined {
  const [, errno] = /^error (\d+)$/.exec(readOrder() ?? '') ?? []
  return errno !== undefined && (opcodes === 'all' || hanging.has(opcode)) ? Number(errno) : undefined
}

/** Whether a request is not to be answered now. */
function hangs(opcode: number): boolean {
  const order = readOrder()
  if (order === undefined) {
    answered = 0
    for (const [unique, reply] of waiting.splice(0)) channel.answer(unique, reply)
  }
  if (order === undefined || (opcodes !== 'all' && !hanging.has(opcode))) return false
  if (order.startsWith('error ')) return false
  if (order === 'slow') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW_MS)
  return order !== 'slow' && ++answered > Number(order)
}

const channel = new FuseChannel('hanging', directory, 1 << 18)
const { request } = channel

while (channel.receive()) {
  const opcode = request.readUInt32LE(4)
  if (opcode === INIT) process.stdout.write('serving\n')
  // Until that is answered the kernel blocks all requests, and the server could not be resumed.
  const isHanging = opcode !== INIT && hangs(opcode)
  if ([FORGET, BATCH_FORGET, INTERRUPT].includes(opcode)) continue
  const unique = request.readBigUInt64LE(8)
  const reply = findOrderedError(opcode) ?? replyTo(opcode, request.readBigUInt64LE(16))
  if (isHanging) waiting.push([unique, reply])
  else channel.answer(unique, reply)
}

function replyTo(opcode: number, node: bigint): Buffer | number {
  switch (opcode) {
    case INIT:
      return encodeWords(64, [7, 31, 1 << 17, 0, 0, 1 << 17])
    case GETATTR:
      return Buffer.concat([Buffer.alloc(16), attributes(node)])
    case LOOKUP: {
      const found = names.indexOf(request.toString('latin1', FUSE_HEADER_BYTES, request.indexOf(0, FUSE_HEADER_BYTES)))
      if (found < 0) return ENOENT
      const entry = Buffer.alloc(40)
      entry.writeBigUInt64LE(FILE + BigInt(found), 0)
      return Buffer.concat([entry, attributes(FILE + BigInt(found))])
    }
    case SETATTR: {
      const [valid, mode, gid] = [0, 68, 80].map((at) => request.readUInt32LE(FUSE_HEADER_BYTES + at)) as [
        number,
        number,
        number,
      ]
      const { mode: before, gid: group } = stateOf(node)
      changed.set(node, {
        mode: valid & FATTR_MODE ? mode : before,
        gid: valid & FATTR_GID ? gid : group,
        at: Date.now(),
      })
      return Buffer.concat([Buffer.alloc(16), attributes(node)])
    }
    case OPEN:
      return encodeWords(16, [0, 0, opens++ === 0 ? 0 : FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE])
    case OPENDIR:
      return Buffer.alloc(16)
    case READ:
      return Buffer.alloc(request.readUInt32LE(FUSE_HEADER_BYTES + 16))
    case WRITE:
      return encodeWords(8, [request.readUInt32LE(FUSE_HEADER_BYTES + 16)])
    case STATFS:
      return Buffer.alloc(80)
    case READDIR:
      return entriesFrom(Number(request.readBigUInt64LE(FUSE_HEADER_BYTES + 8)))
    case RELEASE:
    case RELEASEDIR:
    case FLUSH:
      return Buffer.alloc(0)
    default:
      return ENOSYS
  }
}

function stateOf(node: bigint) {
  return changed.get(node) ?? { mode: node === ROOT ? 0o40755 : 0o100644, gid: 0, at: 0 }
}

function attributes(node: bigint): Buffer {
  const all = Buffer.alloc(88)
  const { mode, gid, at } = stateOf(node)
  all.writeBigUInt64LE(node, 0)
  if (node !== ROOT) all.writeBigUInt64LE(SIZE, 8)
  all.writeBigUInt64LE(BigInt(Math.floor(at / 1000)), 40)
  all.writeUInt32LE((at % 1000) * 1e6, 56)
  all.writeUInt32LE(mode, 60)
  all.writeUInt32LE(1, 64)
  all.writeUInt32LE(gid, 72)
  return all
}

/** A few at a time. */
function entriesFrom(first: number): Buffer {
  const entries = names.slice(first, first + 20).map((name, index) => {
    const entry = Buffer.alloc(24 + Math.ceil(name.length / 8) * 8)
    entry.writeBigUInt64LE(FILE + BigInt(first + index), 0)
    entry.writeBigUInt64LE(BigInt(first + index + 1), 8)
    entry.writeUInt32LE(name.length, 16)
    // DT_REG
    entry.writeUInt32LE(8, 20)
    entry.write(name, 24, 'latin1')
    return entry
  })
  return Buffer.concat(entries)
}
