import type { FsGroupRequest } from '../config/mount-request.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import {
  deferHandleClose,
  getErrno,
  type Handle,
  type Host,
  type MountFlags,
  useHandleOrClose,
} from '../kernel/host.ts'
import { readFileSystemType, snapshotMountTable } from '../kernel/mount-table/mountinfo.ts'
import { createPathLookups } from '../kernel/mount-table/responsiveness.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import type { Session } from '../state/session.ts'
import { explainOtherDisk, refuseOtherDisk } from '../state/volume-disk.ts'
import { isTextVolumeId } from '../state/volume-id.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { hasVolumeJournal, isJournalEmpty } from '../state/volume-journal.ts'
import { volumeRecords } from '../state/volume-record.ts'
import {
  DIRECTORY_REQUIREMENT,
  isPathOverlappingRecords,
  leadsToProtectedPlace,
  listProtectedFilePlaces,
  listProtectedRecordPlaces,
  openNodeSourceWithLookups,
} from '../volume/kind/source-path.ts'
import { applyGroupToVolume, type FsGroupTarget } from './apply-to-volume.ts'
import {
  findOtherVolumeUsers,
  listVolumeUsers,
  type OtherVolumeUsers,
  readGroupOnDisk,
  reserveVolume,
} from './holders.ts'
import { restoreVolumeTree } from './restore-volume.ts'

/** A directory of the node as a volume, with a detached mount that shows the same inodes as a pod's mount. */
export interface NodeDirectoryVolume {
  directory: string
  volume: string
  tree: Handle
  fsType: string | undefined
  /** Log or configuration file of modekeep in the directory. */
  ownFile?: { what: string; file: string } | undefined
}

/**
 * Opens the directory that an operator names. Rules are not checked, because they restrict pods, not root. Close `tree`
 * when done.
 * @param directory absolute and normalized
 * @param flags of the detached mount
 * @param known identity of the volume that was found at the directory
 * @throws {Refusal} if it is no directory, has a link in its path, is another volume or contains modekeep's records; if
 * its server or daemon does not respond
 */
export async function openNodeDirectoryVolume(
  session: Session,
  directory: string,
  flags: MountFlags,
  known?: string,
): Promise<NodeDirectoryVolume> {
  const { host, config } = session
  if (isPathOverlappingRecords(directory, config)) {
    throw createOwnRecordsRefusal(directory, config)
  }
  const requirement = { ...DIRECTORY_REQUIREMENT, what: 'directory' }
  const { handle, stat } = await openNodeSourceWithLookups(createPathLookups(session), host, directory, requirement)
  using _ = deferHandleClose(host.inodes, handle)
  const table = snapshotMountTable(host)
  if (leadsToProtectedPlace(host, table, handle, listProtectedRecordPlaces(config)))
    throw createOwnRecordsRefusal(directory, config)
  const ownFile = listProtectedFilePlaces(config).find(({ place }) => leadsToProtectedPlace(host, table, handle, place))
  // The root of a server's volume does not identify it.
  const volume = known !== undefined && isTextVolumeId(known) ? known : resolveVolumeIdentity(session, handle, stat)
  if (known !== undefined && volume !== known) {
    throw Refusal.of(
      'volume-unknown',
      `directory ${quoteValue(directory)} was exchanged while it was opened`,
      'call this again',
    )
  }
  // The mount table has no row for the detached mount, so the type is read from the directory.
  const tree = createDetachedMount(host, handle, flags)
  return { directory, volume, tree, fsType: readFileSystemType(host, handle), ownFile }
}

function createOwnRecordsRefusal(directory: string, { stateDir }: Session['config']): Refusal {
  return Refusal.of(
    'source-protected',
    `directory ${quoteValue(directory)} holds modekeep's own records (below ${stateDir})`,
    'name another directory',
  )
}

function createDetachedMount({ inodes, mounts }: Host, directory: Handle, flags: MountFlags): Handle {
  let tree: Handle
  try {
    tree = mounts.cloneTree(directory)
  } catch (error) {
    if (getErrno(error) !== 'EPERM') throw error
    throw Refusal.of(
      'mount-namespace',
      'it needs a mount of its own to look at a volume, and this process may not make one',
      'run it on the node',
    )
  }
  return useHandleOrClose(inodes, tree, () => {
    mounts.setFlags(tree, flags)
    return tree
  })
}

