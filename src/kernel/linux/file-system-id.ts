import { constants } from 'node:fs'
import { foldUuid } from '../btrfs.ts'
import { FILE_TYPE, formatDeviceId, type Handle, hasDisk, REGULAR, tolerateErrno } from '../host.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { openBlockDevice, readDeviceStart } from './block-devices.ts'
import { AT_FDCWD, DATA, data, requireSuccess, systemCall } from './kernel.ts'
import { deferCloseFd, openAt } from './open.ts'
import { readSubvolume, statFs, statUnsynced, viewHandleStat } from './statx.ts'

const fsUuid = systemCall('fs_uuid')
const ext4Uuid = systemCall('ext4_uuid')
const xfsGeometry = systemCall('xfs_geometry')
const btrfsInfo = systemCall('btrfs_info')

const { O_DIRECTORY, O_NONBLOCK, O_RDONLY } = constants
const UUID_SIZE = 16

// statfs' f_type: include/uapi/linux/magic.h
export const BTRFS_SUPER_MAGIC = 0x9123683e
export const EXT4_SUPER_MAGIC = 0xef53
const F2FS_SUPER_MAGIC = 0xf2f52010
export const FUSE_SUPER_MAGIC = 0x65735546
export const XFS_SUPER_MAGIC = 0x58465342

/** File systems on the node's disks. Opening one of their regular files for reading sends no request to a server. */
const DISK_FILE_SYSTEMS = new Set([BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, XFS_SUPER_MAGIC])

const NO_UUID = 'ENOTTY EINVAL ENOSYS ENOTSUP EOPNOTSUPP'

/**
 * Names the file system of a handle. The name is its UUID, which the kernel or the superblock contains, and does not
 * depend on the number of its device. The name of a btrfs is the f_fsid that its UUID and its subvolume result in.
 */
export function readFileSystemId(handle: Handle): string {
  const { type } = statFs(handle, 'a volume')
  // No FUSE file system has a UUID, and its daemon may never respond to the open.
  if (type === FUSE_SUPER_MAGIC) return readFsid(handle)
  return readStableId(handle, type) ?? readFsid(handle)
}

/** Joins statfs' type and f_fsid. Many file systems derive f_fsid from the number of their device. */
function readFsid(handle: Handle): string {
  const { type, id } = statFs(handle, 'a volume')
  return `${type.toString(16)}.${id}`
}

/** Returns the name by f_fsid. Undefined if f_fsid is 0, because all file systems of the type would share the name. */
export function readFormerId(handle: Handle): string | undefined {
  const id = readFsid(handle)
  return /\.0+$/.test(id) ? undefined : id
}

function readStableId(handle: Handle, type: number): string | undefined {
  const uuid = readReportedUuid(handle, type) ?? readSuperblockUuid(handle, type)
  if (uuid === undefined || type !== BTRFS_SUPER_MAGIC) return uuid?.toString('hex')
  // Linux 6.10 reports the subvolume. Older kernels derive f_fsid from the UUID and the subvolume alone.
  const subvolume = readSubvolume(handle)
  if (subvolume === undefined) return undefined
  return `${type.toString(16)}.${foldUuid(uuid, subvolume).toString('hex')}`
}

function readReportedUuid(handle: Handle, type: number): Buffer | undefined {
  const readable = openReadable(handle, type)
  if (readable === undefined) return undefined
  using _ = deferCloseFd(readable)
  return readUuid(readable, type, 'a volume')
}

/** ioctl(2) rejects O_PATH. Opening a FIFO or a device has side effects, and a socket cannot be opened. */
function openReadable(handle: Handle, type: number): Handle | undefined {
  const directory = tolerateErrno('ENOTDIR', () => openAt(handle, '.', O_RDONLY | O_DIRECTORY, 'a volume'))
  if (directory !== undefined) return directory
  if (!DISK_FILE_SYSTEMS.has(type) || (viewHandleStat(handle).mode & FILE_TYPE) !== REGULAR) return undefined
  return tolerateSystemErrors(() => openAt(AT_FDCWD, `/proc/self/fd/${handle}`, O_RDONLY | O_NONBLOCK, 'a volume'))
}

