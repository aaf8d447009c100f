import type { VolumeByHand } from '../../fs-group/by-hand.ts'
import { TYPE_DIRECTORY } from '../../host/dirents.ts'
import { closing, type Handle, type Inodes } from '../../host/host.ts'
import { isLocalTree } from '../../mount-table/silence.ts'
import type { Journal } from '../../ownership/journal/journal.ts'
import { SELF } from '../../ownership/walk/entry.ts'
import { traverse, type Visitor } from '../../ownership/walk/traverse.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import { doElsewhere } from '../../store/elsewhere.ts'
import { formatGivenUpWalk, walkPatienceMs } from '../../store/given-up.ts'
import { isVolumeBusy, walkerOf } from '../../store/locks.ts'
import type { Session } from '../../store/session.ts'
import { openJournalForReading } from '../../store/volume-journal.ts'
import { volumeRecords } from '../../store/volume-record.ts'
import { walkProgress } from '../../store/walk-progress.ts'

/** A volume's journal, for looking only; undefined where it has none. A walk may be writing to it meanwhile. */
export function openReadableJournal(session: Session, volume: string): Journal | undefined {
  const known = volumeRecords.readUnlessDamaged(session, volume) !== undefined
  return openJournalForReading(session, volume, known)
}

/** Why a volume's journal cannot be used; undefined where it can, or where there is none and need not be. */
export function findJournalFault(session: Session, volume: string): string | undefined {
  return refusalOf(() => {
    using journal = openReadableJournal(session, volume)
    journal?.isEmpty()
  })
}

/** A walk or a restore that is under way. */
export interface WalkStatus {
  /** Null in its first second, when no counts are written yet. */
  pid: number | null
  visited: number
  changed: number
}

export function readRunningWalk(session: Session, volume: string): WalkStatus | null {
  if (!isVolumeBusy(session, volume)) return null
  const { pid, visited = 0, changed = 0 } = walkProgress.find(session, volume).record ?? {}
  return { pid: walkerOf(session, volume) ?? pid ?? null, visited, changed }
}

/**
 * Tells who looks on how many inodes a walk will meet. Not of what a server or a daemon tells of: this process would wait
 * for one that hangs.
 */
export async function announceInodeCount(session: Session, { tree, directory, volume }: VolumeByHand): Promise<void> {
  const { host, expect } = session
  if (!expect || !isLocalTree(host, tree, directory)) return
  if (!session.isolatesWalks) return expect(await countInodes(host.inodes, tree))
  const count = await doElsewhere<number>(session, {
    work: 'count',
    about: null,
    handle: tree,
    patienceMs: walkPatienceMs(session, volume),
    givenUp: (seconds, waiting, pid) => formatGivenUpWalk(directory, seconds, pid, waiting),
  })
  expect(count)
}

/** What the other process does. */
export function countForCaller({ host }: Session, tree: Handle): Promise<number> {
  return countInodes(host.inodes, tree)
}

const YIELD_INTERVAL_INODES = 20_000

/**
 * How many inodes a walk will meet, about: names are counted, and only directories opened. It gives way to other events
 * on its way.
 */
export async function countInodes(inodes: Inodes, root: Handle): Promise<number> {
  let counted = 1
  const visitor: Visitor = {
    visitEntries(_frame, block) {
      while (block.next()) {
        if (block.type === TYPE_DIRECTORY) return true
        counted++
      }
      return false
    },
    visitDirectory() {
      counted++
    },
    skip() {},
  }
  const top = inodes.openDirectory(root, SELF)
  using _ = closing(inodes, top)
  let turn = YIELD_INTERVAL_INODES
  for (const _ of traverse(inodes, top, inodes.stat(top), visitor)) {
    if (counted < turn) continue
    turn = counted + YIELD_INTERVAL_INODES
    await new Promise((resolve) => setImmediate(resolve))
  }
  return counted
}
