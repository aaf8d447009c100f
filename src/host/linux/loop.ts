import { closeSync, constants, existsSync, fstatSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import type { LoopDevice } from '../blocks.ts'
import { errorCode, type Handle, SystemError } from '../host.ts'
import {
  LO_FLAGS_AUTOCLEAR,
  LO_FLAGS_READ_ONLY,
  LOOP_CONFIGURE,
  LOOP_CTL_GET_FREE,
  LOOP_GET_STATUS64,
} from './constants.ts'
import { address, libc, run, view } from './libc.ts'

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
    run('LOOP_GET_STATUS64', 'a loop device', () => libc.ioctl(device, LOOP_GET_STATUS64, address('struct')))
  } catch (error) {
    // Detached since.
    if (errorCode(error) === 'ENXIO') return undefined
    throw error
  }
  const info = view('struct')
  return {
    device: info.readBigUInt64LE(0),
    inode: info.readBigUInt64LE(8),
    isWhole: info.readBigUInt64LE(24) === 0n && info.readBigUInt64LE(32) === 0n,
    isReadOnly: (info.readUInt32LE(52) & LO_FLAGS_READ_ONLY) !== 0,
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
      const number = run('LOOP_CTL_GET_FREE', 'loop-control', () => libc.ioctl(control, LOOP_CTL_GET_FREE, 0n))
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
  run('LOOP_CONFIGURE', name, () => {
    const config = view('struct')
    config.fill(0, 0, CONFIG_SIZE)
    config.writeUInt32LE(file, 0)
    config.writeUInt32LE(LO_FLAGS_AUTOCLEAR | (readOnly ? LO_FLAGS_READ_ONLY : 0), INFO_IN_CONFIG + 52)
    name.copy(config, INFO_IN_CONFIG + 56)
    return libc.ioctl(device, LOOP_CONFIGURE, address('struct'))
  })
}
