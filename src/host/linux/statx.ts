import type { Handle, Name, Stat } from '../host.ts'
import { AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, DATA, data, done, put, putEmpty, systemCall } from './kernel.ts'

const statx = systemCall('statx')
const fstatfs = systemCall('fstatfs')

// include/uapi/linux/{fcntl,stat}.h
const AT_NO_AUTOMOUNT = 0x800
export const AT_STATX_FORCE_SYNC = 0x2000
const AT_STATX_DONT_SYNC = 0x4000
const STATX_BASIC_STATS = 0x7ff
const STATX_BTIME = 0x800
export const STATX_MNT_ID = 0x1000
export const STATX_MNT_ID_UNIQUE = 0x4000
const STATX_ATTR_IMMUTABLE = 0x10
const STATX_ATTR_APPEND = 0x20
const STATX_ATTR_MOUNT_ROOT = 0x2000

const MASK = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE
const OF_HANDLE = AT_EMPTY_PATH | AT_NO_AUTOMOUNT
const OF_NAME = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT

/** statx(2) of the inode a handle holds. */
export function statHandle(handle: Handle): Stat {
  look(handle)
  const stat = new LinuxStat()
  noteDevice(handle, stat.device)
  return stat
}

/** Of `statHandle` what costs least. */
export function ownershipOfHandle(handle: Handle): Pick<Stat, 'gid' | 'mode' | 'changed'> {
  look(handle)
  return { gid: word(0x18), mode: fields.getUint16(0x1c, true), changed: milliseconds(0x60) }
}

/** statx(2) of a name, which may lead to another device than its directory's. */
export function statName(parent: Handle, name: Name | string, sync = 0): Stat {
  look(parent, name, sync)
  const stat = new LinuxStat()
  // A mount's root is on another device than its directory's handle.
  if (!stat.mountRoot) noteDevice(parent, stat.device)
  return stat
}

/** Without asking a server or a daemon, which may never answer; of the handle itself where there is no name. */
export function statUnsynced(parent: Handle, name?: Name): Stat {
  look(parent, name, AT_STATX_DONT_SYNC)
  return new LinuxStat()
}

/** Whether the kernel tells a field of `mask`. */
export function tells(handle: Handle, mask: number): boolean {
  look(handle, undefined, 0, mask)
  return (word(0) & mask) !== 0
}

/** Of the handle itself where there is no name. */
function look(handle: Handle, name?: Name | string, flags = 0, mask = MASK): void {
  const path = name === undefined ? putEmpty() : put(name)
  const how = (name === undefined ? OF_HANDLE : OF_NAME) | flags
  done(statx(handle, path, how, mask, DATA), 'statx', name ?? 'an open handle')
}

// struct statfs (x86-64 and arm64)
const F_TYPE = 0
const F_FSID = 56
const F_FLAGS = 80

/** Of statfs(2) of the file system a handle is on; `id` is no name of a device, which another may get at a reboot. */
export function statFs(handle: Handle, target: string): { type: number; flags: number; id: string } {
  done(fstatfs(handle, DATA), 'fstatfs', target)
  return { type: word(F_TYPE), flags: word(F_FLAGS), id: data.toString('hex', F_FSID, F_FSID + 8) }
}

// include/uapi/linux/magic.h. Copied up at its first change, an overlayfs inode keeps its number but gets another birth
// time (overlayfs.rst).
const OVERLAYFS_SUPER_MAGIC = 0x794c7630
const overlays = new Map<number, boolean>()

/** Whether a device is an overlay is asked once. */
function noteDevice(handle: Handle, device: number): void {
  if (overlays.has(device) || fstatfs(handle, DATA) !== 0) return
  overlays.set(device, word(F_TYPE) === OVERLAYFS_SUPER_MAGIC)
}

const fields = new DataView(data.buffer, data.byteOffset, 256)
const word = (offset: number) => fields.getUint32(offset, true)
const TWO_32 = 2 ** 32

/**
 * struct statx (include/uapi/linux/stat.h), copied when made. Most inodes are only asked for mode and group: numbers of
 * 64 bits, which are slow to make, are made when they are asked for.
 */
class LinuxStat implements Stat {
  readonly mode = fields.getUint16(0x1c, true)
  readonly uid = word(0x14)
  readonly gid = word(0x18)
  readonly links = word(0x10)
  readonly device = word(0x88) * 2 ** 20 + word(0x8c)
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

/** File times beyond 2^53 seconds do not exist. */
function seconds(offset: number): number {
  return word(offset) + fields.getInt32(offset + 4, true) * TWO_32
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
