import { formatSource } from '../config/source.ts'
import { createFault } from '../errors/fault.ts'
import { quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, type Handle, useHandleOrClose } from '../kernel/host.ts'
import {
  createPathLookups,
  createUnresponsiveFault,
  isLocalPath,
  isUnresponsivePath,
} from '../kernel/mount-table/responsiveness.ts'
import { resolveTreeLocation } from '../kernel/mount-table/tree-location.ts'
import type { WalkReport } from '../ownership/walk/report.ts'
import { type MountRecord, rebuildMountRequest } from '../state/mount-record.ts'
import type { Session } from '../state/session.ts'
import { refuseOtherDisk } from '../state/volume-disk.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { type VolumeRecord, volumeRecords } from '../state/volume-record.ts'
import { createDetachedTree } from '../volume/detached-tree.ts'
import { findVolumeKind } from '../volume/index.ts'
import { openNodeSource, openNodeSourceWithLookups } from '../volume/kind/source-path.ts'
import { assertSourceResponsive, needsIsolatedMount } from '../volume/unresponsive-source.ts'
import { refuseGivenUpCall } from '../worker/given-up.ts'
import { runIsolatedWork } from '../worker/isolated.ts'
import { listVolumeUsers, type OtherVolumeUsers, reserveVolume, type VolumeUser } from './holders.ts'
import { type WalkTargetVolume, walkVolume } from './walk-volume.ts'

/** Another mount of the volume exists or is being made, and its unmount will run the restore. */
class VolumeInUse extends Error {}

/**
 * Restores the volume of a mount, if a restore is pending and no other mount of the volume exists. A restore that is
 * not possible now stays pending until the next unmount of the volume.
 * @throws {Refusal} if the source is missing, is another volume now, or is on another disk
 */
export async function restoreVolume(session: Session, mount: MountRecord): Promise<void> {
  const { volume, source, directory } = mount
  if (volume === undefined || source === undefined) return
  if (!volumeRecords.read(session, volume)?.restorePending) return
  refuseGivenUpCall(session, volume)
  const { host } = session
  await assertSourceResponsive(session, mount.request)
  // Links in the requested source may have led to another server.
  if (await isUnresponsivePath(session, source))
    throw new Refusal(createUnresponsiveFault(`source ${quoteValue(source)}`, 'it is put back'))
  if (needsIsolatedMount(session, mount.request) || (!session.mayHang && !isLocalPath(host, source))) {
    const givenUp = (seconds: number, waiting: string) =>
      createFault(
        'unresponsive-call',
        `source ${quoteValue(source)} does not respond any more, so it was given up after ${seconds} s`,
        `repair the server or the daemon of its file system${waiting}`,
      )
    return runIsolatedWork(session, { work: 'restore', about: mount, givenUp })
  }
  const disk = await mountDiskDetached(session, volume, mount)
  using _disk = deferHandleClose(host.inodes, disk)
  const location = disk === undefined ? undefined : resolveTreeLocation(host, disk)
  const device = disk && host.inodes.statMountPoint(disk).device
  const refuse = (others: OtherVolumeUsers) => {
    const [holder] = listVolumeUsers(others).filter((user) => !isDiskCopyMount(user, device))
    const other = holder ?? others.lost[0]
    if (other) throw new VolumeInUse(`pending until ${other.directory} is unmounted and the volume is unmounted again`)
  }
  using lock = await reserveVolume(session, { volume, source, location, pod: mount.pod }, directory, refuse).catch(
    (error) => {
      if (!(error instanceof VolumeInUse)) throw error
      session.note({ restore: error.message })
      return undefined
    },
  )
  const record = lock && volumeRecords.read(session, volume)
  if (!record?.restorePending) return
  const tree = disk ?? (await openVolumeTree(session, volume, source))
  using _tree = deferHandleClose(host.inodes, disk === undefined ? tree : undefined)
  refuseOtherDisk(session, volume, tree)
  const isDisk = findVolumeKind(mount.request.fsType)?.root === 'file system'
  await restoreVolumeTree(session, tree, { volume, source, isDisk }, record, {
    toBaseline: record.baseline !== undefined,
  })
}

/** Returns whether a mount shows a copy of the restored disk: the same identity on another device. */
function isDiskCopyMount(holder: VolumeUser, device: number | undefined): boolean {
  if (device === undefined || !('mounted' in holder) || holder.mounted === undefined) return false
  return holder.mounted.device !== device
}

/** Runs a restore in a worker process, because a server may never respond. */
export function restoreVolumeForCaller(session: Session, _: Handle, mount: MountRecord): Promise<void> {
  return restoreVolume(session, mount)
}

