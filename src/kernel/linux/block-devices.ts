import type { BigIntStats } from 'node:fs'
import type { Handle, LoopDevice } from '../host.ts'
import { nodeFs as fs, readTextFile } from '../read-file.ts'
import { SystemError, tolerateErrno, tolerateSystemErrors } from '../system-error.ts'
import { CALL_DATA_OFFSET, callData, createSystemCall, requireCallSuccess } from './kernel.ts'
import { closeDescriptor, deferDescriptorClose, openLinkFree } from './open.ts'

const { O_NONBLOCK, O_RDONLY, O_RDWR } = fs.constants

/** Returns a path that leads to a descriptor's file, even if its name has changed. */
export const formatFdPath = (fd: number) => `/proc/self/fd/${fd}`

/** Formats the device numbers as `major:minor`, in the encoding of Linux' user space. */
export function formatDeviceNumbers({ rdev }: { rdev: number }): string {
  const major = (rdev >>> 8) & 0xfff
  const minor = (rdev & 0xff) | ((rdev >>> 12) & 0xfff00)
  return `${major}:${minor}`
}

export const readDeviceNumbers = (device: Handle) => formatDeviceNumbers(fs.fstatSync(device))

/** Returns the text of a file of sysfs or proc; undefined if there is none. */
export function readKernelText(path: string): string | undefined {
  return tolerateSystemErrors(() => readTextFile(path).trim())
}

/** Returns the path of the kernel's own name of a block device, which sysfs reports. @param numbers `major:minor` */
export function findDeviceNodePath(numbers: string): string {
  const uevent = readKernelText(`/sys/dev/block/${numbers}/uevent`) ?? ''
  return `/dev/${/^DEVNAME=(.+)$/m.exec(uevent)?.[1] ?? `block/${numbers}`}`
}

export const findDeviceNode = (device: Handle) => findDeviceNodePath(readDeviceNumbers(device))

/**
 * Returns a path by which fsconfig(2) finds the device. The kernel's name for it is preferred, because the mount table
 * shows it. It is used only if it leads to this device, else the handle's path is. The open handle keeps its numbers
 * from being given to another disk.
 */
export function resolveMountSource(device: Handle): string {
  const name = findDeviceNode(device)
  return isSameDeviceNode(name, device) ? name : formatFdPath(device)
}

/**
 * Checks whether a row of the mount table shows the device. btrfs has its own device number. The source of a FUSE mount
 * is free text, and as a path it may lead to a hanging file system.
 */
export function isDeviceOfMountRow(device: Handle, row: { device: string; fsType: string; source: string }): boolean {
  if (row.device === readDeviceNumbers(device)) return true
  return row.device.startsWith('0:') && !row.fsType.startsWith('fuse') && isSameDeviceNode(row.source, device)
}

function isSameDeviceNode(path: string, device: Handle): boolean {
  if (!path.startsWith('/dev/')) return false
  const stat = fs.statSync(path, { throwIfNoEntry: false })
  return stat?.isBlockDevice() === true && stat.rdev === fs.fstatSync(device).rdev
}

export function isReadOnlyDevice(device: Handle): boolean {
  return readKernelText(`/sys/dev/block/${readDeviceNumbers(device)}/ro`) === '1'
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
  const path = findDeviceNodePath(numbers)
  const node = openLinkFree(path)
  using _ = deferDescriptorClose(node)
  const stat = fs.fstatSync(node)
  if (!stat.isBlockDevice() || formatDeviceNumbers(stat) !== numbers) throw new SystemError('open', 'ENODEV', path)
  return openDeviceNode(node)
}

/** Reads up to `length` bytes from the start of an open device. */
export function readDeviceStart(device: Handle, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, fs.readSync(device, bytes, 0, length, 0))
}

// ioctl(2): LOOP_GET_STATUS64, LOOP_CONFIGURE (Linux 5.8), LOOP_CTL_GET_FREE.
const loopGetStatus = createSystemCall('loop_status')
const loopConfigure = createSystemCall('loop_configure')
const loopGetFree = createSystemCall('loop_free')

// Other processes may take a free device first.
const MAX_LOOP_ATTACH_ATTEMPTS = 64

