import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'

// A FUSE file system with one file, whose server takes some kinds of requests and never answers them: who waits for it
// cannot be killed. Arguments: the directory to mount on, a file while which is there it hangs, and the opcodes
// (include/uapi/linux/fuse.h) or "all".

const [LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, STATFS, OPENDIR, READDIR] = [1, 2, 3, 14, 15, 16, 17, 27, 28]
const [INIT, INTERRUPT, BATCH_FORGET, RELEASE, FLUSH, RELEASEDIR] = [26, 36, 42, 18, 25, 29]
const ENOENT = 2
const ENOSYS = 38
const HEADER = 40
const [ROOT, FILE] = [1n, 2n]
const SIZE = 8192n
/** Without the kernel's pages: so is the file opened by all but the first. */
const [FOPEN_DIRECT_IO, FOPEN_KEEP_CACHE] = [1, 2]
let opens = 0

const [directory = '', flag = '', opcodes = ''] = process.argv.slice(2)
const hanging = new Set(opcodes.split(',').map(Number))
const hangs = (opcode: number) => (opcodes === 'all' || hanging.has(opcode)) && fs.existsSync(flag)
const device = fs.openSync('/dev/fuse', 'r+')
// mount(2) looks for the descriptor in the process that calls it.
const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other'
const { status, stderr } = spawnSync('mount', ['-i', '-t', 'fuse', '-o', options, 'hanging', directory], {
  stdio: ['ignore', 'ignore', 'pipe', device],
})
if (status !== 0) throw new Error(String(stderr))
const request = Buffer.alloc(1 << 18)

for (;;) {
  try {
    fs.readSync(device, request)
  } catch (error) {
    // Unmounted.
    if ((error as NodeJS.ErrnoException).code === 'ENODEV') break
    if ((error as NodeJS.ErrnoException).code === 'EINTR') continue
    throw error
  }
  const opcode = request.readUInt32LE(4)
  if (opcode === INIT) process.stdout.write('serving\n')
  if (hangs(opcode) || [FORGET, BATCH_FORGET, INTERRUPT].includes(opcode)) continue
  answer(request.readBigUInt64LE(8), replyTo(opcode, request.readBigUInt64LE(16)))
}

function replyTo(opcode: number, node: bigint): Buffer | number {
  switch (opcode) {
    case INIT:
      return words(64, [7, 31, 1 << 17, 0, 0, 1 << 17])
    case GETATTR:
      return Buffer.concat([Buffer.alloc(16), attributes(node)])
    case LOOKUP: {
      if (request.toString('latin1', HEADER, HEADER + 5) !== 'file\0') return ENOENT
      const entry = Buffer.alloc(40)
      entry.writeBigUInt64LE(FILE, 0)
      return Buffer.concat([entry, attributes(FILE)])
    }
    case OPEN:
      return words(16, [0, 0, opens++ === 0 ? 0 : FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE])
    case OPENDIR:
      return Buffer.alloc(16)
    case READ:
      return Buffer.alloc(request.readUInt32LE(HEADER + 16))
    case WRITE:
      return words(8, [request.readUInt32LE(HEADER + 16)])
    case STATFS:
      return Buffer.alloc(80)
    case READDIR:
    case RELEASE:
    case RELEASEDIR:
    case FLUSH:
      return Buffer.alloc(0)
    default:
      return ENOSYS
  }
}

function attributes(node: bigint): Buffer {
  const all = Buffer.alloc(88)
  all.writeBigUInt64LE(node, 0)
  if (node !== ROOT) all.writeBigUInt64LE(SIZE, 8)
  all.writeUInt32LE(node === ROOT ? 0o40755 : 0o100644, 60)
  all.writeUInt32LE(1, 64)
  return all
}

function words(length: number, values: readonly number[]): Buffer {
  const all = Buffer.alloc(length)
  for (const [index, value] of values.entries()) all.writeUInt32LE(value, index * 4)
  return all
}

function answer(unique: bigint, reply: Buffer | number): void {
  const body = typeof reply === 'number' ? Buffer.alloc(0) : reply
  const header = Buffer.alloc(16)
  header.writeUInt32LE(16 + body.length, 0)
  header.writeInt32LE(typeof reply === 'number' ? -reply : 0, 4)
  header.writeBigUInt64LE(unique, 8)
  try {
    fs.writeSync(device, Buffer.concat([header, body]))
  } catch (error) {
    // Nobody waits for it any more.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
