import { formatError, Refusal } from '../errors/refusal.ts'
import { getErrno, type Handle, isDirectory, openOnlyCached } from '../kernel/host.ts'
import { CHMOD_MODE_BITS, computeRequestedMode, SET_GID_MODE_BIT } from '../ownership/inode/policy.ts'
import { locateWalkerLock } from '../state/lock-holders.ts'
import { acquireRecordLock, acquireWalkerLock, tryAcquireRecordLock } from '../state/locks.ts'
import { locateVolumeRecords } from '../state/record-directories.ts'
import type { Session } from '../state/session.ts'
import { resolveVolumeIdentity } from '../state/volume-identity.ts'
import { listRootSetGidVolumes, type RootSetGidRecord, rootSetGidRecords } from '../state/volume-record.ts'
import { openNodeSource } from '../volume/kind/source-path.ts'
import { createGivenUpRootChangeFault } from '../worker/given-up.ts'
import { runIsolatedWork, UnresponsiveRefusal } from '../worker/isolated.ts'
import { refuseManyAbandonedRootWorkers } from './conflicts.ts'
import { findOtherVolumeUsers } from './holders.ts'

/** Remedy in messages about a root without the set-gid bit. */
export const SET_GID_REMEDY = 'set option "setGid" to "root", or run "chmod g+s" for it on the node'

/**
 * Returns whether files that root creates in a mapped mount get another group than the volume's, because the volume's
 * root has no set-gid bit.
 */
export function isRootWithoutSetGid({ host: { inodes } }: Session, root: Handle): boolean {
  const stat = inodes.stat(root)
  return isDirectory(stat) && (stat.mode & SET_GID_MODE_BIT) === 0 && !inodes.isReadOnly(root)
}

/** Sets the set-gid bit of a directory whose volume ends with its pod, so that nothing is recorded. */
export function setDirectorySetGid(session: Session, directory: Handle): void {
  if (!isRootWithoutSetGid(session, directory)) return
  const { inodes } = session.host
  inodes.chmod(directory, (inodes.stat(directory).mode & CHMOD_MODE_BITS) | SET_GID_MODE_BIT)
}

/**
 * Gives a directory the group and the bits that kubelet gives it for an fsGroup. Its volume ends with its pod, so that
 * nothing is recorded. The group is changed last: it shows that the directory is done. Does nothing for a file.
 */
export function setDirectoryGroup({ host: { inodes } }: Session, directory: Handle, group: number): void {
  const stat = inodes.stat(directory)
  if (!isDirectory(stat)) return
  inodes.chmod(directory, computeRequestedMode(stat, { groupId: group, access: 'grant', changePolicy: 'Always' }))
  inodes.chown(directory, group)
}

/**
 * Sets the set-gid bit of a volume's root, and records that durably before. Does nothing on a read-only mount, or if
 * the root has the bit. Call it under the volume's lock.
 */
export async function setRootSetGid(session: Session, record: RootSetGidRecord, root: Handle): Promise<void> {
  if (!isRootWithoutSetGid(session, root)) return
  rootSetGidRecords.write(session, record)
  using _ = session.isAlive && (await acquireWalkerLock(session, record.volume))
  setDirectorySetGid(session, root)
}

/** @property isSweep gives up while another call has the volume's lock */
interface RootSetGidSource {
  /** The mount directory that is being unmounted. */
  except?: string
  /** The root of what was mounted there; undefined: the volume is found by its source. */
  mounted?: Handle | undefined
  isSweep?: boolean
}

/**
 * Removes the set-gid bit that modekeep set on a volume's root, unless a mapped mount or a container's clone remains. A
 * bit that cannot be removed now stays recorded, until the volume's next mapped mount ends or gc runs.
 * @returns whether a process that waits for the root was given up
 */
export async function restoreRootSetGid(
  session: Session,
  volume: string,
  { except, mounted, isSweep = false }: RootSetGidSource = {},
): Promise<boolean> {
  if (!rootSetGidRecords.has(session, volume)) return false
  try {
    const place = locateVolumeRecords(session, volume)
    using lock = isSweep ? tryAcquireRecordLock(session, place) : await acquireRecordLock(session, place)
    const record = lock && rootSetGidRecords.read(session, volume)
    if (record === undefined || isVolumeMapped(session, volume, record.source, except)) return false
    await removeRecordedSetGid(session, record, mounted, isSweep)
    rootSetGidRecords.remove(session, volume)
    return false
  } catch (error) {
    if (isSweep && getErrno(error) === 'EAGAIN') return false
    const why = formatError(error)
    session.warn(
      `the set-gid bit of the root of volume ${volume} is not restored, "modekeep gc" tries again: ${why}`,
      'set-gid',
    )
    return error instanceof UnresponsiveRefusal
  }
}

/** Removes the bits that crashed calls and deleted pods left behind. */
export async function restoreLeftoverRootSetGid(session: Session): Promise<void> {
  for (const volume of listRootSetGidVolumes(session)) {
    const isGivenUp = await restoreRootSetGid(session, volume, { isSweep: true })
    // Each further one takes a moment, for which the unmount of another pod would wait.
    if (isGivenUp && !session.isolatesWalks) return
  }
}

/**
 * Removes a bit that an earlier boot has left, so that a walk does not record it as the volume's own. Call it under the
 * volume's lock.
 */
