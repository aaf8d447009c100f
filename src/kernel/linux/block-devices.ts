import type { BigIntStats } from 'node:fs'
import type { Handle, LoopDevice } from '../host.ts'
import { nodeFs as fs, readText } from '../read-file.ts'
import { SystemError, tolerateErrno, tolerateSystemErrors } from '../system-error.ts'
import { DATA, data, requireSuccess, systemCall } from './kernel.ts'
import { close, deferCloseFd, openLinkFree } from './open.ts'

const { O_NONBLOCK, O_RDONLY, O_RDWR } = fs.constants

/** Returns a path that leads to a descriptor's file, even if its name has changed. */
export const formatFdPath = (fd: number) => `/proc/self/fd/${fd}`

/** Formats the device numbers as `major:minor`, in the encoding of Linux' user space. */
export function formatNodeNumbers({ rdev }: { rdev: number }): string {
  const major = (rdev >>> 8) & 0xfff
  const minor = (rdev & 0xff) | ((rdev >>> 12) & 0xfff00)
  return `${major}:${minor}`
}

export const readNodeNumbers = (device: Handle) => formatNodeNumbers(fs.fstatSync(device))

/** Returns the text of a file of sysfs or proc; undefined if there is none. */
export function readKernelText(path: string): string | undefined {
  return tolerateSystemErrors(() => readText(path).trim())
}

/** Returns the path of the kernel's own name of a block device, which sysfs reports. @param numbers `major:minor` */
export function findNodePath(numbers: string): string {
  const uevent = readKernelText(`/sys/dev/block/${numbers}/uevent`) ?? ''
  return `/dev/${/^DEVNAME=(.+)$/m.exec(uevent)?.[1] ?? `block/${numbers}`}`
}

export const findDeviceName = (device: Handle) => findNodePath(readNodeNumbers(device))

/**
 * Returns a path by which fsconfig(2) finds the device. The kernel's name for it is preferred, because the mount table
 * shows it. It is used only if it leads to this device, else the handle's path is. The open handle keeps its numbers
 * from being given to another disk.
 */
export function resolveMountSource(device: Handle): string {
  const name = findDeviceName(device)
  return isSameNode(name, device) ? name : formatFdPath(device)
}

/**
 * Checks whether a row of the mount table shows the device. btrfs has its own device number. The source of a FUSE mount
 * is free text, and as a path it may lead to a hanging file system.
 */
export function isShownBy(device: Handle, row: { device: string; fsType: string; source: string }): boolean {
  if (row.device === readNodeNumbers(device)) return true
  return row.device.startsWith('0:') && !row.fsType.startsWith('fuse') && isSameNode(row.source, device)
}

function isSameNode(path: string, device: Handle): boolean {
  if (!path.startsWith('/dev/')) return false
  const stat = fs.statSync(path, { throwIfNoEntry: false })
  return stat?.isBlockDevice() === true && stat.rdev === fs.fstatSync(device).rdev
}

export function isReadOnlyDevice(device: Handle): boolean {
  return readKernelText(`/sys/dev/block/${readNodeNumbers(device)}/ro`) === '1'
}

/** Opens a block device for reading: kernels that protect mounted devices refuse a mount of one that is open for writing. */
export function openDeviceNode(node: Handle): Handle {
  return fs.openSync(formatFdPath(node), O_RDONLY | O_NONBLOCK) as Handle
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
  return openDeviceNode(node)
}

/** Reads up to `length` bytes from the start of an open device. */
export function readDeviceStart(device: Handle, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, fs.readSync(device, bytes, 0, length, 0))
}

// ioctl(2): LOOP_GET_STATUS64, LOOP_CONFIGURE (Linux 5.8), LOOP_CTL_GET_FREE.
const loopStatus = systemCall('loop_status')
const loopConfigure = systemCall('loop_configure')
const loopFree = systemCall('loop_free')

// Other processes may take a free device first.
const MAX_ATTEMPTS = 64

