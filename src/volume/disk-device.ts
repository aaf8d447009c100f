import { createFault, type Fault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { isPossibleBtrfsUuid } from '../kernel/btrfs.ts'
import {
  BLOCK_DEVICE_TYPE,
  FILE_TYPE_MASK,
  type Handle,
  type Host,
  refuseOnErrno,
  type Stat,
  useHandleOrClose,
} from '../kernel/host.ts'
import { type MountRow, parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { acquireNodeLock } from '../state/locks.ts'
import type { OpenedSource } from './kind/kind.ts'

/** An open device, the file system to mount, and the source as messages show it. */
export interface MountableDisk {
  host: Host
  device: Handle
  fsType: string
  shown: string
}

export const isBlockDevice = ({ mode }: Stat) => (mode & FILE_TYPE_MASK) === BLOCK_DEVICE_TYPE

/**
 * Opens the device to mount: the source itself, or the loop device of the image. All mounts of an image share one loop
 * device: two would write to the image from separate caches, and corrupt it.
 * @throws {Refusal}
 */
export async function openMountableDevice(
  host: Host,
  source: string,
  { handle, stat }: OpenedSource,
  readOnly: boolean,
  stateDir: string,
): Promise<Handle> {
  if (isBlockDevice(stat)) {
    return refuseOnErrno(
      () => host.blocks.open(handle),
      (_, code) => ({
        'ENXIO ENODEV': createFault(
          'disk-type',
          `source ${quoteValue(source)} is a device that does not exist (${code})`,
          `attach the disk`,
        ),
      }),
    )
  }
  using _ = await acquireNodeLock({ host, config: { stateDir } }, 'loop')
  const shown = quoteValue(source)
  return findSharedLoopDevice(host, shown, handle, readOnly) ?? attachImageToLoop(host, shown, handle, readOnly)
}

function findSharedLoopDevice(
  { blocks, inodes }: Host,
  shown: string,
  image: Handle,
  readOnly: boolean,
): Handle | undefined {
  const loop = blocks.loopOf(image)
  if (loop === undefined) return undefined
  return useHandleOrClose(inodes, loop.device, (device) => {
    if (loop.isWhole && (readOnly || !loop.isReadOnly)) return device
    const name = blocks.nameOf(device)
    const [reason, remedy] = loop.isWhole
      ? [`image ${shown} is in use read-only (${name}), so it cannot be mounted for writing`, IMAGE_READ_ONLY_REMEDY]
      : [`a part of image ${shown} is in use (${name}), and a second device would destroy it`, 'detach that one first']
    throw Refusal.of('disk-busy', reason, remedy)
  })
}

const IMAGE_READ_ONLY_REMEDY = 'set readOnly, or wait until that use ends'

function attachImageToLoop({ blocks }: Host, shown: string, image: Handle, readOnly: boolean): Handle {
  return refuseOnErrno(
    () => blocks.attachLoop(image, readOnly),
    (words, code) => ({
      'EROFS EACCES EPERM': createFault(
        'disk-read-only',
        `image ${shown} cannot be written (${code})`,
        `set readOnly on the volume`,
      ),
      ETXTBSY: createFault('disk-busy', `image ${shown} is in use as a program or as swap`, `name another one`),
      'ENOENT ENXIO': createFault(
        'kernel-module',
        `image ${shown} needs a loop device, and this node has none (${words})`,
        `load the kernel module loop`,
      ),
      EBUSY: createFault(
        'kernel-module',
        `image ${shown} got no loop device, as other processes took each free one first`,
        `it is tried again`,
      ),
    }),
  )
}

/** Magic numbers of disk contents (blkid(8) has many more). */
const DISK_CONTENT_MAGICS: readonly { what: string; at: number; bytes: string }[] = [
  { what: 'ext4', at: 0x438, bytes: '\x53\xef' },
  { what: 'xfs', at: 0, bytes: 'XFSB' },
  { what: 'btrfs', at: 0x10040, bytes: '_BHRfS_M' },
  { what: 'squashfs', at: 0, bytes: 'hsqs' },
  { what: 'a LUKS container', at: 0, bytes: 'LUKS\xba\xbe' },
  { what: 'swap space', at: 4086, bytes: 'SWAPSPACE2' },
  { what: 'a part of an LVM volume group', at: 536, bytes: 'LVM2 001' },
  { what: 'a partition table', at: 512, bytes: 'EFI PART' },
]
const DISK_HEADER_BYTES = 0x10100

/** @throws {Refusal} if a device contains another file system or format than the requested one */
export function refuseOtherDiskContent({ host, device, fsType, shown }: MountableDisk): void {
  const start = Buffer.from(host.blocks.start(device, DISK_HEADER_BYTES)).toString('latin1')
  const found = DISK_CONTENT_MAGICS.filter(({ at, bytes }) => start.startsWith(bytes, at)).map(({ what }) => what)
  if (found.includes(fsType)) return
  const [content] = found
  if (content !== undefined)
    throw Refusal.of('disk-content', `source ${shown} holds ${content}, not ${fsType}`, 'correct fsType or the name')
  throw Refusal.of(
    'disk-content',
    `source ${shown} holds no ${fsType}`,
    'make one there (mkfs), or correct the name; modekeep never formats a disk',
  )
}

/** Lists the mounts of this namespace that show the device: those of others are invisible here. */
export function listDiskMounts({ host, device }: MountableDisk): MountRow[] {
  return parseMountinfo(host.mounts.table()).filter((row) => host.blocks.isShownBy(device, row))
}

/**
 * A file system that is already mounted is shared by all mounts: with the options and the content of the first.
 * @throws {Refusal} if the node itself mounted it
 */
export function refuseDiskMountedByNode(disk: MountableDisk, isVolume: (path: string) => boolean): void {
  const there = listDiskMounts(disk)
  const [first] = there
  if (first === undefined || there.some(({ mountPoint }) => isVolume(mountPoint))) return
  throw Refusal.of(
    'disk-busy',
    `source ${disk.shown} is mounted by the node itself at ${quoteValue(first.mountPoint)}`,
    'unmount that, or have the pod ' +
      `take a directory of it (fsType bind, a source below ${quoteValue(first.mountPoint)})`,
  )
}

const BTRFS_UUID_OFFSET = 0x10020
const BTRFS_UUID_BYTES = 16

/**
 * Since Linux 6.7 a btrfs whose UUID is already mounted gets a temporary one while it is mounted: its records would not
 * match at the next mount.
 * @throws {Refusal}
 */
export function refuseDuplicateBtrfsUuid({ host, device, fsType, shown }: MountableDisk, tree: Handle): void {
  if (fsType !== 'btrfs') return
  const start = Buffer.from(host.blocks.start(device, DISK_HEADER_BYTES))
  const uuid = start.subarray(BTRFS_UUID_OFFSET, BTRFS_UUID_OFFSET + BTRFS_UUID_BYTES)
  if (!isPossibleBtrfsUuid(host.inodes.fileSystemId(tree), uuid)) throw new Refusal(createDuplicateUuidFault(shown))
}

/** Both remedies for a copy of an xfs: only a UUID of its own gives it records of its own. */
const XFS_COPY_REMEDIES =
  ' ("nouuid" if it is a copy of one that is mounted, with ownership "idmap" or "none"; for a walk give the copy a new UUID with "xfs_admin -U generate" instead)'

const createDuplicateUuidFault = (shown: string, words = '') =>
  createFault(
    'identity-twice',
    `source ${shown} has the UUID of a file system that is mounted`,
    `unmount that, or give one a new UUID${words}`,
  )

/**
 * Mounts, and explains an error of the kernel to the pod's author.
 * @throws {Refusal} or, for an error without an explanation, the system error
 */
export function explainDiskMountErrors(disk: MountableDisk, create: () => Handle): Handle {
  const { fsType } = disk
  const source = `source ${disk.shown}`
  return refuseOnErrno(create, (message) => {
    const words = `(the kernel: ${message})`
    const module = `this node's kernel cannot mount ${fsType}`
    return {
      ENODEV: createFault('kernel-module', module, `load the kernel module ${fsType}`),
      EACCES: createFault('disk-read-only', `${source} is a read-only device`, `set readOnly on the volume ${words}`),
      EROFS: createFault(
        'disk-content',
        `${source} must have its log replayed, but cannot be written`,
        `mount it once for writing, or see docs/volumes.md for mounting it without ${words}`,
      ),
      'EUCLEAN EIO': createFault(
        'disk-content',
        `${source} is damaged`,
        `check it with fsck.${fsType} while it is not mounted ${words}`,
      ),
      EEXIST: createDuplicateUuidFault(disk.shown, ` ${words}`),
      EBUSY: createDiskBusyFault(disk, words),
      'EINVAL ENOENT': createFault(
        'disk-content',
        `the kernel does not mount ${source}`,
        `check the mountOptions${fsType === 'xfs' ? XFS_COPY_REMEDIES : ''}, and the ${fsType} on it; its log (dmesg) may say more ${words}`,
      ),
    }
  })
}

function createDiskBusyFault(disk: MountableDisk, words: string): Fault {
  const [there] = listDiskMounts(disk)
  if (there === undefined) {
    const reason = `source ${disk.shown} is in use on this node, by swap, LVM, RAID, another container, or a mount of another kind`
    return createFault('disk-busy', reason, `end that use ${words}`)
  }
  const isReadOnly = there.superOptions.includes('ro')
  return createFault(
    'disk-busy',
    `source ${disk.shown} is mounted ${isReadOnly ? 'read-only' : 'for writing'} already at ${there.mountPoint}, and one disk is mounted in one way`,
    `${isReadOnly ? 'set readOnly on the volume, or unmount that' : 'unmount that'} ${words}`,
  )
}