/**
 * Reads the UUID of a readable descriptor's file system by FS_IOC_GETFSUUID (Linux 6.9), else by the file system's own
 * ioctl.
 * @param type statfs' f_type
 * @returns undefined if there is none; some images are made with a UUID of zeroes
 */
export function readUuid(readable: number, type: number, target: string): Buffer | undefined {
  // btrfs sets no UUID of its superblock that FS_IOC_GETFSUUID could report.
  const requests = type === BTRFS_SUPER_MAGIC ? [] : [() => requestUuid(readable, target)]
  const ownIoctl = OWN_IOCTLS[type]
  if (ownIoctl !== undefined) requests.push(() => ownIoctl(readable, target))
  for (const request of requests) {
    const uuid = tolerateErrno(NO_UUID, request)
    if (uuid?.some((byte) => byte !== 0)) return uuid
  }
  return undefined
}

/**
 * Calls FS_IOC_GETFSUUID on a readable descriptor.
 * @throws {SystemError} ENOTTY if the file system has no UUID, or the kernel lacks the request
 */
export function requestUuid(readable: number, target: string): Buffer {
  // struct fsuuid2: length, bytes.
  requireSuccess(fsUuid(readable, 0, DATA), 'FS_IOC_GETFSUUID', target)
  return Buffer.from(data.subarray(1, 1 + data.readUInt8(0)))
}

const OWN_IOCTLS: Readonly<Record<number, (readable: number, target: string) => Buffer>> = {
  // Linux 6.0. struct fsuuid: length, flags, bytes.
  [EXT4_SUPER_MAGIC](readable, target) {
    data.writeUInt32LE(UUID_SIZE, 0)
    data.writeUInt32LE(0, 4)
    requireSuccess(ext4Uuid(readable, 0, DATA), 'EXT4_IOC_GETFSUUID', target)
    return copyUuid(8)
  },
  // struct xfs_fsop_geom_v1
  [XFS_SUPER_MAGIC](readable, target) {
    requireSuccess(xfsGeometry(readable, 0, DATA), 'XFS_IOC_FSGEOMETRY_V1', target)
    return copyUuid(64)
  },
  // struct btrfs_ioctl_fs_info_args; its flags request nothing more.
  [BTRFS_SUPER_MAGIC](readable, target) {
    data.fill(0, 0, 1024)
    requireSuccess(btrfsInfo(readable, 0, DATA), 'BTRFS_IOC_FS_INFO', target)
    return copyUuid(16)
  },
}

const copyUuid = (start: number) => Buffer.from(data.subarray(start, start + UUID_SIZE))

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
const FIRST_BYTES = 4096

/**
 * Reads the UUID of a mounted file system from its device. f2fs before Linux 6.9 reports it in no other way. xfs needs
 * it for inodes that no ioctl(2) accepts, such as sockets.
 * @param type statfs' f_type
 * @returns undefined if the superblock's layout is unknown, the device is unreadable, or the UUID is zeroes
 */
export function readSuperblockUuid(handle: Handle, type: number): Buffer | undefined {
  const layout = SUPERBLOCK_LAYOUTS[type]
  const { device } = statUnsynced(handle)
  if (layout === undefined || !hasDisk(device)) return undefined
  const firstBytes = tolerateSystemErrors(() => readFirstBytes(formatDeviceId(device)))
  const { magic, magicAt, uuidAt } = layout
  if (firstBytes?.toString('hex', magicAt, magicAt + magic.length / 2) !== magic) return undefined
  const uuid = firstBytes.subarray(uuidAt, uuidAt + UUID_SIZE)
  return uuid.some((byte) => byte !== 0) ? uuid : undefined
}

function readFirstBytes(numbers: string): Buffer {
  const device = openBlockDevice(numbers)
  using _ = deferCloseFd(device)
  return readDeviceStart(device, FIRST_BYTES)
}
