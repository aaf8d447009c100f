import type { EntryName, Handle, SpaceUsage, Stat, StatView } from '../host.ts'
import {
  AT_EMPTY_PATH,
  AT_SYMLINK_NOFOLLOW,
  CALL_DATA_OFFSET,
  callData,
  createSystemCall,
  requireCallSuccess,
  STATX_DATA_OFFSET,
  writeEmptyNameArgument,
  writeNameArgument,
} from './kernel.ts'

const statx = createSystemCall('statx')
const fstatfs = createSystemCall('fstatfs')

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

const REQUESTED_STATX_FIELDS = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE
/** statx(2) ignores the descriptor for an absolute path. */
const IGNORED_HANDLE = 0 as Handle
const HANDLE_STATX_FLAGS = AT_EMPTY_PATH | AT_NO_AUTOMOUNT
const NAME_STATX_FLAGS = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT

/** Calls statx(2) on the inode of a handle. */
export function viewHandleStat(handle: Handle): StatView {
  callStatx(handle)
  recordOverlayDevice(handle, lastStatxView.device)
  return lastStatxView
}

/** The cheapest variant of `viewHandleStat`. */
export function readOwnership(handle: Handle): Pick<Stat, 'gid' | 'mode' | 'changed'> {
  callStatx(handle)
  const { gid, mode, changed } = lastStatxView
  return { gid, mode, changed }
}

/** Calls statx(2) on a name, which may be on another device than its directory. */
export function viewEntryStat(parent: Handle, name: EntryName | string, sync = 0): StatView {
  callStatx(parent, name, sync)
  // A mount's root is on another device than its directory's handle.
  if (!lastStatxView.mountRoot) recordOverlayDevice(parent, lastStatxView.device)
  return lastStatxView
}

export function statName(parent: Handle, name: EntryName | string, sync = 0): Stat {
  return viewEntryStat(parent, name, sync).keep()
}

/** Never queries a server or a daemon, which may not respond. Without a name, it stats the handle itself. */
export function statUnsynced(parent: Handle, name?: EntryName): Stat {
  callStatx(parent, name, AT_STATX_DONT_SYNC)
  return lastStatxView.keep()
}

/** Follows a link of /proc/PID to its inode. It may query a server: NFS revalidates even such a link. */
export function statMagicLink(path: string): StatView {
  requireCallSuccess(
    statx(
      IGNORED_HANDLE,
      writeNameArgument(path),
      AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
      REQUESTED_STATX_FIELDS,
      STATX_DATA_OFFSET,
    ),
    'statx',
    path,
  )
  return lastStatxView
}

/** Checks whether the kernel reports a field of `mask`. */
export function hasStatxField(handle: Handle, mask: number): boolean {
  callStatx(handle, undefined, 0, mask)
  return (callDataFields.getUint32(STATX_DATA_OFFSET, true) & mask) !== 0
}

/** Returns the number of a handle's btrfs subvolume, undefined before Linux 6.10. */
export function readSubvolumeId(handle: Handle): bigint | undefined {
  return hasStatxField(handle, STATX_SUBVOL) ? callDataFields.getBigUint64(STATX_DATA_OFFSET + 0xa0, true) : undefined
}

/** Without a name, it stats the handle itself. */
function callStatx(handle: Handle, name?: EntryName | string, flags = 0, mask = REQUESTED_STATX_FIELDS): void {
  const path = name === undefined ? writeEmptyNameArgument() : writeNameArgument(name)
  const statxFlags = (name === undefined ? HANDLE_STATX_FLAGS : NAME_STATX_FLAGS) | flags
  requireCallSuccess(statx(handle, path, statxFlags, mask, STATX_DATA_OFFSET), 'statx', name ?? 'an open handle')
}