export function findLoopDevice(image: Handle): LoopDevice | undefined {
  const attachedNames = fs
    .readdirSync('/sys/block')
    .filter((name) => /^loop\d+$/.test(name) && hasLoopBackingFile(name))
  for (const name of attachedNames) {
    const loop = openLoopDeviceOfFile(image, name)
    if (loop !== undefined) return loop
  }
  return undefined
}

export function attachLoopDevice(image: Handle, readOnly: boolean): Handle {
  const mode = readOnly ? O_RDONLY : O_RDWR
  const file = fs.openSync(formatFdPath(image), mode)
  using _file = deferDescriptorClose(file)
  const control = fs.openSync('/dev/loop-control', O_RDWR)
  using _control = deferDescriptorClose(control)
  for (let attempt = 0; attempt < MAX_LOOP_ATTACH_ATTEMPTS; attempt++) {
    const number = requireCallSuccess(loopGetFree(control), 'LOOP_CTL_GET_FREE', 'loop-control')
    const device = tryAttachLoopDevice(`/dev/loop${number}`, file, mode)
    if (device !== undefined) return device
  }
  throw new SystemError('LOOP_CONFIGURE', 'EBUSY', fs.readlinkSync(formatFdPath(image)))
}

const hasLoopBackingFile = (loop: string) => fs.existsSync(`/sys/block/${loop}/loop`)

// struct loop_info64 (include/uapi/linux/loop.h): device 0, inode 8, offset 24, sizelimit 32, flags 52, file name 56.
// struct loop_config: descriptor 0, block size 4, loop_info64 at 8, 304 bytes in all.
const LOOP_INFO_OFFSET = 8
const LOOP_CONFIG_BYTES = 304
const MAX_LOOP_NAME_BYTES = 63
const LO_FLAGS_READ_ONLY = 1
const LO_FLAGS_AUTOCLEAR = 4

/**
 * Opens a loop device if it shows the file. An open loop device stays attached after its last other user.
 * @param name `loop0`
 */
export function openLoopDeviceOfFile(file: number, name: string): LoopDevice | undefined {
  const { dev, ino }: BigIntStats = fs.fstatSync(file, { bigint: true })
  // The last user of the device, or its node, may just have gone.
  return tolerateErrno('ENOENT ENXIO EBUSY', () => {
    using unlessFound = new DisposableStack()
    const device = fs.openSync(`/dev/${name}`, O_RDONLY) as Handle
    unlessFound.defer(() => closeDescriptor(device))
    requireCallSuccess(loopGetStatus(device, 0, CALL_DATA_OFFSET), 'LOOP_GET_STATUS64', 'a loop device')
    if (callData.readBigUInt64LE(0) !== dev || callData.readBigUInt64LE(8) !== ino) return undefined
    unlessFound.move()
    return {
      device,
      isWhole: callData.readBigUInt64LE(24) === 0n && callData.readBigUInt64LE(32) === 0n,
      isReadOnly: (callData.readUInt32LE(52) & LO_FLAGS_READ_ONLY) !== 0,
    }
  })
}

function tryAttachLoopDevice(path: string, file: number, mode: number): Handle | undefined {
  const device = fs.openSync(path, mode)
  using _ = deferDescriptorClose(device)
  return tolerateErrno('EBUSY', () => {
    configureLoopDevice(device, file, mode === O_RDONLY)
    // Kernels that protect mounted devices refuse a mount of a device that is open for writing.
    return fs.openSync(formatFdPath(device), O_RDONLY) as Handle
  })
}

/** Sets AUTOCLEAR together with the file, so a crash at any time leaves no attached device. */
function configureLoopDevice(device: number, file: number, readOnly: boolean): void {
  const name = Buffer.from(fs.readlinkSync(formatFdPath(file))).subarray(0, MAX_LOOP_NAME_BYTES)
  callData.fill(0, 0, LOOP_CONFIG_BYTES)
  callData.writeUInt32LE(file, 0)
  callData.writeUInt32LE(LO_FLAGS_AUTOCLEAR | (readOnly ? LO_FLAGS_READ_ONLY : 0), LOOP_INFO_OFFSET + 52)
  name.copy(callData, LOOP_INFO_OFFSET + 56)
  requireCallSuccess(loopConfigure(device, 0, CALL_DATA_OFFSET), 'LOOP_CONFIGURE', name)
}
