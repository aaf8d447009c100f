import type { Stat } from '../host.ts'
import {
  AT_EMPTY_PATH,
  AT_STATX_DONT_SYNC,
  STATX_ATTR_APPEND,
  STATX_ATTR_IMMUTABLE,
  STATX_ATTR_MOUNT_ROOT,
  STATX_BASIC_STATS,
  STATX_BTIME,
  STATX_MNT_ID,
  STATX_MNT_ID_UNIQUE,
} from './constants.ts'
import { address, libc, view } from './libc.ts'

const MASK = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE
const buffer = view('struct')
const data = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
const at = address('struct')

/** Fills the arena's statx structure; returns what the call returned. */
export function callStatx(fd: number, name: bigint, flags: number): number {
  const result = libc.statx(fd, name, flags, MASK, at)
  // A name may lead to another device than its directory's.
  // Nor is a server or a daemon asked, where it should not be waited for.
  if (result === 0 && (flags & (AT_EMPTY_PATH | AT_STATX_DONT_SYNC)) === AT_EMPTY_PATH) noteDevice(fd)
  return result
}

// Copied up at its first change, an overlayfs inode keeps its number but gets another birth time (overlayfs.rst).
const OVERLAYFS_SUPER_MAGIC = 0x794c7630
const overlays = new Map<number, boolean>()
let lastDevice = -1

/** Whether a device is an overlay is asked once. */
function noteDevice(fd: number): void {
  const device = deviceNumber()
  if (device === lastDevice) return
  lastDevice = device
  if (overlays.has(device)) return
  // statx's own structure must stay as it is.
  const isKnown = libc.fstatfs(fd, address('second')) === 0
  if (isKnown) overlays.set(device, view('second').readUInt32LE(0) === OVERLAYFS_SUPER_MAGIC)
}

const deviceNumber = () => word(0x88) * 2 ** 20 + word(0x8c)

const word = (offset: number) => data.getUint32(offset, true)
const TWO_32 = 2 ** 32

/**
 * struct statx (include/uapi/linux/stat.h), copied when made. Most inodes are only asked for mode and group: numbers of
 * 64 bits, which are slow to make, are made when they are asked for.
 */
class LinuxStat implements Stat {
  readonly mode = data.getUint16(0x1c, true)
  readonly uid = word(0x14)
  readonly gid = word(0x18)
  readonly links = word(0x10)
  readonly device = deviceNumber()
  /** Counted up from the boot on: far below 2^53. */
  readonly mountId = word(0x90) + word(0x94) * TWO_32
  readonly changed = milliseconds(0x60)
  private readonly attributes = word(0x08)
  private readonly inodeLow = word(0x20)
  private readonly inodeHigh = word(0x24)
  private readonly sizeLow = word(0x28)
  private readonly sizeHigh = word(0x2c)
  private readonly bornSeconds = word(0) & STATX_BTIME ? seconds(0x50) : 0
  private readonly bornRest = word(0) & STATX_BTIME ? word(0x58) : 0
  private readonly modifiedSeconds = seconds(0x70)
  private readonly modifiedRest = word(0x78)

  get mountRoot(): boolean {
    return (this.attributes & STATX_ATTR_MOUNT_ROOT) !== 0
  }

  get immutable(): boolean {
    return (this.attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) !== 0
  }

  get inode(): bigint {
    return wide(this.inodeLow, this.inodeHigh)
  }

  get size(): bigint {
    return wide(this.sizeLow, this.sizeHigh)
  }

  get born(): bigint {
    return overlays.get(this.device) ? 0n : nanoseconds(this.bornSeconds, this.bornRest)
  }

  get modified(): bigint {
    return nanoseconds(this.modifiedSeconds, this.modifiedRest)
  }
}

/** Reads what the last successful callStatx left. */
export function readStat(): Stat {
  return new LinuxStat()
}

export function readOwnership(): Pick<Stat, 'gid' | 'mode' | 'changed'> {
  return { gid: word(0x18), mode: data.getUint16(0x1c, true), changed: milliseconds(0x60) }
}

/** File times beyond 2^53 seconds do not exist. */
function seconds(offset: number): number {
  return word(offset) + data.getInt32(offset + 4, true) * TWO_32
}

function milliseconds(offset: number): number {
  return seconds(offset) * 1000 + word(offset + 8) / 1_000_000
}

function wide(low: number, high: number): bigint {
  return high === 0 ? BigInt(low) : (BigInt(high) << 32n) | BigInt(low)
}

function nanoseconds(seconds: number, rest: number): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(rest)
}
