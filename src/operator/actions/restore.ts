import { openByHand, type RestoredByHand, refuseRestore, restoreByHand } from '../../fs-group/by-hand.ts'
import { closing } from '../../host/host.ts'
import { mountFlags } from '../../mount-table/flags.ts'
import { newReport, type WalkReport } from '../../ownership/walk/report.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import { findVolume } from '../../store/find-volume.ts'
import type { Session } from '../../store/session.ts'
import { otherDisk } from '../../store/volume-disk.ts'
import { leftBy, volumeRecords } from '../../store/volume-record.ts'
import { type Difference, survey } from './survey.ts'
import { findTarget, type Target } from './target.ts'
import { expectInodes, readableJournal } from './volume.ts'

export interface RestoreCommand {
  verb: 'restore'
  target: Target
  isDry: boolean
  isForced: boolean
}

export interface RestoreDocument {
  verb: 'restore'
  directory: string
  /** Names the volume across reboots and paths. */
  volume: string
  isDry: boolean
  isForced: boolean
  outcome: 'nothing recorded' | 'restored' | 'partly restored' | 'unfinished' | 'would restore'
  /** What to do about what was not put back; null where that is nothing. */
  next: string | null
  /** With isDry: why it would be refused now. */
  refusal: string | null
  /** Why the records are of another disk than the one that is there; null where they are of it, as far as is known. */
  otherDisk: string | null
  /** `changed` counts what was, or would be, put back, `alreadyRight` what was as recorded. */
  report: WalkReport
  /** With isDry: the first inodes that would be put back. */
  differences: Difference[]
}

/** Puts a directory, or a volume wherever it is, back to what it was; or says what that would be. */
export async function restore(session: Session, command: RestoreCommand): Promise<RestoreDocument> {
  const { verb, target, isDry, isForced } = command
  const found = await findTarget(session, target)
  session.note(found)
  const [directory, known] =
    'volume' in found ? [await findVolume(session, found.volume), found.volume] : [found.directory, undefined]
  const flags = isDry ? mountFlags(['noatime'], true) : mountFlags([], false)
  const opened = await openByHand(session, directory, flags, known)
  const { inodes } = session.host
  const { volume, tree } = opened
  using _ = closing(inodes, tree)
  const about = { verb, directory, volume, isDry, isForced }
  if (!isDry) {
    await expectInodes(session, opened)
    const done = await restoreByHand(session, opened, isForced)
    const { outcome, report = newReport(), otherDisk: other = null } = done
    const next = nextOf(session, done, volume, isForced)
    return { ...about, outcome, next, refusal: null, otherDisk: other, report, differences: [] }
  }
  const refusal = refusalOf(() => refuseRestore(session, opened, isForced)) ?? null
  using journal = readableJournal(session, volume)
  if (journal === undefined || journal.isEmpty()) {
    const outcome = 'nothing recorded'
    return { ...about, outcome, next: null, refusal: null, otherDisk: null, report: newReport(), differences: [] }
  }
  const { report, differences } = await survey(inodes, tree, { do: 'restore', isForced }, journal, session.progress)
  const other = otherDisk(session, volume, tree) ?? null
  return { ...about, outcome: 'would restore', next: null, refusal, otherDisk: other, report, differences }
}

function nextOf(
  session: Session,
  { outcome, kept: left = 0 }: RestoredByHand,
  volume: string,
  isForced: boolean,
): string | null {
  if (outcome === 'unfinished') return 'remove the cause that is named above, and run restore again'
  // Of a volume without a record that can be read nobody knew what it was: none was written.
  if (outcome === 'partly restored' && !volumeRecords.has(session, volume)) {
    return isForced ? null : 'with --force what its users changed is put back too'
  }
  return leftBy({ volume, left }, isForced) ?? null
}
