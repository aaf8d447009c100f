import { constants, fstatSync, openSync, readSync, statSync } from 'node:fs'
import type { BlockDevices } from '../blocks.ts'
import type { Handle } from '../host.ts'
import { readText } from '../read-text.ts'
import { attachLoop, loopOf } from './loop.ts'

export const linuxBlocks: BlockDevices = {
  // Read-only: kernels that protect mounted devices refuse a mount while another has it open for writing.
  open: (node) => openAgain(node, constants.O_RDONLY),

  isReadOnly(device) {
    return readSys(device, 'ro') === '1'
  },

  nameOf,

  // btrfs has a number of its own. A FUSE mount's source is what its user wrote, and may lead to another that hangs.
  isShownBy: (device, row) =>
    row.device === numbersOf(device) ||
    (row.device.startsWith('0:') && !row.fsType.startsWith('fuse') && isSameNode(row.source, device)),

  start(device, length) {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, readSync(device, bytes, 0, length, 0))
  },

  loopOf,
  attachLoop,
}

/** What a handle holds, whatever has become of its name. */
function openAgain(handle: Handle, flags: number): Handle {
  return openSync(`/proc/self/fd/${handle}`, flags | constants.O_NONBLOCK) as Handle
}

export function nameOf(device: Handle): string {
  const name = /^DEVNAME=(.+)$/m.exec(readSys(device, 'uevent') ?? '')?.[1]
  return name === undefined ? `/dev/block/${numbersOf(device)}` : `/dev/${name}`
}

/**
 * A path that leads fsconfig(2) to the device: its name, for the mount table's readers, where that is the kernel's own
 * and only root could change it, else the handle. The handle keeps its numbers from being given to another disk.
 */
export function sourceOf(device: Handle): string {
  const name = nameOf(device)
  return isSameNode(name, device) ? name : `/proc/self/fd/${device}`
}

function isSameNode(path: string, device: Handle): boolean {
  if (!path.startsWith('/dev/')) return false
  const there = statSync(path, { throwIfNoEntry: false })
  return there?.isBlockDevice() === true && there.rdev === fstatSync(device).rdev
}

function readSys(device: Handle, file: string): string | undefined {
  const directory = `/sys/dev/block/${numbersOf(device)}`
  try {
    return readText(`${directory}/${file}`).trim()
  } catch {
    return undefined
  }
}

/** As Linux encodes device numbers for user space. */
function numbersOf(device: Handle): string {
  const { rdev } = fstatSync(device)
  const major = (rdev >>> 8) & 0xfff
  const minor = (rdev & 0xff) | ((rdev >>> 12) & 0xfff00)
  return `${major}:${minor}`
}
