import type { Handle, Host, Stat } from '../host/host.ts'
import { Refusal } from '../refusal/refusal.ts'
import { JOURNAL_FILE, listVolumes, locateVolumeRecords, RECORD_FILE, type Store } from './record-directories.ts'
import { compareDisk, readDisk } from './volume-disk.ts'
import { isTextIdentity, volumeRecords } from './volume-record.ts'

/** Names of a volume, made of its file system's id and the inode number and birth time of its root. */
export interface VolumeNames {
  /** Name by the file system's stable id; by f_fsid if it has none. */
  now: string
  /** Name by f_fsid, as recorded without the UUID. Undefined if it is the same, or does not identify the volume. */
  former: string | undefined
}

export function computeVolumeNames({ inodes }: Pick<Host, 'inodes'>, root: Handle, stat: Stat): VolumeNames {
  const [id, former] = [inodes.fileSystemId(root), inodes.formerFileSystemId(root)]
  const createName = (fileSystem: string) => `${fileSystem}${formatRootSuffix(stat)}`
  // Roots have the same inode number everywhere: without a birth time, another root could have the same f_fsid.
  const hasFormer = former !== undefined && former !== id && (stat.born !== 0n || isFolded(former, id))
  return { now: createName(id), former: hasFormer ? createName(former) : undefined }
}

const formatRootSuffix = ({ inode, born }: Stat) => `-${inode.toString(16)}-${born.toString(16)}`

// include/uapi/linux/magic.h
const [BTRFS, EXT4, OVERLAYFS, TMPFS, ZFS] = ['9123683e', 'ef53', '794c7630', '1021994', '2fc12fc1']

/** Returns whether an f_fsid is the XOR of the halves of a UUID (fs/ext4/super.c), and so as good as the UUID. */
function isFolded(fsid: string, uuid: string): boolean {
  if (uuid.length !== 32 || !fsid.startsWith(`${EXT4}.`)) return false
  const half = (from: number) => BigInt(`0x${uuid.slice(from, from + 16)}`)
  return fsid.endsWith((half(0) ^ half(16)).toString(16).padStart(16, '0'))
}

/** File systems whose f_fsid does not depend on the number of a device. */
const HAVE_STABLE_FSID = new Set([BTRFS, EXT4, OVERLAYFS, TMPFS, ZFS])

/**
 * Returns the name of a volume, which does not depend on the boot, the device or the path. A volume that is recorded
 * under an older name keeps that name until it is restored, so that records are never moved.
 */
export function resolveVolumeIdentity(store: Store, root: Handle, stat: Stat): string {
  const { now, former } = computeVolumeNames(store.host, root, stat)
  const type = former ?? (now.includes('.') ? now : store.host.inodes.formerFileSystemId(root))
  const magic = type?.split('.')[0]
  if (magic === undefined || HAVE_STABLE_FSID.has(magic)) {
    if (former !== undefined) return isRecorded(store, former) && !isRecorded(store, now) ? former : now
    return (magic === EXT4 && findUuidName(store, stat, now)) || now
  }
  if (!now.includes('.') && isRecorded(store, now)) return now
  return findOlderName(store, root, stat, now, magic) ?? now
}

/** Finds the records of a volume on ext4 under the UUID that a newer kernel reported. */
function findUuidName(store: Store, stat: Stat, now: string): string | undefined {
  if (isRecorded(store, now)) return undefined
  const suffix = formatRootSuffix(stat)
  const fsid = now.slice(0, -suffix.length)
  const isUuidName = (volume: string) =>
    volume.endsWith(suffix) && isFolded(fsid, volume.slice(0, -suffix.length)) && isRecorded(store, volume)
  return listVolumes(store).find(isUuidName)
}

/**
 * Finds the records of a volume under a name that it had on another device. Only names by f_fsid change with the
 * device; a UUID is an older name only where the kernel reports none now.
 * @param magic of its file system's type
 */
function findOlderName(store: Store, root: Handle, stat: Stat, now: string, magic: string): string | undefined {
  const suffix = formatRootSuffix(stat)
  const mayBeOlder = (volume: string) => volume.startsWith(`${magic}.`) || (now.includes('.') && !volume.includes('.'))
  const recorded = listVolumes(store).filter(
    (volume) => volume.endsWith(suffix) && mayBeOlder(volume) && isRecorded(store, volume),
  )
  if (recorded.length === 0) return undefined
  const disk = readDisk(store, root)
  const rated = recorded.map((volume) => ({ volume, disk: compareDisk(store, volume, disk) }))
  const same = rated.filter((name) => name.disk === 'same').map(({ volume }) => volume)
  if (same.length > 0) return findNewest(store, same)
  if (recorded.includes(now)) return now
  // A birth time has nanoseconds, so the root is probably the same. A UUID may be of another type of file system.
  // Without a birth time, earlier versions used the device number alone.
  const byDevice = `${store.host.inodes.formerFileSystemId(root)}${suffix}`
  const mayBeSame = (volume: string) => (stat.born === 0n ? volume === byDevice : volume.includes('.'))
  const unknown = rated.filter((name) => name.disk === 'unknown' && mayBeSame(name.volume))
  if (unknown.length > 0)
    return findNewest(
      store,
      unknown.map(({ volume }) => volume),
    )
  return recorded.find((volume) => mayHaveApplied(store, volume, stat))
}

/**
 * Returns whether the walk of these records may have applied the current groups of a volume. Then the records are used,
 * and the caller learns that the disk is another one. A walk changes the root last, so the root's group does not show
 * an incomplete walk.
 */
function mayHaveApplied(store: Store, volume: string, root: Stat): boolean {
  const record = volumeRecords.readUnlessDamaged(store, volume)
  return record === undefined || !record.complete || record.group === root.gid
}

/** Returns the name recorded last: its records have, as original groups, those that earlier walks applied. */
function findNewest(store: Store, volumes: readonly string[]): string | undefined {
  const born = (volume: string) => store.host.files.born(locateVolumeRecords(store, volume).path) ?? 0
  return volumes.toSorted((one, other) => born(other) - born(one))[0]
}

/** Returns whether a record or a journal exists, readable or not. Opens neither, because most calls need this. */
export function isRecorded(store: Store, volume: string): boolean {
  const names = store.host.files.list(locateVolumeRecords(store, volume).path)
  return names.includes(RECORD_FILE) || names.includes(JOURNAL_FILE)
}

/**
 * Checks that a volume still has the name under which it was found. Call it under the volume's lock, where no other
 * call creates or removes its records.
 * @throws {Refusal} if another call removed the records since: two calls could hold different locks for one volume
 */
export function refuseRenamed(store: Store, volume: string, root: Handle, source: string): void {
  if (isTextIdentity(volume)) return
  const stat = store.host.inodes.stat(root)
  // The tree of a volume may show another root than the volume's.
  if (!volume.endsWith(formatRootSuffix(stat))) return
  if (resolveVolumeIdentity(store, root, stat) === volume) return
  throw new Refusal(`another call has put ${source} back meanwhile, so it has another name on record: call this again`)
}
