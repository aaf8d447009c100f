import { tolerateSystemErrors } from '../file-error.ts'
import type { BlockDevices, Handle } from '../host.ts'
import { nodeFs as fs, readText } from '../read-file.ts'
import { findBacking, readSourceBacking } from './backing.ts'
import { readNodeNumbers } from './block-node.ts'
import { findUsers, isClaimed, listDevices } from './file-system-users.ts'
import { attachLoop, findLoop, formatFdPath } from './loop-devices.ts'

const { O_NONBLOCK, O_RDONLY } = fs.constants

export const linuxBlocks: BlockDevices = {
  // Read-only: kernels that protect mounted devices refuse a mount of a device that is open for writing.
  open: (node) => fs.openSync(formatFdPath(node), O_RDONLY | O_NONBLOCK) as Handle,
  isReadOnly: (device) => readSysfsFile(device, 'ro') === '1',
  nameOf: findDeviceName,

  // btrfs has its own device number. The source of a FUSE mount is free text, and as a path it may lead to a hanging
  // file system.
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
 * Returns a path by which fsconfig(2) finds the device. The kernel's name for it is preferred, because the mount table
 * shows it. It is used only if it leads to this device, else the handle's path is. The open handle keeps its numbers
 * from being given to another disk.
 */
export function resolveMountSource(device: Handle): string {
  const name = findDeviceName(device)
  return isSameNode(name, device) ? name : formatFdPath(device)
}

function isSameNode(path: string, device: Handle): boolean {
  if (!path.startsWith('/dev/')) return false
  const stat = fs.statSync(path, { throwIfNoEntry: false })
  return stat?.isBlockDevice() === true && stat.rdev === fs.fstatSync(device).rdev
}

function readSysfsFile(device: Handle, file: string): string | undefined {
  return tolerateSystemErrors(() => readText(`/sys/dev/block/${readNodeNumbers(device)}/${file}`).trim())
}