export function findLoop(image: Handle): LoopDevice | undefined {
  const attachedNames = fs.readdirSync('/sys/block').filter((name) => /^loop\d+$/.test(name) && hasBackingFile(name))
  for (const name of attachedNames) {
    const loop = openLoopOfFile(image, name)
    if (loop !== undefined) return loop
  }
  return undefined
}

export function attachLoop(image: Handle, readOnly: boolean): Handle {
  const mode = readOnly ? O_RDONLY : O_RDWR
  const file = fs.openSync(formatFdPath(image), mode)
  using _file = deferCloseFd(file)
  const control = fs.openSync('/dev/loop-control', O_RDWR)
  using _control = deferCloseFd(control)
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const number = requireSuccess(loopFree(control), 'LOOP_CTL_GET_FREE', 'loop-control')
    const device = tryAttach(`/dev/loop${number}`, file, mode)
    if (device !== undefined) return device
  }
  throw new SystemError('LOOP_CONFIGURE', 'EBUSY', fs.readlinkSync(formatFdPath(image)))
}

const hasBackingFile = (loop: string) => fs.existsSync(`/sys/block/${loop}/loop`)

// struct loop_info64 (include/uapi/linux/loop.h): device 0, inode 8, offset 24, sizelimit 32, flags 52, file name 56.
// struct loop_config: descriptor 0, block size 4, loop_info64 at 8, 304 bytes in all.
const INFO_IN_CONFIG = 8
const CONFIG_SIZE = 304
const MAX_NAME_BYTES = 63
const LO_FLAGS_READ_ONLY = 1
const LO_FLAGS_AUTOCLEAR = 4

/**
 * Opens a loop device if it shows the file. An open loop device stays attached after its last other user.
 * @param name `loop0`
 */
export function openLoopOfFile(file: number, name: string): LoopDevice | undefined {
  const { dev, ino }: BigIntStats = fs.fstatSync(file, { bigint: true })
  // The last user of the device, or its node, may just have gone.
  return tolerateErrno('ENOENT ENXIO EBUSY', () => {
    using unlessFound = new DisposableStack()
    const device = fs.openSync(`/dev/${name}`, O_RDONLY) as Handle
    unlessFound.defer(() => close(device))
    requireSuccess(loopStatus(device, 0, DATA), 'LOOP_GET_STATUS64', 'a loop device')
    if (data.readBigUInt64LE(0) !== dev || data.readBigUInt64LE(8) !== ino) return undefined
    unlessFound.move()
    return {
      device,
      isWhole: data.readBigUInt64LE(24) === 0n && data.readBigUInt64LE(32) === 0n,
      isReadOnly: (data.readUInt32LE(52) & LO_FLAGS_READ_ONLY) !== 0,
    }
  })
}

function tryAttach(path: string, file: number, mode: number): Handle | undefined {
  const device = fs.openSync(path, mode)
  using _ = deferCloseFd(device)
  return tolerateErrno('EBUSY', () => {
    configure(device, file, mode === O_RDONLY)
    // Kernels that protect mounted devices refuse a mount of a device that is open for writing.
    return fs.openSync(formatFdPath(device), O_RDONLY) as Handle
  })
}

/** Sets AUTOCLEAR together with the file, so a crash at any time leaves no attached device. */
function configure(device: number, file: number, readOnly: boolean): void {
  const name = Buffer.from(fs.readlinkSync(formatFdPath(file))).subarray(0, MAX_NAME_BYTES)
  data.fill(0, 0, CONFIG_SIZE)
  data.writeUInt32LE(file, 0)
  data.writeUInt32LE(LO_FLAGS_AUTOCLEAR | (readOnly ? LO_FLAGS_READ_ONLY : 0), INFO_IN_CONFIG + 52)
  name.copy(data, INFO_IN_CONFIG + 56)
  requireSuccess(loopConfigure(device, 0, DATA), 'LOOP_CONFIGURE', name)
}