// struct statfs (x86-64 and arm64)
const STATFS_TYPE_OFFSET = 0
const STATFS_BLOCKS_OFFSET = 16
const STATFS_BFREE_OFFSET = 24
const STATFS_BAVAIL_OFFSET = 32
const STATFS_FILES_OFFSET = 40
const STATFS_FFREE_OFFSET = 48
const STATFS_FRSIZE_OFFSET = 72
const STATFS_FSID_OFFSET = 56
const STATFS_FLAGS_OFFSET = 80

/** Calls statfs(2). `id` does not identify a device: after a reboot another one may have it. */
export function statFs(handle: Handle, target: string): { type: number; flags: number; id: string } {
  requireCallSuccess(fstatfs(handle, CALL_DATA_OFFSET), 'fstatfs', target)
  return {
    type: callData.readUInt32LE(STATFS_TYPE_OFFSET),
    flags: callData.readUInt32LE(STATFS_FLAGS_OFFSET),
    id: callData.toString('hex', STATFS_FSID_OFFSET, STATFS_FSID_OFFSET + 8),
  }
}

/** Returns the total and free space of a handle's file system by statfs(2). */
export function readSpaceUsage(handle: Handle): { bytes: SpaceUsage; inodes: SpaceUsage } {
  requireCallSuccess(fstatfs(handle, CALL_DATA_OFFSET), 'fstatfs', 'an open handle')
  const field = (offset: number) => callData.readBigUInt64LE(offset)
  const size = field(STATFS_FRSIZE_OFFSET)
  return {
    bytes: createSpaceUsage(
      field(STATFS_BLOCKS_OFFSET) * size,
      field(STATFS_BFREE_OFFSET) * size,
      field(STATFS_BAVAIL_OFFSET) * size,
    ),
    inodes: createSpaceUsage(field(STATFS_FILES_OFFSET), field(STATFS_FFREE_OFFSET), field(STATFS_FFREE_OFFSET)),
  }
}

/** A server or a daemon may report more free space than the total. */
function createSpaceUsage(total: bigint, free: bigint, available: bigint): SpaceUsage {
  return { total, used: free > total ? 0n : total - free, available }
}

// include/uapi/linux/magic.h. On overlayfs an inode is copied up at its first change: it keeps its number, but gets
// another birth time (overlayfs.rst).
const OVERLAYFS_SUPER_MAGIC = 0x794c7630
const isOverlayByDevice = new Map<number, boolean>()
let lastRecordedDevice = -1

/** Records once for each device whether it is an overlay. @param handle of an inode on it */
export function recordOverlayDevice(handle: Handle, device: number): void {
  if (device === lastRecordedDevice) return
  lastRecordedDevice = device
  if (isOverlayByDevice.has(device) || fstatfs(handle, CALL_DATA_OFFSET) !== 0) return
  isOverlayByDevice.set(device, callData.readUInt32LE(STATFS_TYPE_OFFSET) === OVERLAYFS_SUPER_MAGIC)
}

const callDataFields = new DataView(callData.buffer)
const TWO_TO_THE_32 = 2 ** 32

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
    return this.#word(0x90) + this.#word(0x94) * TWO_TO_THE_32
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
    const isReported = (this.#word(0) & STATX_BTIME) !== 0 && !isOverlayByDevice.get(this.device)
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
export const lastStatxView = new StatxView(callDataFields, STATX_DATA_OFFSET)

/** No file time exceeds 2^53 seconds. */
function readMilliseconds(fields: DataView, offset: number): number {
  const seconds = fields.getUint32(offset, true) + fields.getInt32(offset + 4, true) * TWO_TO_THE_32
  return seconds * 1000 + fields.getUint32(offset + 8, true) / 1_000_000
}

// V8 compiles arithmetic that stays within 64 bits to machine instructions.
function readNanoseconds(fields: DataView, offset: number): bigint {
  const rest = fields.getBigUint64(offset + 8, true) & 0xffffffffn
  return BigInt.asIntN(64, fields.getBigInt64(offset, true) * 1_000_000_000n + rest)
}
