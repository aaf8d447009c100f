import { errorCode, type Handle, type Host, SystemError } from '../../host/host.ts'
import { parseMountinfo } from '../../mount-table/mountinfo.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import type { MountRequest } from '../../request/mount-request.ts'
import { pathOf } from '../kind/source-path.ts'

/** What a disk begins with (blkid(8) knows many more). */
const MAGICS: readonly { what: string; at: number; bytes: string }[] = [
  { what: 'ext4', at: 0x438, bytes: '\x53\xef' },
  { what: 'xfs', at: 0, bytes: 'XFSB' },
  { what: 'btrfs', at: 0x10040, bytes: '_BHRfS_M' },
  { what: 'squashfs', at: 0, bytes: 'hsqs' },
  { what: 'a LUKS container', at: 0, bytes: 'LUKS\xba\xbe' },
  { what: 'swap space', at: 4086, bytes: 'SWAPSPACE2' },
  { what: 'a part of an LVM volume group', at: 536, bytes: 'LVM2 001' },
  { what: 'a partition table', at: 512, bytes: 'EFI PART' },
]
const FIRST_BYTES = 0x10100

/** @throws {Refusal} where a device plainly holds something else than what is to be mounted */
export function refuseOtherContent({ blocks }: Host, device: Handle, { source, fsType }: MountRequest): void {
  const start = Buffer.from(blocks.start(device, FIRST_BYTES)).toString('latin1')
  const found = MAGICS.filter(({ at, bytes }) => start.startsWith(bytes, at)).map(({ what }) => what)
  if (found.includes(fsType)) return
  const [what] = found
  if (what === undefined) {
    throw new Refusal(
      `source ${quoted(pathOf(source))} holds no ${fsType}: make one there (mkfs), or correct the name; modekeep never formats a disk`,
    )
  }
  throw new Refusal(`source ${quoted(pathOf(source))} holds ${what}, not ${fsType}: correct fsType or the name`)
}

/**
 * A file system that is mounted already is the same one for all: with the options of whoever came first, and with all
 * that he has on it.
 * @throws {Refusal} where that was the node itself
 */
export function refuseNodesOwn(
  { blocks, mounts }: Host,
  device: Handle,
  { source }: MountRequest,
  isVolume: (path: string) => boolean,
): void {
  const there = parseMountinfo(mounts.table()).filter((row) => blocks.isShownBy(device, row))
  const [first] = there
  if (first === undefined || there.some(({ mountPoint }) => isVolume(mountPoint))) return
  throw new Refusal(
    `source ${quoted(pathOf(source))} is mounted by the node itself at ${quoted(first.mountPoint)}: unmount that, or have the pod ` +
      `take a directory of it (fsType bind, a source below ${quoted(first.mountPoint)})`,
  )
}

const BTRFS_UUID = 0x10020

/**
 * Since Linux 6.7 a btrfs whose UUID is mounted already gets another for as long as it is mounted: records of it would be
 * of no use the next time.
 * @throws {Refusal}
 */
export function refuseTwin(host: Host, device: Handle, tree: Handle, { source, fsType }: MountRequest): void {
  if (fsType !== 'btrfs') return
  const start = Buffer.from(host.blocks.start(device, FIRST_BYTES))
  // f_fsid begins with two words of the UUID, folded (fs/btrfs/super.c); the rest tells the subvolume.
  const folded = (start.readUInt32BE(BTRFS_UUID) ^ start.readUInt32BE(BTRFS_UUID + 8)) >>> 0
  const id = Buffer.from(host.inodes.fileSystemId(tree).split('.')[1] ?? '', 'hex')
  if (id.length === F_FSID_SIZE && id.readUInt32LE(0) !== folded)
    throw new Refusal(twin(`source ${quoted(pathOf(source))}`))
}

const F_FSID_SIZE = 8

const twin = (it: string) => `${it} has the UUID of a file system that is mounted: unmount that, or give one a new UUID`

export interface Refused {
  reason: 'mounted for writing' | 'other'
  error: unknown
}

/** What the kernel's answer to a mount means to the pod's author. */
export function refusedMount(host: Host, device: Handle, { source, fsType }: MountRequest, error: unknown): Refused {
  if (!(error instanceof SystemError)) return { reason: 'other', error }
  const refused = (text: string, reason: Refused['reason'] = 'other') => ({
    reason,
    error: new Refusal(text, { cause: error }),
  })
  const it = `source ${quoted(pathOf(source))}`
  const words = `(the kernel: ${error.message})`
  switch (errorCode(error)) {
    case 'ENODEV':
      return refused(`this node's kernel cannot mount ${fsType}: load the kernel module ${fsType}`)
    case 'EACCES':
      return refused(`${it} is a read-only device: set readOnly on the volume ${words}`)
    case 'EROFS':
      return refused(
        `${it} must have its log replayed, but cannot be written: mount it once for writing, or see docs/volumes.md for mounting it without ${words}`,
      )
    case 'EUCLEAN':
    case 'EIO':
      return refused(`${it} is damaged: check it with fsck.${fsType} while it is not mounted ${words}`)
    case 'EEXIST':
      return refused(`${twin(it)} ${words}`)
    case 'EBUSY':
      return busy(host, device, it, words, refused)
    case 'EINVAL':
    case 'ENOENT':
      return refused(
        `the kernel does not mount ${it}: check the mountOptions${fsType === 'xfs' ? ' ("nouuid" if it is a copy of one that is mounted)' : ''}, and the ${fsType} on it; its log (dmesg) may say more ${words}`,
      )
    default:
      return { reason: 'other', error }
  }
}

function busy(
  { blocks, mounts }: Host,
  device: Handle,
  it: string,
  words: string,
  refused: (text: string, reason?: Refused['reason']) => Refused,
): Refused {
  const there = parseMountinfo(mounts.table()).find((row) => blocks.isShownBy(device, row))
  if (there === undefined) {
    const who = 'by swap, LVM, RAID, another container, or a mount of another kind'
    // A mount in another namespace cannot be seen; a second attempt tells.
    return refused(`${it} is in use on this node, ${who}: end that use ${words}`, 'mounted for writing')
  }
  const how = there.superOptions.includes('ro') ? 'read-only' : 'for writing'
  return refused(
    `${it} is mounted ${how} already at ${there.mountPoint}, and one disk is mounted in one way: ` +
      `${how === 'read-only' ? 'set readOnly on the volume, or unmount that' : 'unmount that'} ${words}`,
    how === 'read-only' ? 'other' : 'mounted for writing',
  )
}

/** Of a mount that is not attached, a part can be cloned since Linux 6.15. */
export function refusedPart(error: unknown, subPath: string): unknown {
  if (!(error instanceof SystemError) || error.syscall !== 'open_tree' || errorCode(error) !== 'EINVAL') return error
  return new Refusal(
    `subPath ${quoted(subPath)} of a disk or an image needs Linux 6.15 or newer on the node: leave subPath out, and use the container's own subPath`,
    { cause: error },
  )
}