/** Describes the volume without a mount directory, so that no mount is excluded from the search for other users. */
export const createFsGroupTarget = ({ directory, volume }: NodeDirectoryVolume): FsGroupTarget => ({
  volume,
  source: directory,
  restoreOnUnmount: false,
  setsBaseline: true,
})

/**
 * Walks a directory as a mount does, without the mount: with the same lock, records, journal and conflicts.
 * @returns the report of the walk; undefined if the root has the group already
 * @throws {Refusal} if a mount with another group uses the volume or a part of it
 */
export async function applyGroupToNodeDirectory(
  session: Session,
  opened: NodeDirectoryVolume,
  fsGroup: FsGroupRequest,
): Promise<WalkReport | undefined> {
  const { lock, report } = await applyGroupToVolume(session, opened.tree, fsGroup, createFsGroupTarget(opened))
  lock.dispose()
  return report
}

export interface NodeDirectoryRestoreResult {
  outcome: 'nothing recorded' | 'restored' | 'partly restored' | 'unfinished'
  /** Number of inodes that stay as users changed them. */
  kept?: number
  report?: WalkReport
  /** Reason why the records are of another disk, although a forced restore used them for this one. */
  otherDisk?: string | undefined
}

const NOTHING_RECORDED_RESULT: NodeDirectoryRestoreResult = { outcome: 'nothing recorded' }

/**
 * Restores the inodes of a volume that walks changed, whether or not a pod requested a restore.
 * @param isForced also restores inodes that users changed since, also on another disk than the walked one
 * @returns `nothing recorded`: no walk is recorded; `partly restored`: except for inodes that users changed since;
 * `unfinished`: other inodes could not be restored
 * @throws {Refusal} that names the pod whose walked mount shows the volume or a part of it, or names the other disk
 */
export async function restoreNodeDirectory(
  session: Session,
  { directory, volume, tree }: NodeDirectoryVolume,
  isForced = false,
): Promise<NodeDirectoryRestoreResult> {
  // Checked before the lock is taken, because that creates a record directory of the volume.
  if (!volumeRecords.has(session, volume) && !hasVolumeJournal(session, volume)) return NOTHING_RECORDED_RESULT
  using _ = await reserveVolume(session, { volume, source: directory }, undefined, refuseVolumeInUse)
  const record = volumeRecords.readUnlessDamaged(session, volume)
  // Everything was restored before.
  if (!record && isJournalEmpty(session, volume, volumeRecords.has(session, volume))) return NOTHING_RECORDED_RESULT
  if (!isForced) refuseOtherDisk(session, volume, tree)
  const other = isForced ? explainOtherDisk(session, volume, tree) : undefined
  if (other !== undefined) session.warn(other, 'identity-twice')
  const about = { volume, source: directory, isDisk: false }
  const { isDone, kept, report } = await restoreVolumeTree(session, tree, about, record, { isForced })
  const outcome = !isDone ? 'unfinished' : kept > 0 ? 'partly restored' : 'restored'
  return { outcome, kept, report, otherDisk: other }
}

/** Checks whether a restore is possible now. @throws {Refusal} like `restoreNodeDirectory` */
export function refuseNodeDirectoryRestore(
  session: Session,
  { directory, volume, tree }: NodeDirectoryVolume,
  isForced = false,
): void {
  refuseVolumeInUse(findOtherVolumeUsers(session, { volume, source: directory }, undefined))
  if (!isForced) refuseOtherDisk(session, volume, tree)
}

function refuseVolumeInUse(others: OtherVolumeUsers): void {
  const [lost] = others.lost
  if (lost) {
    throw Refusal.of(
      'mount-unrecorded',
      `a pod uses it (${lost.directory}), and the record of that mount is lost, so a restore may take its group from it`,
      'delete that pod first',
    )
  }
  const holder = listVolumeUsers(others).find((other) => readGroupOnDisk(other) !== undefined)
  if (holder === undefined) return
  throw Refusal.of(
    'restore-in-use',
    `pod ${holder.pod ?? '(unnamed)'} uses ${holder.source} (${holder.directory}) with group ${readGroupOnDisk(holder)} on disk, ` +
      'which a restore would take from it',
    'delete that pod first',
  )
}
