import { createFault } from '../errors/fault.ts'
import { formatError, quoteValue, Refusal } from '../errors/refusal.ts'
import { type Handle, SystemError } from '../kernel/host.ts'
import { isLocalMountTree } from '../kernel/mount-table/responsiveness.ts'
import { postponeOptimization } from '../kernel/waiting.ts'
import type { JournalQuota } from '../ownership/journal/quota.ts'
import { DeletedInodeError, distinguishDeletedInodes } from '../ownership/walk/deleted-inode.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { runWalkTask, type WalkResult, type WalkTask } from '../ownership/walks.ts'
import { locateWalkerLock } from '../state/lock-holders.ts'
import { acquireWalkerLock } from '../state/locks.ts'
import { givenUpWalkRecords, runReportedWalk } from '../state/process-records.ts'
import type { Session } from '../state/session.ts'
import { createJournalQuota, hasVolumeJournal, openJournal, type StoreWithQuota } from '../state/volume-journal.ts'
import { computeWalkSilenceLimitMs, createGivenUpWalkFault } from '../worker/given-up.ts'
import { type IsolatedWork, runIsolatedWork, UnresponsiveRefusal } from '../worker/isolated.ts'

/** A volume to walk, as the lock holder knows it. */
export interface WalkTargetVolume {
  volume: string
  source: string
  /** A walk of it is recorded, so it must have a journal. */
  known: boolean
  isDisk: boolean
  /** The volume's disk, as the journal records it. */
  disk?: string | undefined
  /** Text of the volume's record, if this is its first walk. */
  firstRecord?: string | undefined
}

/**
 * Walks a volume. Call it under the volume's lock. A worker process walks the volume of a server or a daemon. A thread
 * that waits for an unresponsive one cannot even be killed, and would block this process and its locks.
 * @param begin called when the volume has a journal, before any change
 * @throws {Refusal} also if the server or the daemon does not respond any more: the next walk continues this one
 */
export async function walkVolume(
  session: Session,
  tree: Handle,
  about: WalkTargetVolume,
  task: WalkTask,
  begin: () => void,
): Promise<WalkResult> {
  const { volume, source, known, isDisk, disk, firstRecord } = about
  const { host } = session
  const quota = createWalkJournalQuota(task, session, volume)
  const isLocal = isDisk || isLocalMountTree(host, tree, source)
  const patienceMs = isLocal ? computeWalkSilenceLimitMs(session, volume) : undefined
  if (isLocal && !session.isolatesWalks) {
    // The kernel may make the last change of a killed process later, so the next walk waits for the lock of this one.
    using _ = session.isAlive && (await acquireWalkerLock(session, volume))
    using journal = openJournal(session, volume, known, { disk, firstRecord })
    begin()
    session.limitSilence?.(patienceMs)
    const options = { quota, pulse: createWalkPulse(session), largestBatch: session.largestBatch }
    const walked = await runReportedWalk(session, volume, (progress) =>
      runWalk(task, host.inodes, tree, journal, { progress, ...options }),
    )
    session.limitSilence?.(undefined)
    if (patienceMs !== undefined) givenUpWalkRecords.remove(session, volume)
    return walked
  }
  openJournal(session, volume, known, { disk, firstRecord }).close()
  begin()
  return runReportedWalk(session, volume, (progress) =>
    walkVolumeIsolated(session, tree, about, { volume, task, isLocal }, patienceMs, progress),
  )
}

/** Returns the function that a walk calls regularly. */
function createWalkPulse({ isAlive, endsWithCall }: Session): (() => void) | undefined {
  return endsWithCall ? postponeOptimization(isAlive) : isAlive
}

/** A restore has no quota. @throws {Refusal} if there is no space for another journal, before one is created */
function createWalkJournalQuota(task: WalkTask, store: StoreWithQuota, volume: string): JournalQuota | undefined {
  return task.do === 'apply' ? createJournalQuota(store, !hasVolumeJournal(store, volume)) : undefined
}

