import type { Handle, Host, Stat } from '../host/host.ts'
import { Refusal } from '../refusal/refusal.ts'
import { JOURNAL_FILE, listVolumes, RECORD_FILE, type Store, volumePlace } from './places.ts'
import { compareDisk, diskUnder } from './volume-disk.ts'
import { isTextIdentity, volumeRecords } from './volume-record.ts'

/** The names of a volume by its root: file system id, inode, birth time. */
export interface Names {
  /** By the file system's stable name; by f_fsid where it has none. */
  now: string
  /** By f_fsid, as kernels and versions that read no UUID recorded it. Undefined where that is the same or no name. */
  former: string | undefined
}

export function namesOf({ inodes }: Pick<Host, 'inodes'>, root: Handle, stat: Stat): Names {
  const [id, former] = [inodes.fileSystemId(root), inodes.formerFileSystemId(root)]
  const named = (fileSystem: string) => `${fileSystem}${rootSuffix(stat)}`
  // Root inodes are alike everywhere: without its birth time another file system's root could have the same f_fsid.
  const hasFormer = former !== undefined && former !== id && (stat.born !== 0n || isFolded(former, id))
  return { now: named(id), former: hasFormer ? named(former) : undefined }
}

const rootSuffix = ({ inode, born }: Stat) => `-${inode.toString(16)}-${born.toString(16)}`

// include/uapi/linux/magic.h
const [BTRFS, EXT4, OVERLAYFS, TMPFS, ZFS] = ['9123683e', 'ef53', '794c7630', '1021994', '2fc12fc1']

/** Whether an f_fsid is the halves of a UUID, combined by XOR (fs/ext4/super.c): it is as good a name as the UUID. */
function isFolded(fsid: string, uuid: string): boolean {
  if (uuid.length !== 32 || !fsid.startsWith(`${EXT4}.`)) return false
  const half = (from: number) => BigInt(`0x${uuid.slice(from, from + 16)}`)
  return fsid.endsWith((half(0) ^ half(16)).toString(16).padStart(16, '0'))
}

/** File systems whose f_fsid does not depend on the number of a device. */
const HAVE_STABLE_FSID = new Set([BTRFS, EXT4, OVERLAYFS, TMPFS, ZFS])

/**
 * Names a volume across reboots, devices and whatever path leads to it. A volume that has records under an older name
 * keeps that name until it is restored: a name lasts as long as its records, and nothing is moved.
 */
export function volumeIdentity(store: Store, root: Handle, stat: Stat): string {
  const { now, former } = namesOf(store.host, root, stat)
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
  const suffix = rootSuffix(stat)
  const fsid = now.slice(0, -suffix.length)
  const isUuidName = (volume: string) =>
    volume.endsWith(suffix) && isFolded(fsid, volume.slice(0, -suffix.length)) && isRecorded(store, volume)
  return listVolumes(store).find(isUuidName)
}

/**
 * Finds the records of a volume under a name that it had on another device. Only names by f_fsid change with the device;
 * a UUID is an older name only where the kernel reports none now.
 * @param magic of its file system's type
 */
function findOlderName(store: Store, root: Handle, stat: Stat, now: string, magic: string): string | undefined {
  const suffix = rootSuffix(stat)
  const mayBeOlder = (volume: string) => volume.startsWith(`${magic}.`) || (now.includes('.') && !volume.includes('.'))
  const recorded = listVolumes(store).filter(
    (volume) => volume.endsWith(suffix) && mayBeOlder(volume) && isRecorded(store, volume),
  )
  if (recorded.length === 0) return undefined
  const disk = diskUnder(store, root)
  const rated = recorded.map((volume) => ({ volume, disk: compareDisk(store, volume, disk) }))
  const same = rated.filter((name) => name.disk === 'same').map(({ volume }) => volume)
  if (same.length > 0) return findNewest(store, same)
  if (recorded.includes(now)) return now
  // The birth time has nanoseconds. A UUID may be another type's. Without a birth time, earlier versions used the
  // device number alone.
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
 * Whether the groups of a volume may be modekeep's own by these records. Then they are used, and the caller learns that
 * the disk is another one. A walk changes the root last, so an unfinished one does not show in the root's group.
 */
function mayHaveApplied(store: Store, volume: string, root: Stat): boolean {
  const record = volumeRecords.readUnlessDamaged(store, volume)
  return record === undefined || !record.complete || record.group === root.gid
}

/** The name that was recorded last: its records have the groups that the earlier ones gave as the original. */
function findNewest(store: Store, volumes: readonly string[]): string | undefined {
  const born = (volume: string) => store.host.files.born(volumePlace(store, volume).path) ?? 0
  return volumes.toSorted((one, other) => born(other) - born(one))[0]
}

/** Whether a record or a journal is there, also where nobody can tell what it says. Opens neither: most calls ask. */
export function isRecorded(store: Store, volume: string): boolean {
  const names = store.host.files.list(volumePlace(store, volume).path)
  return names.includes(RECORD_FILE) || names.includes(JOURNAL_FILE)
}

/**
 * Under the lock of a volume nobody else begins or ends its records, so its name is what it was when it was looked for,
 * or another call has ended them since. Two calls would then have two locks for one volume.
 * @throws {Refusal}
 */
export function refuseRenamed(store: Store, volume: string, root: Handle, source: string): void {
  if (isTextIdentity(volume)) return
  const stat = store.host.inodes.stat(root)
  // A volume's tree may show a root that is not its own.
  if (!volume.endsWith(rootSuffix(stat))) return
  if (volumeIdentity(store, root, stat) === volume) return
  throw new Refusal(`another call has put ${source} back meanwhile, so it has another name on record: call this again`)
}
