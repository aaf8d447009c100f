import { tolerateSystemErrors } from '../file-error.ts'
import type { BlockDevices, Handle } from '../host.ts'
import { nodeFs as fs, readText } from '../read-file.ts'
import { findBacking, readSourceBacking } from './backing.ts'
import { readNodeNumbers } from './block-node.ts'
import { isClaimed, listDevices } from './device-claims.ts'
import { findUsers } from './file-system-users.ts'
import { attachLoop, findLoop, formatFdPath } from './loop-devices.ts'

const { O_NONBLOCK, O_RDONLY } = fs.constants

export const linuxBlocks: BlockDevices = {
  // Read-only: kernels that protect mounted devices refuse a mount while another has it open for writing.
  open: (node) => fs.openSync(formatFdPath(node), O_RDONLY | O_NONBLOCK) as Handle,
  isReadOnly: (device) => readSysfsFile(device, 'ro') === '1',
  nameOf: findDeviceName,

  // btrfs has a number of its own. A FUSE mount's source is what its user wrote, and may lead to another that hangs.
  isShownBy: (device, row) =>
    row.device === readNodeNumbers(device) ||
    (row.device.startsWith('0:') && !row.fsType.startsWith('fuse') && isSameNode(row.source, device)),

  start(device, length) {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, fs.readSync(device, bytes, 0, length, 0))
  },

  loopOf: findLoop,
  attachLoop,
  devicesOf: listDevices,
  isClaimed,
  findUsers,
  backingOf: findBacking,
  asBacking: readSourceBacking,
}

function findDeviceName(device: Handle): string {
  const name = /^DEVNAME=(.+)$/m.exec(readSysfsFile(device, 'uevent') ?? '')?.[1]
  return name === undefined ? `/dev/block/${readNodeNumbers(device)}` : `/dev/${name}`
}

/**
 * A path that leads fsconfig(2) to the device: its name, for the mount table's readers, where that is the kernel's own
 * and only root could change it, else the handle. The handle keeps its numbers from being given to another disk.
 */
export function resolveMountSource(device: Handle): string {
  const name = findDeviceName(device)
  return isSameNode(name, device) ? name : formatFdPath(device)
}

function isSameNode(path: string, device: Handle): boolean {
  if (!path.startsWith('/dev/')) return false
  const there = fs.statSync(path, { throwIfNoEntry: false })
  return there?.isBlockDevice() === true && there.rdev === fs.fstatSync(device).rdev
}

function readSysfsFile(device: Handle, file: string): string | undefined {
  return tolerateSystemErrors(() => readText(`/sys/dev/block/${readNodeNumbers(device)}/${file}`).trim())
}
