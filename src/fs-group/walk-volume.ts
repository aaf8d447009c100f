import type { Handle } from '../host/host.ts'
import { isLocalTree } from '../mount-table/responsiveness.ts'
import type { Quota } from '../ownership/journal/quota.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { runWalkTask, type WalkResult, type WalkTask } from '../ownership/walk-task.ts'
import { quoted } from '../refusal/refusal.ts'
import { doElsewhere, type Elsewhere, Unresponsive } from '../store/elsewhere.ts'
import { formatGivenUpWalk, givenUpWalks, walkPatienceMs } from '../store/given-up.ts'
import { quotaOf, type StoreWithQuota } from '../store/journal-room.ts'
import { holdWalker, walkerLock } from '../store/locks.ts'
import type { Session } from '../store/session.ts'
import { hasJournal, openJournal } from '../store/volume-journal.ts'
import { walkWith } from '../store/walk-progress.ts'

/** A volume as who has its lock knows it. */
export interface ToWalk {
  volume: string
  source: string
  /** A walk of it is recorded, so that it must have a journal. */
  known: boolean
  /** It lies on a disk of this node. */
  isDisk: boolean
  /** What its journal is to note of that: see About. */
  disk?: string | undefined
}

/**
 * Walks a volume. Call it under the volume's lock. Where a server or a daemon tells of it, another process walks: a
 * thread that waits for one that hangs cannot even be killed, and would keep this process and its locks.
 * @param begin called when the volume has a journal, before anything is changed
 * @throws {Refusal} also where the server or the daemon does not respond any more: the next walk goes on from there
 */
export async function walkVolume(
  session: Session,
  tree: Handle,
  about: ToWalk,
  order: WalkTask,
  begin: () => void,
): Promise<WalkResult> {
  const { volume, source, known, isDisk, disk } = about
  const { host } = session
  const quota = quotaFor(order, session, volume)
  const isLocal = isDisk || isLocalTree(host, tree, source)
  const patience = isLocal ? walkPatienceMs(session, volume) : undefined
  if (isLocal && !session.isolatesWalks) {
    // A killed process may have its last change made later: the next walk waits for the lock of this one.
    using _ = session.isAlive && (await holdWalker(session, volume))
    using journal = openJournal(session, volume, known, disk)
    begin()
    session.limitSilence?.(patience)
    const options = { quota, pulse: session.isAlive, largestBatch: session.largestBatch }
    const walked = await walkWith(session, volume, (progress) =>
      runWalkTask(order, host.inodes, tree, journal, { progress, ...options }),
    )
    session.limitSilence?.(undefined)
    if (patience !== undefined) givenUpWalks.remove(session, volume)
    return walked
  }
  openJournal(session, volume, known, disk).close()
  begin()
  return walkWith(session, volume, (progress) =>
    walkElsewhere(session, tree, about, { volume, order, isLocal }, patience, progress),
  )
}

/** A restore may take what it needs. @throws {Refusal} where there is no room for another journal, before one is made */
function quotaFor(order: WalkTask, store: StoreWithQuota, volume: string): Quota | undefined {
  return order.do === 'own' ? quotaOf(store, !hasJournal(store, volume)) : undefined
}

/** What the other process is told. */
interface Told {
  volume: string
  order: WalkTask
  /** It lies on the node's own file systems, which answer at once. */
  isLocal: boolean
}

async function walkElsewhere(
  session: Session,
  handle: Handle,
  { source }: ToWalk,
  told: Told,
  patience: number | undefined,
  progress: (counts: WalkCounts) => void,
) {
  const { volume, isLocal } = told
  let pid: number | undefined
  const elsewhere: Elsewhere = {
    work: 'walk',
    about: told,
    handle,
    lock: walkerLock(session, volume),
    patienceMs: patience,
    givenUp(seconds, waiting, walker) {
      pid = walker
      if (isLocal) return formatGivenUpWalk(source, seconds, walker, waiting)
      return `source ${quoted(source)} does not respond any more, so the walk of the volume was given up after ${seconds} s (the server or the daemon of its file system hangs): repair that on the node, and the next call goes on where this one was${waiting}`
    },
  }
  try {
    const walked = await doElsewhere<WalkResult>(session, elsewhere, progress)
    if (patience !== undefined) givenUpWalks.remove(session, volume)
    return walked
  } catch (error) {
    const hadFullTime = isLocal && patience === undefined
    if (hadFullTime && error instanceof Unresponsive && pid !== undefined)
      givenUpWalks.write(session, { volume, pid, at: Date.now() })
    throw error
  }
}

/** What the other process does. The journal is closed when it returns. */
export async function walkForCaller(session: Session, tree: Handle, told: Told): Promise<WalkResult> {
  const { volume, order, isLocal } = told
  using journal = openJournal(session, volume, true)
  const quota = quotaFor(order, session, volume)
  const progress = (counts: WalkCounts) => session.progress?.(counts)
  return await runWalkTask(order, session.host.inodes, tree, journal, {
    progress,
    quota,
    pulse: session.isAlive,
    largestBatch: isLocal ? undefined : session.largestBatch,
  })
}
