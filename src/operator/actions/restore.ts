import { openByHand } from '../../fs-group/by-hand.ts'
import { refuseRestore, restoreByHand } from '../../fs-group/restore-by-hand.ts'
import { mountFlags } from '../../mount-table/flags.ts'
import { newReport, type WalkReport } from '../../ownership/walk/report.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import { findVolume } from '../../store/find-volume.ts'
import type { Session } from '../../store/session.ts'
import { countInodes } from './count.ts'
import type { About } from './document.ts'
import { withJournal } from './journal.ts'
import { type Difference, survey } from './survey.ts'

/** A directory, or a volume by the name that it has in the records. */
export type Target = { directory: string } | { volume: string }

export interface RestoreCommand {
  verb: 'restore'
  target: Target
  isDry: boolean
  isForced: boolean
}

export interface RestoreDocument extends About {
  verb: 'restore'
  isDry: boolean
  isForced: boolean
  outcome: 'nothing recorded' | 'restored' | 'unfinished' | 'would restore'
  /** With isDry: why it would be refused now. */
  refusal: string | null
  /** `changed` counts what was, or would be, put back, `alreadyRight` what was as recorded. */
  report: WalkReport
  /** With isDry: the first inodes that would be put back. */
  differences: Difference[]
}

/** Puts a directory, or a volume wherever it is, back to what it was; or says what that would be. */
export async function restore(session: Session, command: RestoreCommand): Promise<RestoreDocument> {
  const { verb, target, isDry, isForced } = command
  const [directory, known] =
    'volume' in target ? [findVolume(session, target.volume), target.volume] : [target.directory, undefined]
  const flags = isDry ? mountFlags(['noatime'], true) : mountFlags([], false)
  const opened = openByHand(session, directory, flags, known)
  try {
    const { volume } = opened
    const about = { verb, directory, volume, isDry, isForced }
    if (isDry) return { ...about, ...(await look(session, opened, isForced)) }
    session.expect?.(await countInodes(session.host.inodes, opened.tree))
    const { outcome, report = newReport() } = await restoreByHand(session, opened, isForced)
    return { ...about, outcome, refusal: null, report, differences: [] }
  } finally {
    session.host.inodes.close(opened.tree)
  }
}

async function look(
  session: Session,
  opened: ReturnType<typeof openByHand>,
  isForced: boolean,
): Promise<Pick<RestoreDocument, 'outcome' | 'refusal' | 'report' | 'differences'>> {
  const { inodes } = session.host
  const refusal = refusalOf(() => refuseRestore(session, opened)) ?? null
  return withJournal(session, opened.volume, async (journal) => {
    if (journal === undefined || journal.isEmpty()) {
      return { outcome: 'nothing recorded', refusal: null, report: newReport(), differences: [] }
    }
    const seen = await survey(inodes, opened.tree, { do: 'restore', isForced }, journal, session.progress)
    return { outcome: 'would restore', refusal, report: seen.report, differences: seen.differences }
  })
}
