import type { MountRequest } from '../config/mount-request.ts'
import { formatSource } from '../config/source.ts'
import { Refusal } from '../errors/refusal.ts'
import type { Handle, Host, Stat } from '../kernel/host.ts'
import {
  JOURNAL_FILE,
  listVolumesWithRecords,
  locateVolumeRecords,
  RECORD_FILE,
  type Store,
} from './record-directories.ts'
import { compareWithRecordedDisk, readBackingDisk } from './volume-disk.ts'
import {
  createRootVolumeId,
  FILE_SYSTEM_MAGICS,
  formatVolumeId,
  isSameVolumeRoot,
  parseFileSystemMagic,
  parseRootVolumeId,
  type RootVolumeId,
} from './volume-id.ts'
import { volumeRecords } from './volume-record.ts'

/** Identities of a volume's root, by both names of its file system. */
export interface VolumeNames {
  /** By the file system's stable id; by f_fsid if it has none. */
  now: RootVolumeId
  /** By f_fsid, as recorded without the UUID. Undefined if it is the same, or does not identify the volume. */
  former: RootVolumeId | undefined
}

export function computeVolumeNames({ inodes }: Pick<Host, 'inodes'>, root: Handle, stat: Stat): VolumeNames {
  const [id, former] = [inodes.fileSystemId(root), inodes.formerFileSystemId(root)]
  const now = createRootVolumeId(id, stat)
  if (former === undefined || former === id) return { now, former: undefined }
  const older = createRootVolumeId(former, stat)
  // Roots have the same inode number everywhere: without a birth time, another root could have the same f_fsid.
  return { now, former: stat.born !== 0n || isFsidFoldedUuid(older, now) ? older : undefined }
}

/** Returns whether an f_fsid is the XOR of the halves of a UUID (fs/ext4/super.c), and so as good as the UUID. */
function isFsidFoldedUuid(fsid: RootVolumeId, { kind, fileSystem: uuid }: RootVolumeId): boolean {
  if (kind !== 'uuid' || uuid.length !== 32 || parseFileSystemMagic(fsid) !== FILE_SYSTEM_MAGICS.ext4) return false
  const half = (from: number) => BigInt(`0x${uuid.slice(from, from + 16)}`)
  return fsid.fileSystem.endsWith((half(0) ^ half(16)).toString(16).padStart(16, '0'))
}

/** File systems whose f_fsid does not depend on the number of a device. */
const STABLE_FSID_MAGICS: ReadonlySet<string> = new Set([
  FILE_SYSTEM_MAGICS.btrfs,
  FILE_SYSTEM_MAGICS.ext4,
  FILE_SYSTEM_MAGICS.overlay,
  FILE_SYSTEM_MAGICS.tmpfs,
  FILE_SYSTEM_MAGICS.zfs,
])

/**
 * Returns the name of a volume, which does not depend on the boot, the device or the path. A volume that is recorded
 * under an older name keeps that name until it is restored, so that records are never moved.
 */
export function resolveVolumeIdentity(store: Store, root: Handle, stat: Stat): string {
  const { now, former } = computeVolumeNames(store.host, root, stat)
  const name = formatVolumeId(now)
  const byFsid = former ?? (now.kind === 'fsid' ? now : computeFsidVolumeId(store, root, stat))
  const magic = byFsid && parseFileSystemMagic(byFsid)
  if (magic === undefined || STABLE_FSID_MAGICS.has(magic)) {
    const older = former && formatVolumeId(former)
    if (older !== undefined) return isVolumeRecorded(store, older) && !isVolumeRecorded(store, name) ? older : name
    return (magic === FILE_SYSTEM_MAGICS.ext4 && findRecordedUuidName(store, now)) || name
  }
  if (now.kind === 'uuid' && isVolumeRecorded(store, name)) return name
  return findRecordedOlderName(store, root, stat, now, magic) ?? name
}

function computeFsidVolumeId({ host }: Store, root: Handle, stat: Stat): RootVolumeId | undefined {
  const fsid = host.inodes.formerFileSystemId(root)
  return fsid === undefined ? undefined : createRootVolumeId(fsid, stat)
}

/** Lists the recorded volumes whose root has the inode number and the birth time of this one. */
function listRecordedVolumesWithRootInode(
  store: Store,
  root: RootVolumeId,
  matches: (id: RootVolumeId) => boolean,
): string[] {
  return listVolumesWithRecords(store).filter((volume) => {
    const id = parseRootVolumeId(volume)
    return id !== undefined && isSameVolumeRoot(id, root) && matches(id) && isVolumeRecorded(store, volume)
  })
}

