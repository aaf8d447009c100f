import type { Handle, Host } from '../host/host.ts'
import { isLocalTree, PATIENCE } from '../mount-table/silence.ts'
import type { Quota } from '../ownership/journal/room.ts'
import { type Walked, type WalkOrder, walkBy } from '../ownership/order.ts'
import type { ProgressListener } from '../ownership/walk/progress.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import { messageOf, quoted, Refusal, UnknownFormat } from '../refusal/refusal.ts'
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
    using journal = openJournal(session, volume, known, disk)
    begin()
    return await walkWith(session, volume, (progress) => walkBy(order, host.inodes, tree, journal, { progress, quota }))
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
  config: StoreWithQuota['config']
  volume: string
  order: WalkOrder
}

/** What it says, line by line: the last one is the outcome. */
type Said =
  | { counts: WalkCounts }
  | { walked: Walked }
  | { refused: readonly string[]; isUnknownFormat: boolean }
  | { failed: string }

async function walkElsewhere(
  session: Session,
  tree: Handle,
  { volume, source }: ToWalk,
  order: WalkOrder,
  progress: ProgressListener,
): Promise<Walked> {
  const seconds = Math.max(PATIENCE / 1000, session.config.helperTimeoutSeconds)
  const { stateDir, stateQuota } = session.config
  const told: Told = { config: { stateDir, stateQuota }, volume, order }
  let last: Said | undefined
  const { isSilent, leftBehind } = await session.host.runErrand({
    order: JSON.stringify(told),
    handle: tree,
    lock: walkerLock(session, volume),
    patience: seconds * 1000,
    told(line) {
      last = JSON.parse(line) as Said
      if ('counts' in last) progress(last.counts)
    },
  })
  if (isSilent) {
    const waiting = leftBehind === undefined ? '' : `; until then process ${leftBehind} waits for it`
    throw new Refusal(
      `source ${quoted(source)} does not respond any more, so the walk of the volume was given up after ${seconds} s (the server or the daemon of its file system hangs): repair that on the node, and the next call goes on where this one was${waiting}`,
    )
  }
  return outcomeOf(last)
}

function outcomeOf(last: Said | undefined): Walked {
  if (last !== undefined && 'walked' in last) return last.walked
  if (last !== undefined && 'refused' in last) {
    throw last.isUnknownFormat ? new UnknownFormat(last.refused) : new Refusal(last.refused)
  }
  throw new Error(
    last !== undefined && 'failed' in last ? last.failed : 'the process that walked the volume has crashed',
  )
}

/** So few that also a server which is slow to answer each request lets it say often that it is alive. */
const BATCH = 100
const PULSE_MS = 500

/**
 * What the other process does.
 * @param told what it was told
 * @param say writes a line to who waits for it
 */
export async function walkForCaller(
  host: Host,
  tree: Handle,
  told: string,
  say: (line: string) => void,
): Promise<void> {
  const tell = (said: Said) => say(JSON.stringify(said))
  let said = performance.now()
  const pulse = () => {
    if (performance.now() - said < PULSE_MS) return
    said = performance.now()
    say('')
  }
  const progress = (counts: WalkCounts) => tell({ counts })
  tell(await walkTold(host, tree, JSON.parse(told) as Told, { progress, pulse, largestBatch: BATCH }))
}

/** The journal is closed when it returns. */
async function walkTold(
  host: Host,
  tree: Handle,
  { config, volume, order }: Told,
  options: Parameters<typeof walkBy>[4],
): Promise<Said> {
  try {
    const store = { host, config }
    using journal = openJournal(store, volume, true)
    const quota = quotaFor(order, store, volume)
    return { walked: await walkBy(order, host.inodes, tree, journal, { ...options, quota }) }
  } catch (error) {
    if (!(error instanceof Refusal)) return { failed: messageOf(error) }
    return { refused: error.faults, isUnknownFormat: error instanceof UnknownFormat }
  }
}
