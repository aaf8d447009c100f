import { basename, dirname } from 'node:path'
import { quoteValue } from '../../errors/refusal.ts'
import { isPossibleBtrfsUuid } from '../btrfs.ts'
import {
  type BackingStorage,
  BLOCK_DEVICE_TYPE,
  FILE_TYPE_MASK,
  formatDeviceId,
  type Handle,
  isDiskDevice,
  REGULAR_FILE_TYPE,
  type Stat,
} from '../host.ts'
import { nodeFs as fs, readTextFile } from '../read-file.ts'
import { tolerateSystemErrors } from '../system-error.ts'
import { formatFdPath, openLoopDeviceOfFile, readDeviceNumbers } from './block-devices.ts'
import {
  BTRFS_SUPER_MAGIC,
  EXT4_SUPER_MAGIC,
  FUSE_SUPER_MAGIC,
  readUuidByIoctl,
  XFS_SUPER_MAGIC,
} from './file-system-id.ts'
import { linuxInodes } from './inodes.ts'
import { closeDescriptor, deferDescriptorClose, openLinkFree } from './open.ts'
import { statFs, statUnsynced, viewHandleStat } from './statx.ts'

/** The names of one device or image. */
type BackingNames = Pick<BackingStorage, 'shown' | 'identities' | 'former'>

const NO_BACKING_NAMES: BackingNames = { shown: '', identities: [] }

export function findBackingStorage(handle: Handle): BackingStorage {
  const { device } = statUnsynced(handle)
  const place = formatDeviceId(device)
  const backing = tolerateSystemErrors(() => {
    const devices = isDiskDevice(device) ? [resolveSysfsDirectory(`/sys/dev/block/${place}`)] : listBtrfsDevices(handle)
    if (devices === 'in doubt') return { place, ...AMBIGUOUS_BTRFS_NAMES }
    return devices.length === 0
      ? undefined
      : { place: devices.toSorted().join(' '), ...readJoinedDeviceNames(devices, 0) }
  })
  return backing ?? { place, ...NO_BACKING_NAMES }
}

export function readSourceBackingStorage(source: Handle): BackingStorage {
  const stat = viewHandleStat(source).keep()
  const isDevice = (stat.mode & FILE_TYPE_MASK) === BLOCK_DEVICE_TYPE
  const place = isDevice ? readDeviceNumbers(source) : ''
  const names = tolerateSystemErrors(() =>
    isDevice ? readDeviceNames(resolveSysfsDirectory(`/sys/dev/block/${place}`)) : readImageNames(source, stat),
  )
  return { place, ...(names ?? NO_BACKING_NAMES) }
}

const resolveSysfsDirectory = (path: string) => fs.realpathSync(path)

function readJoinedDeviceNames(devices: readonly string[], depth: number): BackingNames {
  const identified = devices
    .map((device) => readDeviceNames(device, depth))
    .filter(({ identities }) => identities.length > 0)
  const former = identified.flatMap(({ former: names = [] }) => names)
  return {
    shown: identified.map(({ shown }) => shown).join(' and '),
    identities: identified.flatMap(({ identities }) => identities),
    ...(former.length > 0 && { former }),
  }
}

/** Adds a suffix to all names of a device. */
function addSuffixToDeviceNames({ shown, identities, former }: BackingNames, suffix: string): BackingNames {
  const add = (text: string) => `${text}${suffix}`
  return { shown: add(shown), identities: identities.map(add), ...(former && { former: former.map(add) }) }
}

/** File systems were made with colliding names, so none keeps its own name. */
const AMBIGUOUS_BTRFS_NAMES: BackingNames = {
  shown: 'one of several btrfs that the kernel cannot tell apart',
  identities: ['btrfs in doubt'],
}

/** btrfs has no device number of its own. */
export function listBtrfsDevices(handle: Handle): string[] | 'in doubt' {
  if (statFs(handle, 'a volume').type !== BTRFS_SUPER_MAGIC) return []
  const id = linuxInodes.fileSystemId(handle)
  const top = '/sys/fs/btrfs'
  const [match, secondMatch] = fs.readdirSync(top).filter((name) => {
    const uuid = Buffer.from(name.replaceAll('-', ''), 'hex')
    return uuid.length === 16 && isPossibleBtrfsUuid(id, uuid)
  })
  if (match === undefined) return []
  if (secondMatch !== undefined) return 'in doubt'
  return fs
    .readdirSync(`${top}/${match}/devices`)
    .map((name) => resolveSysfsDirectory(`${top}/${match}/devices/${name}`))
}

const MAX_DEVICE_STACK_DEPTH = 8
const isImageFileBacking = ({ identities }: Pick<BackingStorage, 'identities'>) =>
  identities.some((identity) => identity.startsWith('image '))

/**
 * Reads the names of a device. A device on top of others (LVM, LUKS, RAID) can be renamed by their content, so an image
 * below decides.
 * @param directory its directory in sysfs, without links
 */
