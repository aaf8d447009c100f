import type { Handle, Name, SpaceUsage, Stat, StatView } from '../host.ts'
import {
  AT_EMPTY_PATH,
  AT_SYMLINK_NOFOLLOW,
  DATA,
  data,
  putEmpty,
  putName,
  requireSuccess,
  STATX_DATA,
  systemCall,
} from './kernel.ts'

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
/** Linux 6.10 */
const STATX_SUBVOL = 0x8000
const STATX_ATTR_IMMUTABLE = 0x10
const STATX_ATTR_APPEND = 0x20
const STATX_ATTR_MOUNT_ROOT = 0x2000

const REQUESTED_FIELDS = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE
/** statx(2) ignores the descriptor for an absolute path. */
const ANY_HANDLE = 0 as Handle
const HANDLE_STATX_FLAGS = AT_EMPTY_PATH | AT_NO_AUTOMOUNT
const NAME_STATX_FLAGS = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT

/** Calls statx(2) on the inode of a handle. */
export function viewHandleStat(handle: Handle): StatView {
  callStatx(handle)
  recordOverlay(handle, lastStat.device)
  return lastStat
}

/** The cheapest variant of `viewHandleStat`. */
export function readOwnership(handle: Handle): Pick<Stat, 'gid' | 'mode' | 'changed'> {
  callStatx(handle)
  const { gid, mode, changed } = lastStat
  return { gid, mode, changed }
}

/** Calls statx(2) on a name, which may be on another device than its directory. */
export function viewEntryStat(parent: Handle, name: Name | string, sync = 0): StatView {
  callStatx(parent, name, sync)
  // A mount's root is on another device than its directory's handle.
  if (!lastStat.mountRoot) recordOverlay(parent, lastStat.device)
  return lastStat
}

export function statName(parent: Handle, name: Name | string, sync = 0): Stat {
  return viewEntryStat(parent, name, sync).keep()
}

/** Never queries a server or a daemon, which may not respond. Without a name, it stats the handle itself. */
export function statUnsynced(parent: Handle, name?: Name): Stat {
  callStatx(parent, name, AT_STATX_DONT_SYNC)
  return lastStat.keep()
}

/** Follows a link of /proc/PID to its inode. It may query a server: NFS revalidates even such a link. */
export function statMagicLink(path: string): StatView {
  requireSuccess(
    statx(ANY_HANDLE, putName(path), AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, REQUESTED_FIELDS, STATX_DATA),
    'statx',
    path,
  )
  return lastStat
}

/** Checks whether the kernel reports a field of `mask`. */
export function reportsField(handle: Handle, mask: number): boolean {
  callStatx(handle, undefined, 0, mask)
  return (fields.getUint32(STATX_DATA, true) & mask) !== 0
}

/** Returns the number of a handle's btrfs subvolume, undefined before Linux 6.10. */
export function readSubvolume(handle: Handle): bigint | undefined {
  return reportsField(handle, STATX_SUBVOL) ? fields.getBigUint64(STATX_DATA + 0xa0, true) : undefined
}

/** Without a name, it stats the handle itself. */
function callStatx(handle: Handle, name?: Name | string, flags = 0, mask = REQUESTED_FIELDS): void {
  const path = name === undefined ? putEmpty() : putName(name)
  const statxFlags = (name === undefined ? HANDLE_STATX_FLAGS : NAME_STATX_FLAGS) | flags
  requireSuccess(statx(handle, path, statxFlags, mask, STATX_DATA), 'statx', name ?? 'an open handle')
}

// struct statfs (x86-64 and arm64)
const F_TYPE = 0
const F_BLOCKS = 16
const F_BFREE = 24
const F_BAVAIL = 32
const F_FILES = 40
const F_FFREE = 48
const F_FRSIZE = 72
const F_FSID = 56
const F_FLAGS = 80

/** Calls statfs(2). `id` does not identify a device: after a reboot another one may have it. */
export function statFs(handle: Handle, target: string): { type: number; flags: number; id: string } {
  requireSuccess(fstatfs(handle, DATA), 'fstatfs', target)
  return {
    type: data.readUInt32LE(F_TYPE),
    flags: data.readUInt32LE(F_FLAGS),
    id: data.toString('hex', F_FSID, F_FSID + 8),
  }
}

