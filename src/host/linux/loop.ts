import { closeSync, constants, existsSync, fstatSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import type { LoopDevice } from '../blocks.ts'
import { errorCode, type Handle, SystemError } from '../host.ts'
import { LO_FLAGS_AUTOCLEAR, LO_FLAGS_READ_ONLY } from './constants.ts'
import { DATA, data, done, systemCall } from './kernel.ts'

// ioctl(2): LOOP_GET_STATUS64, LOOP_CONFIGURE (Linux 5.8), LOOP_CTL_GET_FREE.
const loopStatus = systemCall('loop_status')
const loopConfigure = systemCall('loop_configure')
const loopFree = systemCall('loop_free')

// struct loop_info64 (include/uapi/linux/loop.h): device 0, inode 8, offset 24, sizelimit 32, flags 52, file name 56.
// struct loop_config: descriptor 0, block size 4, loop_info64 at 8, 304 bytes in all.
const INFO_IN_CONFIG = 8
const CONFIG_SIZE = 304
const LONGEST_NAME = 63

/** While it is held open, its last other user's end does not take it away. */
export function loopOf(image: Handle): LoopDevice | undefined {
  const { dev, ino } = fstatSync(image, { bigint: true })
  for (const name of readdirSync('/sys/block').filter((name) => isAttached(name))) {
    const device = tryOpen(`/dev/${name}`)
    if (device === undefined) continue
    const status = statusOf(device)
    if (status?.device === dev && status.inode === ino) {
      return { device, isReadOnly: status.isReadOnly, isWhole: status.isWhole }
    }
    closeSync(device)
  }
  return undefined
}

function isAttached(name: string): boolean {
  return /^loop\d+$/.test(name) && existsSync(`/sys/block/${name}/loop`)
}

function tryOpen(path: string): Handle | undefined {
  try {
    return openSync(path, constants.O_RDONLY) as Handle
  } catch (error) {
    // Its last user has just gone, or its node was removed with it.
    if (['ENOENT', 'ENXIO', 'EBUSY'].includes(errorCode(error) ?? '')) return undefined
    throw error
  }
}

function statusOf(device: Handle) {
  try {
    done(loopStatus(device, 0, DATA), 'LOOP_GET_STATUS64', 'a loop device')
  } catch (error) {
    // Detached since.
    if (errorCode(error) === 'ENXIO') return undefined
    throw error
  }
  return {
    device: data.readBigUInt64LE(0),
    inode: data.readBigUInt64LE(8),
    isWhole: data.readBigUInt64LE(24) === 0n && data.readBigUInt64LE(32) === 0n,
    isReadOnly: (data.readUInt32LE(52) & LO_FLAGS_READ_ONLY) !== 0,
  }
}

// Others may take the free device first.
const MOST_ATTEMPTS = 64

export function attachLoop(image: Handle, readOnly: boolean): Handle {
  const mode = readOnly ? constants.O_RDONLY : constants.O_RDWR
  const file = openSync(`/proc/self/fd/${image}`, mode)
  const control = openSync('/dev/loop-control', constants.O_RDWR)
  try {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const number = done(loopFree(control), 'LOOP_CTL_GET_FREE', 'loop-control')
      const device = tryAttach(`/dev/loop${number}`, file, readOnly, mode)
      if (device !== undefined) return device
    }
    throw new SystemError('LOOP_CONFIGURE', 'EBUSY', readlinkSync(`/proc/self/fd/${image}`))
  } finally {
    closeSync(control)
    closeSync(file)
  }
}

function tryAttach(path: string, file: number, readOnly: boolean, mode: number): Handle | undefined {
  const device = openSync(path, mode)
  try {
    configure(device, file, readOnly)
    // Kernels that protect mounted devices refuse a mount while another has it open for writing.
    return openSync(`/proc/self/fd/${device}`, constants.O_RDONLY) as Handle
  } catch (error) {
    if (errorCode(error) === 'EBUSY') return undefined
    throw error
  } finally {
    closeSync(device)
  }
}

/** With AUTOCLEAR from the first moment on: a death at any later one leaves nothing. */
function configure(device: number, file: number, readOnly: boolean): void {
  const name = Buffer.from(readlinkSync(`/proc/self/fd/${file}`)).subarray(0, LONGEST_NAME)
  data.fill(0, 0, CONFIG_SIZE)
  data.writeUInt32LE(file, 0)
  data.writeUInt32LE(LO_FLAGS_AUTOCLEAR | (readOnly ? LO_FLAGS_READ_ONLY : 0), INFO_IN_CONFIG + 52)
  name.copy(data, INFO_IN_CONFIG + 56)
  done(loopConfigure(device, 0, DATA), 'LOOP_CONFIGURE', name)
}
