import { parseSource } from '../config/source.ts'
import { createFault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { formatDeviceId, type Handle, type Host, type Stat } from '../kernel/host.ts'
import { type MountRow, parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import {
  createLocalPathCheck,
  createPathLookups,
  createUnresponsiveRefusal,
  type PathLookups,
} from '../kernel/mount-table/responsiveness.ts'
import { createMountFinder } from '../kernel/mount-table/tree-location.ts'
import { listReadableMountRecords } from './mount-record.ts'
import type { Session } from './session.ts'
import { explainOtherDisk, explainOtherSourceDisk } from './volume-disk.ts'
import { formatVolumeId, isSameVolumeRoot, isTextVolumeId, parseRootVolumeId } from './volume-id.ts'
import { computeTextVolumeId, computeVolumeNames, resolveVolumeIdentity } from './volume-identity.ts'
import { hasVolumeJournal } from './volume-journal.ts'
import { explainVolumeAbsence, findVolumeNameNotice, inspectPath } from './volume-notices.ts'
import { volumeRecords } from './volume-record.ts'

/** Path of a volume. If none was found, the first path that may lead to it and whose server does not respond. */
export interface VolumeLocation {
  path: string
  isSilent: boolean
}

/**
 * Finds the current path of a volume: a recorded source, or any mount that shows it and has no id map.
 * @returns an absolute path that leads to the volume's root
 * @throws {Refusal} if no path leads to it, or a server or a daemon that may have it does not respond
 */
export async function findVolumePath(session: Session, volume: string): Promise<string> {
  const lookups = createPathLookups(session)
  // The second search accepts another disk with the same identity: opening it reports the difference.
  const found = (await locateVolume(session, volume, lookups)) ?? (await locateVolume(session, volume, lookups, true))
  if (found?.isSilent) throw createUnresponsiveRefusal(found.path)
  if (found !== undefined) return found.path
  const [source] = listRecordedSources(session, volume)
  if (source !== undefined) {
    const notice = await findVolumeNameNotice(session, { volume, source }, lookups)
    if (notice !== undefined && notice.state !== 'used') throw Refusal.of('records-former', notice.text)
    const { text, alternative } = await explainVolumeAbsence(session, volume, source, lookups)
    throw Refusal.of(
      'volume-unknown',
      `volume ${volume} cannot be found`,
      `${text}, then call this again; ${alternative}`,
    )
  }
  throw new Refusal(
    hasVolumeJournal(session, volume) || volumeRecords.has(session, volume)
      ? createFault(
          'volume-unknown',
          `the path of volume ${volume} is not recorded or cannot be read`,
          `give its directory instead, "modekeep restore DIR"`,
        )
      : createFault(
          'volume-unknown',
          `nothing is recorded of volume ${volume}`,
          `"modekeep status" names those that are`,
        ),
  )
}

/**
 * Like `findVolumePath`, but returns undefined if no path leads to the volume.
 * @param isAny also accepts a file system with the volume's identity on another disk than the recorded one
 * @param source another path that may lead to it: absolute and normalized
 */
export async function locateVolume(
  session: Session,
  volume: string,
  lookups: PathLookups,
  isAny = false,
  source?: string,
): Promise<VolumeLocation | undefined> {
  let unresponsive: VolumeLocation | undefined
  for (const { path, isIt } of listVolumePathCandidates(session, volume, isAny, source)) {
    const found = await inspectPath(session.host, lookups, path, (handle) =>
      isIt(handle, session.host.inodes.statMountPoint(handle)),
    )
    if (found === 'silent') unresponsive ??= { path, isSilent: true }
    else if (found) return { path, isSilent: false }
  }
  return unresponsive
}

/** A path that may lead to a volume, with a check whether the inode there is the volume's root. */
interface VolumePathCandidate {
  path: string
  isIt(handle: Handle, stat: Stat): boolean
}

function* listVolumePathCandidates(
  session: Session,
  volume: string,
  isAny: boolean,
  source: string | undefined,
): Generator<VolumePathCandidate> {
  const { host } = session
  const isText = isTextVolumeId(volume)
  const sources = isText ? [] : [...(source === undefined ? [] : [source]), ...listRecordedSources(session, volume)]
  const isRoot = (handle: Handle, stat: Stat) => isVolumeRoot(session, handle, stat, volume, isAny)
  for (const path of sources) yield { path, isIt: isRoot }
  const table = host.mounts.table()
  const isReadOnly = ({ options }: MountRow) => Number(options.includes('ro'))
  const rows = parseMountinfo(table)
    .filter((row) => !row.options.includes('idmapped'))
    .sort((one, other) => isReadOnly(one) - isReadOnly(other))
  const mayShow = isText
    ? (row: MountRow) => hasMountTextIdentity(row, volume)
    : createLocalMountFilter(host, table, sources)
  for (const row of rows.filter(mayShow)) {
    yield { path: row.mountPoint, isIt: isText ? (_, stat) => isTopmostMount(row, stat) : isRoot }
  }
}

/**
 * Returns a filter for mounts of local file systems, and of the file systems that the paths lead to. Other servers are
 * not accessed, because there may be many, and any user may run them.
 */
function createLocalMountFilter(host: Host, table: string, paths: readonly string[]): (row: MountRow) => boolean {
  const [isLocal, mountsTo] = [createLocalPathCheck(host), createMountFinder(table)]
  const devices = new Set(paths.map((path) => mountsTo(path).at(-1)?.device))
  return ({ mountPoint, device }) => isLocal(mountPoint) || devices.has(device)
}

/**
 * Explains why the disk at a volume's path, mounted or not, is not the recorded one. Returns undefined if it may be the
 * recorded one, if nothing is there, or if it does not respond.
 */
export async function explainOtherDiskAtPath(
  session: Session,
  volume: string,
  lookups: PathLookups,
): Promise<string | undefined> {
  // A server's volume has no disk.
  if (isTextVolumeId(volume) || (await locateVolume(session, volume, lookups))) return undefined
  const mounted = await locateVolume(session, volume, lookups, true)
  const explain = mounted === undefined ? explainOtherSourceDisk : explainOtherDisk
  for (const path of mounted === undefined ? listRecordedSources(session, volume) : [mounted.path]) {
    const other = await inspectPath(session.host, lookups, path, (handle) => explain(session, volume, handle))
    if (other !== undefined && other !== 'silent') return other
  }
  return undefined
}

/**
 * Lists the identities that a directory may have as a volume. The current one is first, then the one by f_fsid, then
 * those of a server's export that is mounted there.
 */
export function listVolumeIdentitiesAt(session: Session, directory: string, handle: Handle): string[] {
  const { host } = session
  const stat = host.inodes.statMountPoint(handle)
  const rows = parseMountinfo(host.mounts.table()).filter(
    (row) => row.mountPoint === directory && row.root === '/' && isTopmostMount(row, stat),
  )
  const byText = rows.flatMap(computeTextVolumeIds)
  const root = host.inodes.stat(handle)
  const { former } = computeVolumeNames(host, handle, root)
  const byFsid = former === undefined ? [] : [formatVolumeId(former)]
  return [...new Set([resolveVolumeIdentity(session, handle, root), ...byFsid, ...byText])]
}

/** Lists the recorded source paths of a volume. */
function listRecordedSources(session: Session, volume: string): string[] {
  const record = volumeRecords.readUnlessDamaged(session, volume)
  const mounts = listReadableMountRecords(session).filter((mount) => mount.volume === volume)
  return [...(record ? [record] : []), ...mounts].flatMap(({ source }) => source ?? [])
}

/** Returns whether a handle is the root of a volume. */
function isVolumeRoot(session: Session, handle: Handle, stat: Stat, volume: string, isAny: boolean): boolean {
  const id = parseRootVolumeId(volume)
  // Reading the file system's id may block, so it comes last. A copy-up changes the birth times of an overlay.
  const isLike = isSameVolumeRoot(id, stat) || isSameVolumeRoot(id, { ...stat, born: 0n })
  if (!isLike || resolveVolumeIdentity(session, handle, session.host.inodes.stat(handle)) !== volume) return false
  return isAny || explainOtherDisk(session, volume, handle) === undefined
}

const NFS_FILE_SYSTEM_TYPES = ['nfs', 'nfs4']

/**
 * Returns whether a mount has the identity of a server's volume, which is derived from the text of its source. The
 * mount table may show either type of NFS as the other. On other types the text is arbitrary, so the type must be the
 * same.
 */
function hasMountTextIdentity({ root, ...row }: MountRow, volume: string): boolean {
  return root === '/' && computeTextVolumeIds(row).includes(volume)
}

function computeTextVolumeIds({ fsType, source }: Pick<MountRow, 'fsType' | 'source'>): string[] {
  const kinds = NFS_FILE_SYSTEM_TYPES.includes(fsType) ? NFS_FILE_SYSTEM_TYPES : [fsType]
  return kinds.map((kind) => computeTextVolumeId({ fsType: kind, source: parseSource(source) }))
}

/** Returns whether a mount is the topmost one at its mount point. */
function isTopmostMount({ device }: MountRow, { mountRoot, device: at }: Stat): boolean {
  return mountRoot && formatDeviceId(at) === device
}
