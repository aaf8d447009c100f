import { tolerateSystemErrors } from '../file-error.ts'
import { formatDeviceId, type Handle, hasDisk } from '../host.ts'
import { nodeFs as fs } from '../read-file.ts'
import { openBlockDevice } from './block-node.ts'
import { F2FS_SUPER_MAGIC, XFS_SUPER_MAGIC } from './magic.ts'
import { deferCloseFd } from './open.ts'
import { statUnsynced } from './statx.ts'

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
const LAYOUTS: Readonly<Record<number, SuperblockLayout>> = {
  [F2FS_SUPER_MAGIC]: { magic: '1020f5f2', magicAt: 0x400, uuidAt: 0x46c },
  [XFS_SUPER_MAGIC]: { magic: '58465342', magicAt: 0, uuidAt: 0x20 },
}
const FIRST_BYTES = 4096
const UUID_SIZE = 16

/**
 * Reads the UUID of a mounted file system from its device. f2fs before Linux 6.9 reports it in no other way. xfs needs
 * it for inodes that no ioctl(2) accepts, such as sockets.
 * @param type statfs' f_type
 * @returns undefined if the superblock's layout is unknown, the device is unreadable, or the UUID is zeroes
 */
export function readSuperblockUuid(handle: Handle, type: number): Buffer | undefined {
  const layout = LAYOUTS[type]
  const { device } = statUnsynced(handle)
  if (layout === undefined || !hasDisk(device)) return undefined
  const firstBytes = tolerateSystemErrors(() => readDeviceStart(formatDeviceId(device)))
  const { magic, magicAt, uuidAt } = layout
  if (firstBytes?.toString('hex', magicAt, magicAt + magic.length / 2) !== magic) return undefined
  const uuid = firstBytes.subarray(uuidAt, uuidAt + UUID_SIZE)
  return uuid.some((byte) => byte !== 0) ? uuid : undefined
}

function readDeviceStart(numbers: string): Buffer | undefined {
  const device = openBlockDevice(numbers)
  using _ = deferCloseFd(device)
  const start = Buffer.alloc(FIRST_BYTES)
  return fs.readSync(device, start, 0, FIRST_BYTES, 0) === FIRST_BYTES ? start : undefined
}
