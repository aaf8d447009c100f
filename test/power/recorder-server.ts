import * as fs from 'node:fs'
import { encodeWords, FUSE_HEADER_BYTES, FuseChannel } from '../helpers/fuse-channel.ts'
import { createRandom } from '../helpers/numbers.ts'
import { type DiskEvent, listDurableWrites, OverlaidDisk, type PowerCut } from './disk-log.ts'
import type { RecorderCommand, RecorderReply } from './recorder.ts'

// A FUSE file system with one file for each disk image, on which loop devices are attached. It keeps one log of the
// writes and flushes of all disks, so the log has their order across disks. dm-log-writes has one log for each device,
// which says nothing about the order of a journal's flush on one disk and an inode's write on another.
//
// The files are opened with FOPEN_DIRECT_IO, so each write of a block device arrives as FUSE_WRITE, and each flush as
// FUSE_FSYNC. A loop device has no FUA: the kernel sends a flush after the write instead. An image file is only read.
//
// A client writes commands to the file `control` and reads the replies from it.
//
// Arguments: the directory to mount on, then NAME=IMAGE for each disk.

// include/uapi/linux/fuse.h
const [LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE] = [1, 2, 3, 4, 14, 15, 16, 17, 18]
const [FSYNC, FLUSH, INIT, INTERRUPT, BATCH_FORGET] = [20, 25, 26, 36, 42]
const FOPEN_DIRECT_IO = 1
const [ENOENT, ENOSYS] = [2, 38]
const MAX_WRITE_BYTES = 1 << 17
const [ROOT, CONTROL, FIRST_DISK] = [1n, 2n, 3n]

const [directory = '', ...images] = process.argv.slice(2)

/** A served image. */
class ServedDisk {
  readonly name: string
  readonly sizeBytes: number
  readonly #image: number
  content: OverlaidDisk

  constructor(argument: string) {
    const [name = '', image = ''] = argument.split('=')
    this.name = name
    this.#image = fs.openSync(image, 'r')
    this.sizeBytes = fs.fstatSync(this.#image).size
    this.content = this.openImage()
  }

  /** Returns the image's own content. */
  openImage(): OverlaidDisk {
    return new OverlaidDisk((offset, length) => {
      const bytes = Buffer.alloc(length)
      fs.readSync(this.#image, bytes, 0, length, offset)
      return bytes
    })
  }
}

const disks = images.map((argument) => new ServedDisk(argument))
const names = ['control', ...disks.map(({ name }) => name)]
/** All writes since the start and the flushes among them. The writes before `recordedFrom` are part of every moment. */
const events: DiskEvent[] = []
let recordedFrom = 0
let isRecording = true
let controlReply = Buffer.alloc(0)

function runCommand(command: RecorderCommand): RecorderReply {
  switch (command.do) {
    case 'begin':
      recordedFrom = events.length
      break
    case 'end':
      isRecording = false
      break
    case 'show':
      showMoment(command.cut)
  }
  const recorded = events.slice(recordedFrom)
  return { events: recorded.length, flushes: recorded.flatMap((event, at) => ('isFlush' in event ? [at] : [])) }
}

function showMoment({ index, kept, seed }: PowerCut): void {
  const random = createRandom(seed)
  const [before, recorded] = [events.slice(0, recordedFrom), events.slice(recordedFrom)]
  for (const disk of disks) {
    disk.content = disk.openImage()
    const earlier = listDurableWrites(before, disk.name, { index: before.length, kept: { [disk.name]: 'all' } }, random)
    const writes = listDurableWrites(recorded, disk.name, { index, kept }, random)
    for (const { offset, data } of [...earlier, ...writes]) disk.content.write(offset, data)
  }
}

const channel = new FuseChannel('recorder', directory, MAX_WRITE_BYTES + 4096)
const { request } = channel

while (channel.receive()) {
  const opcode = request.readUInt32LE(4)
  if ([FORGET, BATCH_FORGET, INTERRUPT].includes(opcode)) continue
  channel.answer(request.readBigUInt64LE(8), createReply(opcode, request.readBigUInt64LE(16)))
  if (opcode === INIT) process.stdout.write('serving\n')
}

function createReply(opcode: number, node: bigint): Buffer | number {
  switch (opcode) {
    case INIT:
      return encodeWords(64, [7, 31, MAX_WRITE_BYTES, 0, 0, MAX_WRITE_BYTES])
    case GETATTR:
    case SETATTR:
      return Buffer.concat([Buffer.alloc(16), encodeAttributes(node)])
    case LOOKUP: {
      const found = names.indexOf(request.toString('latin1', FUSE_HEADER_BYTES, request.indexOf(0, FUSE_HEADER_BYTES)))
      if (found < 0) return ENOENT
      const entry = Buffer.alloc(40)
      entry.writeBigUInt64LE(CONTROL + BigInt(found), 0)
      return Buffer.concat([entry, encodeAttributes(CONTROL + BigInt(found))])
    }
    case OPEN:
      return encodeWords(16, [0, 0, FOPEN_DIRECT_IO])
    case READ:
      return readNode(
        node,
        Number(request.readBigUInt64LE(FUSE_HEADER_BYTES + 8)),
        request.readUInt32LE(FUSE_HEADER_BYTES + 16),
      )
    case WRITE: {
      const length = request.readUInt32LE(FUSE_HEADER_BYTES + 16)
      const data = Buffer.from(request.subarray(FUSE_HEADER_BYTES + 40, FUSE_HEADER_BYTES + 40 + length))
      writeNode(node, Number(request.readBigUInt64LE(FUSE_HEADER_BYTES + 8)), data)
      return encodeWords(8, [length])
    }
    case FSYNC: {
      const { name } = findDisk(node) ?? {}
      if (name !== undefined && isRecording) events.push({ disk: name, isFlush: true })
      return Buffer.alloc(0)
    }
    case STATFS:
      return Buffer.alloc(80)
    case RELEASE:
    case FLUSH:
      return Buffer.alloc(0)
    default:
      // Also of FALLOCATE: a discard is not in the log.
      return ENOSYS
  }
}

function findDisk(node: bigint): ServedDisk | undefined {
  return disks[Number(node - FIRST_DISK)]
}

function readNode(node: bigint, offset: number, length: number): Buffer {
  const disk = findDisk(node)
  if (disk === undefined) return controlReply.subarray(offset, offset + length)
  return disk.content.read(offset, Math.max(0, Math.min(length, disk.sizeBytes - offset)))
}

function writeNode(node: bigint, offset: number, data: Buffer): void {
  const disk = findDisk(node)
  if (disk === undefined) {
    controlReply = Buffer.from(JSON.stringify(runCommand(JSON.parse(data.toString()))))
    return
  }
  disk.content.write(offset, data)
  if (isRecording) events.push({ disk: disk.name, offset, data })
}

function encodeAttributes(node: bigint): Buffer {
  const attributes = Buffer.alloc(88)
  attributes.writeBigUInt64LE(node, 0)
  attributes.writeBigUInt64LE(BigInt(findDisk(node)?.sizeBytes ?? 0), 8)
  attributes.writeUInt32LE(node === ROOT ? 0o40755 : 0o100600, 60)
  attributes.writeUInt32LE(1, 64)
  return attributes
}
