import { constants } from 'node:fs'
import { computeSubvolumeFsid } from '../btrfs.ts'
import { FILE_TYPE_MASK, formatDeviceId, type Handle, isDiskDevice, REGULAR_FILE_TYPE, tolerateErrno } from '../host.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { openBlockDevice, readDeviceStart } from './block-devices.ts'
import { AT_FDCWD, CALL_DATA_OFFSET, callData, createSystemCall, requireCallSuccess } from './kernel.ts'
import { deferDescriptorClose, openAt } from './open.ts'
import { readSubvolumeId, statFs, statUnsynced, viewHandleStat } from './statx.ts'

const getFsUuid = createSystemCall('fs_uuid')
const getExt4Uuid = createSystemCall('ext4_uuid')
const getXfsGeometry = createSystemCall('xfs_geometry')
const getBtrfsInfo = createSystemCall('btrfs_info')

const { O_DIRECTORY, O_NONBLOCK, O_RDONLY } = constants
const UUID_SIZE = 16

// statfs' f_type: include/uapi/linux/magic.h
export const BTRFS_SUPER_MAGIC = 0x9123683e
export const EXT4_SUPER_MAGIC = 0xef53
const F2FS_SUPER_MAGIC = 0xf2f52010
export const FUSE_SUPER_MAGIC = 0x65735546
export const XFS_SUPER_MAGIC = 0x58465342

/** File systems on the node's disks. Opening one of their regular files for reading sends no request to a server. */
const DISK_FILE_SYSTEM_MAGICS = new Set([BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, XFS_SUPER_MAGIC])

const NO_UUID_ERRNOS = 'ENOTTY EINVAL ENOSYS ENOTSUP EOPNOTSUPP'

/**
 * Names the file system of a handle. The name is its UUID, which the kernel or the superblock contains, and does not
 * depend on the number of its device. The name of a btrfs is the f_fsid that its UUID and its subvolume result in.
 */
export function readFileSystemId(handle: Handle): string {
  const { type } = statFs(handle, 'a volume')
  // No FUSE file system has a UUID, and its daemon may never respond to the open.
  if (type === FUSE_SUPER_MAGIC) return readFsid(handle)
  return readStableFileSystemId(handle, type) ?? readFsid(handle)
}

/** Joins statfs' type and f_fsid. Many file systems derive f_fsid from the number of their device. */
function readFsid(handle: Handle): string {
  const { type, id } = statFs(handle, 'a volume')
  return `${type.toString(16)}.${id}`
}

/** Returns the name by f_fsid. Undefined if f_fsid is 0, because all file systems of the type would share the name. */
export function readFormerFileSystemId(handle: Handle): string | undefined {
  const id = readFsid(handle)
  return /\.0+$/.test(id) ? undefined : id
}

function readStableFileSystemId(handle: Handle, type: number): string | undefined {
  const uuid = readReportedUuid(handle, type) ?? readSuperblockUuid(handle, type)
  if (uuid === undefined || type !== BTRFS_SUPER_MAGIC) return uuid?.toString('hex')
  // Linux 6.10 reports the subvolume. Older kernels derive f_fsid from the UUID and the subvolume alone.
  const subvolume = readSubvolumeId(handle)
  if (subvolume === undefined) return undefined
  return `${type.toString(16)}.${computeSubvolumeFsid(uuid, subvolume).toString('hex')}`
}

function readReportedUuid(handle: Handle, type: number): Buffer | undefined {
  const readable = openReadableHandle(handle, type)
  if (readable === undefined) return undefined
  using _ = deferDescriptorClose(readable)
  return readUuidByIoctl(readable, type, 'a volume')
}

/** ioctl(2) rejects O_PATH. Opening a FIFO or a device has side effects, and a socket cannot be opened. */
function openReadableHandle(handle: Handle, type: number): Handle | undefined {
  const directory = tolerateErrno('ENOTDIR', () => openAt(handle, '.', O_RDONLY | O_DIRECTORY, 'a volume'))
  if (directory !== undefined) return directory
  if (!DISK_FILE_SYSTEM_MAGICS.has(type) || (viewHandleStat(handle).mode & FILE_TYPE_MASK) !== REGULAR_FILE_TYPE)
    return undefined
  return tolerateSystemErrors(() => openAt(AT_FDCWD, `/proc/self/fd/${handle}`, O_RDONLY | O_NONBLOCK, 'a volume'))
}

/**
 * Reads the UUID of a readable descriptor's file system by FS_IOC_GETFSUUID (Linux 6.9), else by the file system's own
 * ioctl.
 * @param type statfs' f_type
 * @returns undefined if there is none; some images are made with a UUID of zeroes
 */
