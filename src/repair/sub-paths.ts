import type { FaultCode } from '../errors/entries/index.ts'
import { formatFaultCode } from '../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../errors/refusal.ts'
import { deferHandleClose, getErrno, type Handle, type Inodes, isDirectory } from '../kernel/host.ts'
import { type KubeletSubPath, parseKubeletSubPaths } from '../kernel/mount-table/kubelet-volume.ts'
import { parseMountRowFlags } from '../kernel/mount-table/mount-flags.ts'
import { type MountPoint, openMountPoint } from '../kernel/mount-table/mount-point.ts'
import { type MountRow, parseMountinfo } from '../kernel/mount-table/mountinfo.ts'
import { RESPONSE_TIMEOUT_MS } from '../kernel/mount-table/responsiveness.ts'
import { openSubPath } from '../kernel/path/open-sub-path.ts'
import { attachTreeAtPoint } from '../mount/attach.ts'
import { tryAcquireNodeLock } from '../state/locks.ts'
import type { Session } from '../state/session.ts'
import { createGivenUpLookupFault } from '../worker/given-up.ts'
import { runIsolatedWork } from '../worker/isolated.ts'
import { findOwnSubPathDirectories, findStaleOwnSubPaths, resolveOwnSubPath } from './own-sub-paths.ts'

/** The result for one of kubelet's subPath binds whose source an atomic update deleted. */
export interface SubPathFinding {
  mountPoint: string
  /** The path of the current source, as the volume's user sees it. */
  source: string
  /** A dry run reports the action that would be done. */
  action: 'replaced' | 'none'
  reason: string
  code?: FaultCode
}

const STALE_SUB_PATH_REASON = 'its source was deleted when the volume changed'

/**
 * Replaces kubelet's subPath binds whose source was deleted by binds of the current source. It covers modekeep's own
 * volumes, ConfigMaps, Secrets, projected and downward API volumes. The runtime cannot bind a deleted source again, so its
 * container would not restart. Running containers keep their mounts. A bind that cannot be healed is skipped, with the reason.
 * @param kubeletDir kubelet's root directory; undefined: only binds of modekeep's own volumes are healed
 * @param options.dryRun changes nothing
 */
export function healSubPaths(
  session: Session,
  kubeletDir: string | undefined,
  { dryRun }: { dryRun: boolean },
): SubPathFinding[] {
  const stale = findStaleSubPathBinds(session, kubeletDir)
  if (stale.length === 0) return []
  using lock = dryRun ? undefined : tryLockSubPathHeal(session)
  if (lock === undefined && !dryRun) return stale.map(toBusySubPathFinding)
  return stale.map((bind) => healSubPathBind(session, bind, dryRun))
}

/** The task of an isolated process. */
interface SubPathHealTask {
  kubeletDir: string | undefined
  volumeDirectory: string
  dryRun: boolean
}

/** A bind whose source was deleted. */
type StaleSubPathBind = KubeletSubPath & { isOwn: boolean }

/** Reads only the mount table, and no volume. */
function findStaleSubPathBinds(session: Session, kubeletDir: string | undefined): StaleSubPathBind[] {
  const rows = parseMountinfo(session.host.mounts.table())
  const ofKubelet = kubeletDir === undefined ? [] : findKubeletSubPaths(session, kubeletDir, rows)
  const own = findStaleOwnSubPaths(session, rows)
  return [
    ...ofKubelet.filter((subPath) => subPath.stale).map((subPath) => ({ ...subPath, isOwn: false })),
    ...own.map((subPath) => ({ ...subPath, isOwn: true })),
  ]
}

/** Locks out other heals, because a second one could remove a bind that the first has just made. */
const tryLockSubPathHeal = (session: Session) => tryAcquireNodeLock(session, 'sub-paths')

const toBusySubPathFinding = (bind: StaleSubPathBind) =>
  toSubPathFinding(bind, toSkippedOutcome('another heal is at work'))

