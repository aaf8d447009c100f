import { tolerateSystemErrors } from '../file-error.ts'
import { type Handle, SystemError } from '../host.ts'
import { nodeFs as fs, readText } from '../read-file.ts'
import { formatFdPath } from './loop-devices.ts'
import { deferCloseFd, openLinkFree } from './open.ts'

const { O_NONBLOCK, O_RDONLY } = fs.constants

/** Formats the device numbers as `major:minor`, in the encoding of Linux' user space. */
export function readNodeNumbers(device: Handle): string {
  return formatNodeNumbers(fs.fstatSync(device))
}

export function formatNodeNumbers({ rdev }: { rdev: number }): string {
  const major = (rdev >>> 8) & 0xfff
  const minor = (rdev & 0xff) | ((rdev >>> 12) & 0xfff00)
  return `${major}:${minor}`
}

/** Returns the path of the kernel's own name of a block device, which sysfs reports. @param numbers `major:minor` */
export function findNodePath(numbers: string): string {
  const uevent = tolerateSystemErrors(() => readText(`/sys/dev/block/${numbers}/uevent`)) ?? ''
  return `/dev/${/^DEVNAME=(.+)$/m.exec(uevent)?.[1] ?? `block/${numbers}`}`
}

/**
 * Opens a block device for reading. The device node is opened as O_PATH first, so another file of that name is never
 * opened: opening a FIFO or another device has side effects.
 * @param numbers `major:minor`
 * @throws {SystemError} ENODEV if the name in /dev is another file
 */
export function openBlockDevice(numbers: string): Handle {
  const path = findNodePath(numbers)
  const node = openLinkFree(path)
  using _ = deferCloseFd(node)
  const stat = fs.fstatSync(node)
  if (!stat.isBlockDevice() || formatNodeNumbers(stat) !== numbers) throw new SystemError('open', 'ENODEV', path)
  return fs.openSync(formatFdPath(node), O_RDONLY | O_NONBLOCK) as Handle
}
