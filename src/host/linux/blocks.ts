import { unlessRefused } from '../file-error.ts'
import type { BlockDevices, Handle } from '../host.ts'
import { nodeFs as fs, readText } from '../read-file.ts'
import { asBacking, backingOf } from './backing.ts'
import { numbersOf } from './block-node.ts'
import { devicesOf, isClaimed } from './device-claims.ts'
import { findUsers } from './file-system-users.ts'
import { attachLoop, linkOf, loopOf } from './loops.ts'

const { O_NONBLOCK, O_RDONLY } = fs.constants

export const linuxBlocks: BlockDevices = {
  // Read-only: kernels that protect mounted devices refuse a mount while another has it open for writing.
  open: (node) => fs.openSync(linkOf(node), O_RDONLY | O_NONBLOCK) as Handle,
  isReadOnly: (device) => readSys(device, 'ro') === '1',
  nameOf,

  // btrfs has a number of its own. A FUSE mount's source is what its user wrote, and may lead to another that hangs.
  isShownBy: (device, row) =>
    row.device === numbersOf(device) ||
    (row.device.startsWith('0:') && !row.fsType.startsWith('fuse') && isSameNode(row.source, device)),

  start(device, length) {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, fs.readSync(device, bytes, 0, length, 0))
  },

  loopOf,
  attachLoop,
  devicesOf,
  isClaimed,
  findUsers,
  backingOf,
  asBacking,
}

function nameOf(device: Handle): string {
  const name = /^DEVNAME=(.+)$/m.exec(readSys(device, 'uevent') ?? '')?.[1]
  return name === undefined ? `/dev/block/${numbersOf(device)}` : `/dev/${name}`
}

/**
 * A path that leads fsconfig(2) to the device: its name, for the mount table's readers, where that is the kernel's own
 * and only root could change it, else the handle. The handle keeps its numbers from being given to another disk.
 */
export function sourceOf(device: Handle): string {
  const name = nameOf(device)
  return isSameNode(name, device) ? name : linkOf(device)
}

function isSameNode(path: string, device: Handle): boolean {
  if (!path.startsWith('/dev/')) return false
  const there = fs.statSync(path, { throwIfNoEntry: false })
  return there?.isBlockDevice() === true && there.rdev === fs.fstatSync(device).rdev
}

function readSys(device: Handle, file: string): string | undefined {
  return unlessRefused(() => readText(`/sys/dev/block/${numbersOf(device)}/${file}`).trim())
}