/** Returns the total and free space of a handle's file system by statfs(2). */
export function readSpaceUsage(handle: Handle): { bytes: SpaceUsage; inodes: SpaceUsage } {
  requireSuccess(fstatfs(handle, DATA), 'fstatfs', 'an open handle')
  const field = (offset: number) => data.readBigUInt64LE(offset)
  const size = field(F_FRSIZE)
  return {
    bytes: createSpaceUsage(field(F_BLOCKS) * size, field(F_BFREE) * size, field(F_BAVAIL) * size),
    inodes: createSpaceUsage(field(F_FILES), field(F_FFREE), field(F_FFREE)),
  }
}

/** A server or a daemon may report more free space than the total. */
function createSpaceUsage(total: bigint, free: bigint, available: bigint): SpaceUsage {
  return { total, used: free > total ? 0n : total - free, available }
}

// include/uapi/linux/magic.h. On overlayfs an inode is copied up at its first change: it keeps its number, but gets
// another birth time (overlayfs.rst).
const OVERLAYFS_SUPER_MAGIC = 0x794c7630
const overlays = new Map<number, boolean>()
let lastDevice = -1

/** Records once for each device whether it is an overlay. @param handle of an inode on it */
export function recordOverlay(handle: Handle, device: number): void {
  if (device === lastDevice) return
  lastDevice = device
  if (overlays.has(device) || fstatfs(handle, DATA) !== 0) return
  overlays.set(device, data.readUInt32LE(F_TYPE) === OVERLAYFS_SUPER_MAGIC)
}

const fields = new DataView(data.buffer)
const TWO_32 = 2 ** 32

/** View of a struct statx (include/uapi/linux/stat.h) in the memory that a call has filled. */
export class StatxView implements StatView {
  readonly #fields: DataView
  /** Offset of the structure. */
  at: number

  constructor(fields: DataView, at: number) {
    this.#fields = fields
    this.at = at
  }

  get mode(): number {
    return this.#fields.getUint16(this.at + 0x1c, true)
  }

  get uid(): number {
    return this.#word(0x14)
  }

  get gid(): number {
    return this.#word(0x18)
  }

  get links(): number {
    return this.#word(0x10)
  }

  get device(): number {
    return this.#word(0x88) * 2 ** 20 + this.#word(0x8c)
  }

  get mountId(): number {
    // The kernel counts ids up from the boot on, so they stay far below 2^53.
    return this.#word(0x90) + this.#word(0x94) * TWO_32
  }

  get changed(): number {
    return readMilliseconds(this.#fields, this.at + 0x60)
  }

  get mountRoot(): boolean {
    return (this.#word(0x08) & STATX_ATTR_MOUNT_ROOT) !== 0
  }

  get immutable(): boolean {
    return (this.#word(0x08) & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) !== 0
  }

  get inode(): bigint {
    return this.#fields.getBigUint64(this.at + 0x20, true)
  }

  get size(): bigint {
    return this.#fields.getBigUint64(this.at + 0x28, true)
  }

  get born(): bigint {
    const isReported = (this.#word(0) & STATX_BTIME) !== 0 && !overlays.get(this.device)
    return isReported ? readNanoseconds(this.#fields, this.at + 0x50) : 0n
  }

  get modified(): bigint {
    return readNanoseconds(this.#fields, this.at + 0x70)
  }

  #word(offset: number): number {
    return this.#fields.getUint32(this.at + offset, true)
  }

  keep(): Stat {
    const { mode, uid, gid, links, device, mountId, changed, mountRoot, immutable, inode, size, born, modified } = this
    return { mode, uid, gid, links, device, mountId, changed, mountRoot, immutable, inode, size, born, modified }
  }
}

/** Result of the last single call. */
export const lastStat = new StatxView(fields, STATX_DATA)

/** No file time exceeds 2^53 seconds. */
function readMilliseconds(fields: DataView, offset: number): number {
  const seconds = fields.getUint32(offset, true) + fields.getInt32(offset + 4, true) * TWO_32
  return seconds * 1000 + fields.getUint32(offset + 8, true) / 1_000_000
}

// V8 compiles arithmetic that stays within 64 bits to machine instructions.
function readNanoseconds(fields: DataView, offset: number): bigint {
  const rest = fields.getBigUint64(offset + 8, true) & 0xffffffffn
  return BigInt.asIntN(64, fields.getBigInt64(offset, true) * 1_000_000_000n + rest)
}