function toSubPathFinding({ row, volumeDirectory, subPath }: KubeletSubPath, outcome: SubPathOutcome): SubPathFinding {
  return { mountPoint: row.mountPoint, source: `${volumeDirectory}/${subPath}`, ...outcome }
}

function healSubPathBind(session: Session, bind: StaleSubPathBind, dryRun: boolean): SubPathFinding {
  const current = bind.isOwn ? resolveOwnSubPath(session, bind) : bind
  return toSubPathFinding(current, repairSubPathBind(session, current, dryRun))
}

/** Lists the directories of all such binds, stale or not: the change that makes a bind stale changes its directory. */
export function listSubPathDirectories(session: Session, kubeletDir: string | undefined): string[] {
  const rows = parseMountinfo(session.host.mounts.table())
  const ofKubelet = kubeletDir === undefined ? [] : findKubeletSubPaths(session, kubeletDir, rows)
  const own = findOwnSubPathDirectories(session, rows)
  return [...new Set([...ofKubelet.map(({ volumeDirectory }) => volumeDirectory), ...own])].sort()
}

function findKubeletSubPaths(
  { host: { inodes } }: Session,
  kubeletDir: string,
  rows: readonly MountRow[],
): KubeletSubPath[] {
  try {
    const handle = inodes.openTrusted(kubeletDir)
    using _ = deferHandleClose(inodes, handle)
    return parseKubeletSubPaths(rows, inodes.pathOf(handle))
  } catch (error) {
    if (getErrno(error) === 'ENOENT') return []
    throw error
  }
}

type SubPathOutcome = Pick<SubPathFinding, 'action' | 'reason'>

const BIND_CHANGED_REASON = 'it has changed meanwhile'

const toSkippedOutcome = (reason: string): SubPathOutcome => ({ action: 'none', reason })

function repairSubPathBind(session: Session, subPath: KubeletSubPath, dryRun: boolean): SubPathOutcome {
  if (subPath.doubt !== undefined) return toSkippedOutcome(subPath.doubt)
  const { inodes } = session.host
  using handles = new DisposableStack()
  const hold = (handle: Handle) => handles.adopt(handle, (one) => inodes.close(one))
  try {
    const volume = hold(inodes.openLinkFree(subPath.volumeDirectory))
    const current = hold(openSubPath(inodes, volume, subPath.subPath))
    using point = openMountPoint(session.host, subPath.row.mountPoint)
    if (point === undefined) return toSkippedOutcome('its directory is gone')
    const old = hold(inodes.openEntry(point.parent, point.name))
    const objection = findBindReplaceObstacle(session, subPath, { volume, current, old })
    if (objection !== undefined) return toSkippedOutcome(objection)
    const isReplaced = dryRun || replaceSubPathBind(session, subPath, { point, old, current })
    return isReplaced ? { action: 'replaced', reason: STALE_SUB_PATH_REASON } : toSkippedOutcome(BIND_CHANGED_REASON)
  } catch (error) {
    if (!(error instanceof Refusal) && getErrno(error) === undefined) throw error
    return toSkippedOutcome(formatError(error))
  }
}

/** Checks that the mount is still the one in the mount table, which was read earlier, and that a replacement is possible. */
function findBindReplaceObstacle(
  { host: { inodes } }: Session,
  { row, subPath }: KubeletSubPath,
  handles: { volume: Handle; current: Handle; old: Handle },
): string | undefined {
  const [current, old] = [inodes.stat(handles.current), inodes.stat(handles.old)]
  if (!old.mountRoot || !isSubPathBindStale(inodes, handles.old, row.mountPoint)) return BIND_CHANGED_REASON
  if (current.device === old.device && current.inode === old.inode)
    return `${quoteValue(subPath)} is what it shows already`
  if (current.device !== inodes.stat(handles.volume).device)
    return `${quoteValue(subPath)} is on another file system than its volume`
  if (isDirectory(current) === isDirectory(old)) return undefined
  const [was, is] = isDirectory(old) ? ['a directory', 'none'] : ['no directory', 'one']
  return `${quoteValue(subPath)} was ${was} and is ${is} now: the container can only start again after kubelet mounts it again${formatFaultCode('sub-path-changed')}`
}

