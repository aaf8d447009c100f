import { catchRefusalMessage } from '../../errors/refusal.ts'
import type { NodeDirectoryVolume } from '../../fsgroup/volume-by-hand.ts'
import { DIRENT_TYPE_DIRECTORY } from '../../kernel/dirents.ts'
import { deferHandleClose, type Handle, type Inodes } from '../../kernel/host.ts'
import { isLocalMountTree } from '../../kernel/mount-table/responsiveness.ts'
import type { Journal } from '../../ownership/journal/journal.ts'
import { SELF_ENTRY_NAME } from '../../ownership/walk/entry.ts'
import { type TreeVisitor, traverseTree } from '../../ownership/walk/traverse.ts'
import { findVolumeWalkerPid, isVolumeBusy } from '../../state/lock-holders.ts'
import { walkProgressRecords } from '../../state/process-records.ts'
import type { Session } from '../../state/session.ts'
import { openJournalForReading } from '../../state/volume-journal.ts'
import { type VolumeRecord, volumeRecords } from '../../state/volume-record.ts'
import { computeWalkSilenceLimitMs, createGivenUpWalkFault } from '../../worker/given-up.ts'
import { runIsolatedWork } from '../../worker/isolated.ts'

/** Opens a volume's journal read-only; undefined if it has none. A walk may write to it concurrently. */
export function openReadableJournal(session: Session, volume: string): Journal | undefined {
  const hasRecord = volumeRecords.readUnlessDamaged(session, volume) !== undefined
  return openJournalForReading(session, volume, hasRecord)
}

/** Returns the fault of a volume's journal; undefined if it can be used, or is missing and not required. */
export function findJournalFault(session: Session, volume: string): string | undefined {
  return catchRefusalMessage(() => {
    using journal = openReadableJournal(session, volume)
    journal?.isEmpty()
  })
}

/** A running walk or restore. */
export interface WalkStatus {
  /** Null in the first second, before counts are written. */
  pid: number | null
  visited: number
  changed: number
}

export function readRunningWalk(session: Session, volume: string): WalkStatus | null {
  if (!isVolumeBusy(session, volume)) return null
  const { pid, visited = 0, changed = 0 } = walkProgressRecords.find(session, volume).record ?? {}
  return { pid: findVolumeWalkerPid(session, volume) ?? pid ?? null, visited, changed }
}

/**
 * Reports the expected number of inodes to the progress line. Not for volumes of a server or a daemon, because counting
 * would block while those are unresponsive.
 */
export async function reportExpectedInodeCount(
  session: Session,
  { tree, directory, volume }: NodeDirectoryVolume,
): Promise<void> {
  const { host, expect } = session
  if (!expect || !isLocalMountTree(host, tree, directory)) return
  if (!session.isolatesWalks) return expect(await countInodes(host.inodes, tree))
  const count = await runIsolatedWork<number>(session, {
    work: 'count',
    about: null,
    handle: tree,
    patienceMs: computeWalkSilenceLimitMs(session, volume),
    givenUp: (seconds, waiting, pid) => createGivenUpWalkFault(directory, seconds, pid, waiting),
  })
  expect(count)
}

/** Counts inodes in the isolated process. */
export function countInodesInWorker({ host }: Session, tree: Handle): Promise<number> {
  return countInodes(host.inodes, tree)
}

const YIELD_INTERVAL_INODES = 20_000

/**
 * Estimates the number of inodes of a walk: counts names and opens only directories. Yields to other events meanwhile.
 */
export async function countInodes(inodes: Inodes, root: Handle): Promise<number> {
  let counted = 1
  const visitor: TreeVisitor = {
    visitEntries(_frame, block) {
      while (block.next()) {
        if (block.type === DIRENT_TYPE_DIRECTORY) return true
        counted++
      }
      return false
    },
    visitDirectory() {
      counted++
    },
    skip() {},
  }
  const top = inodes.openDirectory(root, SELF_ENTRY_NAME)
  using _ = deferHandleClose(inodes, top)
  let nextYield = YIELD_INTERVAL_INODES
  for (const _ of traverseTree(inodes, top, inodes.stat(top), visitor)) {
    if (counted < nextYield) continue
    nextYield = counted + YIELD_INTERVAL_INODES
    await new Promise((resolve) => setImmediate(resolve))
  }
  return counted
}

/** The recorded state of a volume's last walk, as documents show it. */
export type LastWalk = Pick<VolumeRecord, 'group' | 'groupAccess' | 'complete' | 'restorePending'> & {
  /** Inodes that a later restore skipped because users had changed them; null: no restore was completed. */
  left: number | null
}

export function extractLastWalk({ group, groupAccess, complete, left, restorePending }: VolumeRecord): LastWalk {
  return { group, groupAccess, complete, left: left ?? null, restorePending }
}