/** Finds the records of a volume on ext4 under the UUID that a newer kernel reported. */
function findRecordedUuidName(store: Store, now: RootVolumeId): string | undefined {
  return isVolumeRecorded(store, formatVolumeId(now))
    ? undefined
    : listRecordedVolumesWithRootInode(store, now, (id) => isFsidFoldedUuid(now, id))[0]
}

/**
 * Finds the records of a volume under a name that it had on another device. Only names by f_fsid change with the
 * device; a UUID is an older name only where the kernel reports none now.
 * @param magic of its file system's type
 */
function findRecordedOlderName(
  store: Store,
  root: Handle,
  stat: Stat,
  now: RootVolumeId,
  magic: string,
): string | undefined {
  const mayBeOlder = (id: RootVolumeId) =>
    parseFileSystemMagic(id) === magic || (now.kind === 'fsid' && id.kind === 'uuid')
  const recorded = listRecordedVolumesWithRootInode(store, now, mayBeOlder)
  if (recorded.length === 0) return undefined
  const disk = readBackingDisk(store, root)
  const rated = recorded.map((volume) => ({ volume, disk: compareWithRecordedDisk(store, volume, disk) }))
  const same = rated.filter((name) => name.disk === 'same').map(({ volume }) => volume)
  if (same.length > 0) return findNewestRecordedName(store, same)
  const name = formatVolumeId(now)
  if (recorded.includes(name)) return name
  // A birth time has nanoseconds, so the root is probably the same. A UUID may be of another type of file system.
  // Without a birth time, earlier versions used the device number alone.
  const byFsid = computeFsidVolumeId(store, root, stat)
  const byDevice = byFsid && formatVolumeId(byFsid)
  const mayBeSame = (volume: string) =>
    stat.born === 0n ? volume === byDevice : parseRootVolumeId(volume)?.kind === 'fsid'
  const unknown = rated.filter(({ volume, disk }) => disk === 'unknown' && mayBeSame(volume))
  if (unknown.length > 0)
    return findNewestRecordedName(
      store,
      unknown.map(({ volume }) => volume),
    )
  return recorded.find((volume) => mayRecordedWalkHaveAppliedGroup(store, volume, stat))
}

/**
 * Returns whether the walk of these records may have applied the current groups of a volume. Then the records are used,
 * and the caller learns that the disk is another one. A walk changes the root last, so the root's group does not show
 * an incomplete walk.
 */
function mayRecordedWalkHaveAppliedGroup(store: Store, volume: string, root: Stat): boolean {
  const record = volumeRecords.readUnlessDamaged(store, volume)
  return record === undefined || !record.complete || record.group === root.gid
}

/** Returns the name recorded last: its records have, as original groups, those that earlier walks applied. */
function findNewestRecordedName(store: Store, volumes: readonly string[]): string | undefined {
  const born = (volume: string) => store.host.files.born(locateVolumeRecords(store, volume).path) ?? 0
  return volumes.toSorted((one, other) => born(other) - born(one))[0]
}

/** Returns whether a record or a journal exists, readable or not. Opens neither, because most calls need this. */
export function isVolumeRecorded(store: Store, volume: string): boolean {
  const names = store.host.files.list(locateVolumeRecords(store, volume).path)
  return names.includes(RECORD_FILE) || names.includes(JOURNAL_FILE)
}

/**
 * Checks that a volume still has the name under which it was found. Call it under the volume's lock, where no other
 * call creates or removes its records.
 * @throws {Refusal} if another call removed the records since: two calls could hold different locks for one volume
 */
export function refuseRenamedVolume(store: Store, volume: string, root: Handle, source: string): void {
  const id = parseRootVolumeId(volume)
  // A stat may wait for the server of any other volume.
  if (id === undefined) return
  const stat = store.host.inodes.stat(root)
  // The tree of a volume may show another root than the volume's.
  if (!isSameVolumeRoot(id, stat)) return
  if (resolveVolumeIdentity(store, root, stat) === volume) return
  throw Refusal.of(
    'volume-unknown',
    `another call has restored ${source} meanwhile, so its volume has another name now`,
    'call this again',
  )
}

/** Returns the identity of a server's or daemon's volume, whose root does not identify it: a hash of the request. */
export function computeTextVolumeId({
  fsType,
  source,
  subPath,
}: Pick<MountRequest, 'fsType' | 'source' | 'subPath'>): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  const digest = createHash('sha256')
    .update([fsType, formatSource(source) ?? '', subPath ?? ''].join('\0'))
    .digest('hex')
  return formatVolumeId({ kind: 'text', digest: digest.slice(0, 40) })
}