/** The kernel appends " (deleted)" to the path of a mount whose source was deleted. */
function isSubPathBindStale(inodes: Inodes, mounted: Handle, mountPoint: string): boolean {
  return inodes.pathOf(mounted) === `${mountPoint} (deleted)`
}

/** @returns false if the mount changed meanwhile: kubelet repairs its binds too, when it starts a container */
function replaceSubPathBind(
  { host }: Session,
  { row }: KubeletSubPath,
  { point, old, current }: { point: MountPoint; old: Handle; current: Handle },
): boolean {
  const { inodes, mounts } = host
  const tree = mounts.cloneTree(current)
  using _ = deferHandleClose(inodes, tree)
  mounts.setFlags(tree, parseMountRowFlags(row.options))
  const [its, ours] = [inodes.stat(old).mountId, inodes.stat(tree).mountId]
  if (mounts.attachBeneath(tree, old)) {
    const top = inodes.statEntry(point.parent, point.name).mountId
    if (top === its || top === ours) mounts.detach(point.parent, point.name)
    return top === its
  }
  // The kernel is older than 6.5, or nothing is mounted there any more.
  if (!isSubPathBindStale(inodes, old, row.mountPoint)) return false
  mounts.detach(point.parent, point.name)
  attachTreeAtPoint(host, point, tree)
  return true
}

/**
 * Like `healSubPaths`. If this process must not wait for a locked directory, each volume is healed in a process of its
 * own, concurrently.
 */
export async function healSubPathsIsolated(
  session: Session,
  kubeletDir: string | undefined,
  { dryRun }: { dryRun: boolean },
): Promise<SubPathFinding[]> {
  if (!session.isolatesWalks) return healSubPaths(session, kubeletDir, { dryRun })
  const stale = findStaleSubPathBinds(session, kubeletDir)
  if (stale.length === 0) return []
  using lock = dryRun ? undefined : tryLockSubPathHeal(session)
  if (lock === undefined && !dryRun) return stale.map(toBusySubPathFinding)
  const volumes = Map.groupBy(stale, ({ volumeDirectory }) => volumeDirectory)
  const found = [...volumes].map(([volumeDirectory, binds]) =>
    healVolumeSubPaths(session, { kubeletDir, volumeDirectory, dryRun }, binds),
  )
  return (await Promise.all(found)).flat()
}

async function healVolumeSubPaths(
  session: Session,
  about: SubPathHealTask,
  binds: readonly StaleSubPathBind[],
): Promise<SubPathFinding[]> {
  const { volumeDirectory } = about
  try {
    return await runIsolatedWork(session, {
      work: 'sub-paths',
      about,
      owner: `directory ${quoteValue(volumeDirectory)}`,
      patienceMs: RESPONSE_TIMEOUT_MS,
      givenUp: (seconds, waiting, pid) => createGivenUpLookupFault(volumeDirectory, seconds, pid, waiting),
    })
  } catch (error) {
    return binds.map((bind) => toSubPathFinding(bind, toSkippedOutcome(formatError(error))))
  }
}

/** Heals the binds of one volume in the isolated process. The caller has the lock. */
export async function runSubPathHealTask(
  session: Session,
  _: Handle,
  task: SubPathHealTask,
): Promise<SubPathFinding[]> {
  return findStaleSubPathBinds(session, task.kubeletDir)
    .filter(({ volumeDirectory }) => volumeDirectory === task.volumeDirectory)
    .map((bind) => healSubPathBind(session, bind, task.dryRun))
}