/** Remedies by the errno with which a walk ends if the volume's server, daemon or disk fails, or a policy denies it. Any other error is modekeep's fault. */
const REMEDY_BY_ERRNO: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH', 'ENETUNREACH', 'ECONNREFUSED', 'ECONNRESET', 'EREMOTEIO'].map((code) => [
      code,
      'repair its server or the network',
    ]),
  ),
  ESTALE: 'repair its server; if another client deletes files meanwhile, the next call continues',
  ENOTCONN: 'start its daemon again, or repair its server',
  EIO: "check the node's kernel log, and its disk, daemon or server",
  EACCES:
    'allow it in the policy of SELinux or AppArmor, whose denial is in the audit log, or have its server export it with no_root_squash',
  EUCLEAN: "check the node's kernel log, and repair the file system",
  EBADMSG: "check the node's kernel log, and repair the file system",
}

/** @throws {Refusal} if the volume's server, daemon or disk fails; otherwise as `runWalkTask` */
async function runWalk(...args: Parameters<typeof runWalkTask>): Promise<WalkResult> {
  try {
    return await runWalkTask(...args)
  } catch (thrown) {
    const error = thrown instanceof DeletedInodeError ? thrown.cause : thrown
    if (!(error instanceof SystemError)) throw error
    const remedy = REMEDY_BY_ERRNO[error.code]
    if (remedy === undefined) throw error
    const what = error.code === 'EACCES' ? 'an access to the volume was denied' : 'the file system of the volume failed'
    const fault = createFault('volume-failed', `${what} (${formatError(error)})`, remedy)
    throw new Refusal(fault, { cause: error })
  }
}

interface VolumeWalkRequest {
  volume: string
  task: WalkTask
  /** The volume is on a local file system, which responds at once. */
  isLocal: boolean
}

async function walkVolumeIsolated(
  session: Session,
  handle: Handle,
  { source }: WalkTargetVolume,
  request: VolumeWalkRequest,
  patienceMs: number | undefined,
  progress: (counts: WalkCounts) => void,
) {
  const { volume, isLocal } = request
  let pid: number | undefined
  const isolated: IsolatedWork = {
    work: 'walk',
    about: request,
    handle,
    lock: locateWalkerLock(session, volume),
    patienceMs,
    givenUp(seconds, waiting, walker) {
      pid = walker
      if (isLocal) return createGivenUpWalkFault(source, seconds, walker, waiting)
      return createFault(
        'unresponsive-call',
        `source ${quoteValue(source)} does not respond any more, so the walk of the volume was given up after ${seconds} s (the server or the daemon of its file system hangs)`,
        `repair that on the node, and the next call goes on where this one was${waiting}`,
      )
    },
  }
  try {
    const walked = await runIsolatedWork<WalkResult>(session, isolated, progress)
    if (patienceMs !== undefined) givenUpWalkRecords.remove(session, volume)
    return walked
  } catch (error) {
    const hadFullTime = isLocal && patienceMs === undefined
    if (hadFullTime && error instanceof UnresponsiveRefusal && pid !== undefined)
      givenUpWalkRecords.write(session, { volume, pid, at: Date.now() })
    throw error
  }
}

/** Walks in the worker process. The journal is closed when it returns. */
export async function walkVolumeForCaller(
  session: Session,
  tree: Handle,
  request: VolumeWalkRequest,
): Promise<WalkResult> {
  const { volume, task, isLocal } = request
  using journal = openJournal(session, volume, true)
  const quota = createWalkJournalQuota(task, session, volume)
  const progress = (counts: WalkCounts) => session.progress?.(counts)
  const { inodes } = session.host
  // Other clients of a server may delete inodes that the walk has open.
  return await runWalk(task, isLocal ? inodes : distinguishDeletedInodes(inodes, tree), tree, journal, {
    progress,
    quota,
    pulse: createWalkPulse(session),
    largestBatch: isLocal ? undefined : session.largestBatch,
  })
}