export function readDeviceNames(directory: string, depth = 0): BackingNames {
  const part = readSysfsAttribute(directory, 'partition')
  const disk = part === undefined ? directory : dirname(directory)
  const name = basename(directory)
  const suffix = part === undefined ? '' : ` partition ${part}`
  const addSuffix = (names: BackingNames) => addSuffixToDeviceNames(names, suffix)
  if (fs.existsSync(`${disk}/loop`))
    return addSuffix(findLoopImageNames(basename(disk), readSysfsAttribute(disk, 'loop/offset')))
  const slaves =
    depth < MAX_DEVICE_STACK_DEPTH && fs.existsSync(`${disk}/slaves`) ? fs.readdirSync(`${disk}/slaves`) : []
  const below = readJoinedDeviceNames(
    slaves.map((slave) => resolveSysfsDirectory(`${disk}/slaves/${slave}`)),
    depth + 1,
  )
  if (isImageFileBacking(below)) return addSuffix(below)
  const ownNames = readDiskNames(disk)
  if (ownNames.length === 0) return addSuffix(below)
  return {
    shown: `${name} (${ownNames.join(', ')})`,
    identities: addSuffix({ shown: '', identities: ownNames }).identities,
  }
}

const SYSFS_IDENTITY_FILES = ['dm/uuid', 'wwid', 'device/wwid', 'serial', 'device/serial', 'device/cid']

/**
 * QEMU numbers disks without a serial by their position (QM00001), and kpartx names maps by device number. Both names
 * move to another disk if the order changes.
 */
const POSITIONAL_DEVICE_NAME = /\bQM\d{5}\b|^part\d+-devnode_/

function readDiskNames(disk: string): string[] {
  // All namespaces of a controller have the controller's serial.
  const namespace = readSysfsAttribute(disk, 'nsid')
  const names = SYSFS_IDENTITY_FILES.flatMap((file) => {
    const value =
      readSysfsAttribute(disk, file)
        ?.replaceAll(/[^\x21-\x7e]+/g, ' ')
        .trim() ?? ''
    if (/^[0\W_]*$/.test(value) || POSITIONAL_DEVICE_NAME.test(value)) return []
    const kind = file === 'dm/uuid' ? 'mapped' : basename(file)
    return `${kind} ${value}${file === 'device/serial' && namespace !== undefined ? ` namespace ${namespace}` : ''}`
  })
  return [...new Set(names)]
}

function readSysfsAttribute(directory: string, file: string): string | undefined {
  return tolerateSystemErrors(() => readTextFile(`${directory}/${file}`).replace(/\n$/, ''))
}

// The file may be renamed between two attempts.
const MAX_LOOP_IMAGE_ATTEMPTS = 3

/** @param loop `loop0` @param offset of the shown part in the file */
function findLoopImageNames(loop: string, offset = '0'): BackingNames {
  for (let attempt = 0; attempt < MAX_LOOP_IMAGE_ATTEMPTS; attempt++) {
    const path = readSysfsAttribute(`/sys/block/${loop}`, 'loop/backing_file') ?? ''
    const found = tolerateSystemErrors(() => {
      const file = openLinkFree(path)
      using _ = deferDescriptorClose(file)
      const loopDevice = openLoopDeviceOfFile(file, loop)
      if (loopDevice === undefined) return undefined
      closeDescriptor(loopDevice.device)
      return readImageNames(file, viewHandleStat(file).keep())
    })
    if (found === undefined) continue
    return offset === '0' ? found : addSuffixToDeviceNames(found, ` from ${offset}`)
  }
  // The file was deleted, or is in a mount of another container, so modekeep cannot inspect it.
  return { shown: `an image that only ${loop} shows`, identities: ['image out of reach'] }
}

function readImageNames(file: Handle, { mode, inode, born }: Stat): BackingNames {
  if ((mode & FILE_TYPE_MASK) !== REGULAR_FILE_TYPE) return NO_BACKING_NAMES
  const systemNames = readFileSystemNames(file)
  const [systemName = ''] = systemNames
  const names = systemNames.map((name) => `image ${inode.toString(16)}-${born.toString(16)} ${name}`)
  // An attacker may have forged the outer image together with this one.
  const outerBacking = findBackingStorage(file)
  const birthText = born === 0n ? '' : `, made ${new Date(Number(born / 1_000_000n)).toISOString()}`
  const facts = `inode ${inode}${birthText}${systemName && `, file system ${systemName}`}`
  const shown = `image ${quoteValue(linuxInodes.pathOf(file))} (${facts})`
  const [identities = [], former = []] = isImageFileBacking(outerBacking)
    ? [outerBacking.identities.map((outer) => `${names[0]} in ${outer}`), combineImageNames(names, outerBacking)]
    : [names.slice(0, 1), names.slice(1)]
  return { shown: isImageFileBacking(outerBacking) ? `${shown} in ${outerBacking.shown}` : shown, identities, former }
}

/** Lists all names under which an image in another image may have been recorded. */
function combineImageNames(names: readonly string[], { identities, former = [] }: BackingNames): string[] {
  return names.flatMap((name) => [...identities, ...former].map((outer) => `${name} in ${outer}`))
}

/** Names an image's file system: first the name to record, then those that earlier versions recorded. */
function readFileSystemNames(file: Handle): string[] {
  const { type, id } = statFs(file, 'an image')
  if (type === FUSE_SUPER_MAGIC) return [id]
  const readable = fs.openSync(formatFdPath(file), fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  using _ = deferDescriptorClose(readable)
  if (type === BTRFS_SUPER_MAGIC) return [...new Set([linuxInodes.fileSystemId(file).split('.')[1] ?? id, id])]
  const uuid = readUuidByIoctl(readable, type, 'an image')?.toString('hex')
  // f_fsid of xfs is the number of its device. f_fsid of ext4 is its folded UUID.
  const names = type === XFS_SUPER_MAGIC ? [uuid, ''] : type === EXT4_SUPER_MAGIC ? [id, uuid] : [uuid, id]
  return names.filter((name) => name !== undefined)
}