export async function removeUnusedRootSetGid(
  session: Session,
  volume: string,
  source: string,
  root: Handle,
): Promise<void> {
  if (!rootSetGidRecords.has(session, volume) || isVolumeMapped(session, volume, source, undefined)) return
  if (session.isolatesWalks) await removeSetGidIsolated(session, { volume, source }, root)
  else {
    using _ = session.isAlive && (await acquireWalkerLock(session, volume))
    removeSetGidOfRoot(session, root)
  }
  rootSetGidRecords.remove(session, volume)
}

/** Returns whether a mount or a clone that relies on the bit exists or is being made, also of a part of the volume. */
function isVolumeMapped(session: Session, volume: string, source: string, except: string | undefined): boolean {
  const { mounts, containers, reservations } = findOtherVolumeUsers(session, { volume, source }, except)
  return containers.length > 0 || reservations.length > 0 || mounts.some(({ given }) => given.by !== 'none')
}

/** Removes the bit of a volume's root: of the mounted root if it is the volume's, or else of the recorded source. */
async function removeRecordedSetGid(
  session: Session,
  record: RootSetGidRecord,
  mounted: Handle | undefined,
  isSweep: boolean,
): Promise<void> {
  if (mounted !== undefined && isRecordedVolumeRoot(session, record, mounted))
    return removeSetGidAtRoot(session, record, mounted, isSweep)
  const { host } = session
  // An unmount does not wait for the lookup of another pod's volume, whose path a process of that pod can keep locked.
  const isQuick = isSweep && !session.isolatesWalks
  if (!isQuick && mustChangeRootInWorker(session)) return removeSetGidIsolated(session, record, undefined)
  const inodes = isQuick ? openOnlyCached(host.inodes) : host.inodes
  using root = openRecordedRootSource({ ...session, host: { ...host, inodes } }, record)
  await removeSetGidAtRoot(session, record, root.handle, isSweep)
}

async function removeSetGidAtRoot(
  session: Session,
  record: RootSetGidRecord,
  root: Handle,
  isSweep: boolean,
): Promise<void> {
  if (isSweep || mustChangeRootInWorker(session)) await removeSetGidIsolated(session, record, root)
  else removeSetGidOfRoot(session, root)
}

/** Returns whether a worker process accesses the volume, because this one must not wait, or is killed if it does. */
function mustChangeRootInWorker({ isolatesWalks, mayHang, isAlive }: Session): boolean {
  return isolatesWalks === true || mayHang === true || isAlive !== undefined
}

function isRecordedVolumeRoot(session: Session, { volume }: RootSetGidRecord, handle: Handle): boolean {
  return resolveVolumeIdentity(session, handle, session.host.inodes.stat(handle)) === volume
}

function openRecordedRootSource(session: Session, record: RootSetGidRecord): Disposable & { handle: Handle } {
  const { inodes } = session.host
  const { handle } = openNodeSource(session.host, record.source)
  const root = { handle, [Symbol.dispose]: () => inodes.close(handle) }
  if (isRecordedVolumeRoot(session, record, handle)) return root
  root[Symbol.dispose]()
  throw Refusal.of('set-gid', `its source ${record.source} is another directory now`, 'put the volume back there')
}

const ROOT_CHANGE_TIMEOUT_MS = 1000

/**
 * Changes the root in a worker process, because a process of a pod can keep the root or a directory of its path locked.
 * While the worker waits, it holds the volume's walker lock, so that no further one is started.
 * @param root undefined: the worker opens the source
 */
async function removeSetGidIsolated(
  session: Session,
  record: RootSetGidRecord,
  root: Handle | undefined,
): Promise<void> {
  const { inodes } = session.host
  if (root !== undefined && (inodes.stat(root).mode & SET_GID_MODE_BIT) === 0) return
  refuseManyAbandonedRootWorkers(session, record.pod)
  await runIsolatedWork(session, {
    work: 'root-bit',
    about: root === undefined ? record : null,
    ...(root !== undefined && { handle: root, patienceMs: ROOT_CHANGE_TIMEOUT_MS }),
    lock: locateWalkerLock(session, record.volume),
    givenUp: (seconds, waiting, pid) => createGivenUpRootChangeFault(record.source, seconds, pid, waiting),
  })
  if (root !== undefined) inodes.syncFileSystem(root)
}

/** Removes the bit in the worker process. @param record of a root that must be opened first; null: it is `root` */
export async function removeSetGidForCaller(
  session: Session,
  root: Handle,
  record: RootSetGidRecord | null,
): Promise<void> {
  const { inodes } = session.host
  if (record === null) return inodes.chmod(root, inodes.stat(root).mode & CHMOD_MODE_BITS & ~SET_GID_MODE_BIT)
  using opened = openRecordedRootSource(session, record)
  removeSetGidOfRoot(session, opened.handle)
}

/** The record is removed after this, so the change is on the disk first. */
function removeSetGidOfRoot({ host: { inodes } }: Session, root: Handle): void {
  const mode = inodes.stat(root).mode & CHMOD_MODE_BITS
  if ((mode & SET_GID_MODE_BIT) === 0) return
  inodes.chmod(root, mode & ~SET_GID_MODE_BIT)
  inodes.syncFileSystem(root)
}