/**
 * Mounts a disk again as a detached tree, because no directory of the node shows it, and no path is to lead to it.
 * @returns undefined if the source itself is the volume
 */
async function mountDiskDetached(session: Session, volume: string, mount: MountRecord): Promise<Handle | undefined> {
  const { host } = session
  const kind = findVolumeKind(mount.request.fsType)
  if (!kind || kind.root === 'source') return undefined
  const recorded = rebuildMountRequest(mount)
  const mountOptions = recorded.mountOptions.filter((option) => option !== 'ro')
  const request = { ...recorded, mountOptions, readOnly: false }
  const source = kind.openSource?.(host, request)
  using _ = deferHandleClose(host.inodes, source?.handle)
  const made = createDetachedTree(session, kind, request, source)
  await made.make(undefined)
  return useHandleOrClose(host.inodes, made.handle, (tree) => {
    if (made.volume === volume) return tree
    throw Refusal.of(
      'source-exchanged',
      `source ${quoteValue(formatSource(recorded.source))} is another disk than the one that was mounted`,
      'put that one back',
    )
  })
}

/** Opens the source and checks its identity: a missing mount or a moved directory leaves another one at its path. */
async function openVolumeTree(session: Session, volume: string, source: string): Promise<Handle> {
  const { host, isolatesWalks } = session
  const opened = isolatesWalks
    ? openNodeSourceWithLookups(createPathLookups(session), host, source)
    : openNodeSource(host, source)
  const { handle, stat } = await opened
  using _ = deferHandleClose(host.inodes, handle)
  if (resolveVolumeIdentity(session, handle, stat) === volume) return host.mounts.cloneTree(handle)
  throw Refusal.of(
    'source-exchanged',
    `source ${quoteValue(source)} is another directory than the one that was mounted`,
    'put that one back',
  )
}

/**
 * Restores a volume from its journal. Call it under the volume's lock, when no walked mount of it exists.
 * @param how isForced: also restores inodes that users changed since. toBaseline: restores the state that `apply` left,
 * if any. Without it, the original state is restored, and the baseline is removed before any change.
 * @returns isDone: false if other inodes could not be restored; kept: number of inodes that stay as users changed them,
 * and recorded
 */
export async function restoreVolumeTree(
  session: Session,
  tree: Handle,
  about: Omit<WalkTargetVolume, 'known'>,
  record: VolumeRecord | undefined,
  { isForced = false, toBaseline = false } = {},
): Promise<{ isDone: boolean; kept: number; report: WalkReport }> {
  const toWalk = { ...about, known: record !== undefined }
  const unfinished = record && {
    ...record,
    complete: false,
    hasEnded: undefined,
    changedSince: undefined,
    skipped: undefined,
    left: undefined,
    baseline: toBaseline ? record.baseline : undefined,
  }
  const { report, isStillRecorded } = await walkVolume(
    session,
    tree,
    toWalk,
    { do: 'restore', isForced, toBaseline },
    () => {
      // The record says so until it is removed: a mount after a crash must walk again, even if the root has the group.
      if (unfinished) volumeRecords.write(session, unfinished)
    },
  )
  const kept = report.left['changed since by its user']?.count ?? 0
  // The walk may have skipped inodes that were never recorded: without a record nothing is left to restore.
  const isDone = Object.keys(report.left).every((reason) => FINAL_RESTORE_SKIP_REASONS.has(reason))
  if (isStillRecorded && !isDone) return { isDone: false, kept, report }
  if (toBaseline && unfinished?.baseline) {
    const { group, groupAccess } = unfinished.baseline
    const hasRoot = session.host.inodes.stat(tree).gid !== group
    const changedSince = kept === 0 ? undefined : { inodes: kept, hasRoot }
    const restored = { group, groupAccess, complete: true, restorePending: false, changedSince }
    volumeRecords.write(session, { ...unfinished, ...restored })
    return { isDone: true, kept, report }
  }
  // The record leads to the inodes that were skipped. It also keeps a mount from skipping its walk, because a root that
  // users changed may look walked indefinitely. Without a record, the journal makes the next mount walk.
  if (unfinished && isStillRecorded) {
    volumeRecords.write(session, { ...unfinished, restorePending: false, left: kept })
  } else {
    volumeRecords.remove(session, about.volume)
  }
  return { isDone: true, kept, report }
}

/**
 * Reasons to skip an inode that another restore would not restore either. A subvolume has inodes of its own, and a
 * volume is restored through a clone without the mounts below it. So neither contains or hides a recorded inode.
 */
const FINAL_RESTORE_SKIP_REASONS = new Set([
  'changed since by its user',
  'privileges not given back',
  'symlink',
  'device',
  'sub-mount',
])