export function readUuidByIoctl(readable: number, type: number, target: string): Buffer | undefined {
  // btrfs sets no UUID of its superblock that FS_IOC_GETFSUUID could report.
  const requests = type === BTRFS_SUPER_MAGIC ? [] : [() => requestFileSystemUuid(readable, target)]
  const ownIoctl = UUID_IOCTLS_BY_MAGIC[type]
  if (ownIoctl !== undefined) requests.push(() => ownIoctl(readable, target))
  for (const request of requests) {
    const uuid = tolerateErrno(NO_UUID_ERRNOS, request)
    if (uuid?.some((byte) => byte !== 0)) return uuid
  }
  return undefined
}

/**
 * Calls FS_IOC_GETFSUUID on a readable descriptor.
 * @throws {SystemError} ENOTTY if the file system has no UUID, or the kernel lacks the request
 */
export function requestFileSystemUuid(readable: number, target: string): Buffer {
  // struct fsuuid2: length, bytes.
  requireCallSuccess(getFsUuid(readable, 0, CALL_DATA_OFFSET), 'FS_IOC_GETFSUUID', target)
  return Buffer.from(callData.subarray(1, 1 + callData.readUInt8(0)))
}

const UUID_IOCTLS_BY_MAGIC: Readonly<Record<number, (readable: number, target: string) => Buffer>> = {
  // Linux 6.0. struct fsuuid: length, flags, bytes.
  [EXT4_SUPER_MAGIC](readable, target) {
    callData.writeUInt32LE(UUID_SIZE, 0)
    callData.writeUInt32LE(0, 4)
    requireCallSuccess(getExt4Uuid(readable, 0, CALL_DATA_OFFSET), 'EXT4_IOC_GETFSUUID', target)
    return copyUuidFromArena(8)
  },
  // struct xfs_fsop_geom_v1
  [XFS_SUPER_MAGIC](readable, target) {
    requireCallSuccess(getXfsGeometry(readable, 0, CALL_DATA_OFFSET), 'XFS_IOC_FSGEOMETRY_V1', target)
    return copyUuidFromArena(64)
  },
  // struct btrfs_ioctl_fs_info_args; its flags request nothing more.
  [BTRFS_SUPER_MAGIC](readable, target) {
    callData.fill(0, 0, 1024)
    requireCallSuccess(getBtrfsInfo(readable, 0, CALL_DATA_OFFSET), 'BTRFS_IOC_FS_INFO', target)
    return copyUuidFromArena(16)
  },
}

const copyUuidFromArena = (start: number) => Buffer.from(callData.subarray(start, start + UUID_SIZE))

interface SuperblockLayout {
  /** In hexadecimal digits, in the order of the bytes on the disk. */
  magic: string
  magicAt: number
  uuidAt: number
}

/**
 * Offsets from the start of the device: include/linux/f2fs_fs.h, fs/xfs/libxfs/xfs_format.h. ext4 and btrfs need none:
 * f_fsid of ext4 is its UUID on every kernel, and every kernel has the ioctl of btrfs. Reading their superblocks would
 * change the names in processes that must not open devices.
 */
const SUPERBLOCK_LAYOUTS: Readonly<Record<number, SuperblockLayout>> = {
  [F2FS_SUPER_MAGIC]: { magic: '1020f5f2', magicAt: 0x400, uuidAt: 0x46c },
  [XFS_SUPER_MAGIC]: { magic: '58465342', magicAt: 0, uuidAt: 0x20 },
}
const SUPERBLOCK_READ_BYTES = 4096

/**
 * Reads the UUID of a mounted file system from its device. f2fs before Linux 6.9 reports it in no other way. xfs needs
 * it for inodes that no ioctl(2) accepts, such as sockets.
 * @param type statfs' f_type
 * @returns undefined if the superblock's layout is unknown, the device is unreadable, or the UUID is zeroes
 */
export function readSuperblockUuid(handle: Handle, type: number): Buffer | undefined {
  const layout = SUPERBLOCK_LAYOUTS[type]
  const { device } = statUnsynced(handle)
  if (layout === undefined || !isDiskDevice(device)) return undefined
  const firstBytes = tolerateSystemErrors(() => readSuperblockBytes(formatDeviceId(device)))
  const { magic, magicAt, uuidAt } = layout
  if (firstBytes?.toString('hex', magicAt, magicAt + magic.length / 2) !== magic) return undefined
  const uuid = firstBytes.subarray(uuidAt, uuidAt + UUID_SIZE)
  return uuid.some((byte) => byte !== 0) ? uuid : undefined
}

function readSuperblockBytes(numbers: string): Buffer {
  const device = openBlockDevice(numbers)
  using _ = deferDescriptorClose(device)
  return readDeviceStart(device, SUPERBLOCK_READ_BYTES)
}
