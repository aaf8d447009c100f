import { catchRefusalMessage } from '../../errors/refusal.ts'
import { type ByHandRestoreResult, openByHand, refuseRestore, restoreByHand } from '../../fs-group/volume-by-hand.ts'
import { deferClose } from '../../host/host.ts'
import { parseMountFlags } from '../../mount-table/mount-flags.ts'
import { createReport, type SkipReason, type WalkReport } from '../../ownership/walk/report.ts'
import { findVolume } from '../../store/find-volume.ts'
import type { Session } from '../../store/session.ts'
import { explainOtherDisk } from '../../store/volume-disk.ts'
import { explainUnrestored, volumeRecords } from '../../store/volume-record.ts'
import { type Difference, surveyVolume } from './survey.ts'
import { resolveTarget, type TargetOperand } from './target.ts'
import { announceInodeCount, openReadableJournal } from './volume.ts'

export interface RestoreCommand {
  verb: 'restore'
  target: TargetOperand
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
  /** Remedy for inodes that were not restored; null: none is needed. */
  next: string | null
  /** With isDry: the refusal that the restore would get now. */
  refusal: string | null
  /** How the present disk differs from the recorded one; null: no difference is known. */
  otherDisk: string | null
  /** `changed` counts inodes that were, or would be, restored; `alreadyRight` those that were as recorded. */
  report: WalkReport
  /** With isDry: the first inodes that would be restored. */
  differences: Difference[]
}

/** Restores a directory or a volume to its recorded state, or reports what a restore would change. */
export async function restore(session: Session, command: RestoreCommand): Promise<RestoreDocument> {
  const { verb, target, isDry, isForced } = command
  const found = await resolveTarget(session, target)
  session.note(found)
  const [directory, recordedVolume] =
    'volume' in found ? [await findVolume(session, found.volume), found.volume] : [found.directory, undefined]
  const flags = isDry ? parseMountFlags(['noatime'], true) : parseMountFlags([], false)
  const opened = await openByHand(session, directory, flags, recordedVolume)
  const { inodes } = session.host
  const { volume, tree } = opened
  using _ = deferClose(inodes, tree)
  const about = { verb, directory, volume, isDry, isForced }
  if (!isDry) {
    await announceInodeCount(session, opened)
    const restored = await restoreByHand(session, opened, isForced)
    const { outcome, report = createReport(), otherDisk: other = null } = restored
    const next = formatNextStep(session, restored, volume, isForced)
    return { ...about, outcome, next, refusal: null, otherDisk: other, report, differences: [] }
  }
  const refusal = catchRefusalMessage(() => refuseRestore(session, opened, isForced)) ?? null
  using journal = openReadableJournal(session, volume)
  if (journal === undefined || journal.isEmpty()) {
    const outcome = 'nothing recorded'
    return { ...about, outcome, next: null, refusal: null, otherDisk: null, report: createReport(), differences: [] }
  }
  const { report, differences } = await surveyVolume(session, opened, { do: 'restore', isForced }, journal)
  const other = explainOtherDisk(session, volume, tree) ?? null
  return { ...about, outcome: 'would restore', next: null, refusal, otherDisk: other, report, differences }
}

/** Remedies by the reason why the kernel or the file system did not let modekeep change a recorded inode. */
const REMEDIES: Partial<Record<SkipReason, string>> = {
  'immutable or append-only': 'clear the attributes of what is immutable or append-only (chattr -ia)',
  'read-only': 'make writable what is read-only',
  'over quota': 'raise the quota',
}

/** Names the remedy of each reason that the report has. Without one, users changed the volume during the restore. */
function formatRemedies({ left = {} }: Partial<WalkReport>): string {
  const remedies = Object.entries(REMEDIES).flatMap(([reason, remedy]) => (Object.hasOwn(left, reason) ? remedy : []))
  if (remedies.length > 0) return `${remedies.join(', ')}, and run restore again`
  return 'the volume was changed during the restore, so recorded inodes may have been missed: run restore again'
}

function formatNextStep(
  session: Session,
  { outcome, kept: left = 0, report }: ByHandRestoreResult,
  volume: string,
  isForced: boolean,
): string | null {
  if (outcome === 'unfinished') return formatRemedies(report ?? {})
  // The volume's record was unreadable, so restoreByHand wrote none in which the skipped inodes could be counted.
  if (outcome === 'partly restored' && !volumeRecords.has(session, volume)) {
    return isForced ? null : 'with --force what its users changed is put back too'
  }
  return explainUnrestored({ volume, left }, isForced) ?? null
}
