import { waitFor } from '../host/back-off.ts'
import type { Handle } from '../host/host.ts'
import { isLocalTree } from '../mount-table/silence.ts'
import type { Quota } from '../ownership/journal/room.ts'
import { type Walked, type WalkOrder, walkBy } from '../ownership/order.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { quoted } from '../refusal/refusal.ts'
import { doElsewhere, type Elsewhere } from '../store/elsewhere.ts'
import { quotaOf, type StoreWithQuota } from '../store/journal-room.ts'
import { walkerLock } from '../store/locks.ts'
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
  order: WalkOrder,
  begin: () => void,
): Promise<Walked> {
  const { volume, source, known, isDisk, disk } = about
  const { host } = session
  const quota = quotaFor(order, session, volume)
  if (isDisk || isLocalTree(host, tree, source)) {
    // Its disk may lie on a server: see below.
    using _ = session.isAlive && (await walkerHeld(session, volume))
    using journal = openJournal(session, volume, known, disk)
    begin()
    const options = { quota, ...slowly(session) }
    return await walkWith(session, volume, (progress) =>
      walkBy(order, host.inodes, tree, journal, { progress, ...options }),
    )
  }
  openJournal(session, volume, known, disk).close()
  begin()
  return walkWith(session, volume, (progress) => walkElsewhere(session, tree, about, order, progress))
}

/** A restore may take what it needs. @throws {Refusal} where there is no room for another journal, before one is made */
function quotaFor(order: WalkOrder, store: StoreWithQuota, volume: string): Quota | undefined {
  return order.do === 'own' ? quotaOf(store, !hasJournal(store, volume)) : undefined
}

/** What the other process is told. */
interface Told {
  volume: string
  order: WalkOrder
}

function walkElsewhere(
  session: Session,
  handle: Handle,
  { volume, source }: ToWalk,
  order: WalkOrder,
  progress: (counts: WalkCounts) => void,
) {
  const about: Told = { volume, order }
  const elsewhere: Elsewhere = {
    work: 'walk',
    about,
    handle,
    lock: walkerLock(session, volume),
    givenUp: (seconds, waiting) =>
      `source ${quoted(source)} does not respond any more, so the walk of the volume was given up after ${seconds} s (the server or the daemon of its file system hangs): repair that on the node, and the next call goes on where this one was${waiting}`,
  }
  return doElsewhere<Walked>(session, elsewhere, progress)
}

/** A process that was killed may have its last change made later: nobody else walks until it has ended. */
async function walkerHeld(session: Session, volume: string): Promise<Disposable> {
  const lock = await waitFor(() => session.host.tryErrand(walkerLock(session, volume)))
  return { [Symbol.dispose]: () => lock.release(true) }
}

/** So few at once that also where a server is slow to answer each request it is often said that this process lives. */
function slowly({ isAlive }: Session) {
  return isAlive === undefined ? {} : { pulse: isAlive, largestBatch: 32 }
}

/** What the other process does. The journal is closed when it returns. */
export async function walkForCaller(session: Session, tree: Handle, { volume, order }: Told): Promise<Walked> {
  using journal = openJournal(session, volume, true)
  const quota = quotaFor(order, session, volume)
  const progress = (counts: WalkCounts) => session.progress?.(counts)
  return await walkBy(order, session.host.inodes, tree, journal, {
    progress,
    quota,
    ...slowly(session),
  })
}
