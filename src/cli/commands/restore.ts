import { catchRefusalMessage } from '../../errors/refusal.ts'
import {
  type NodeDirectoryRestoreResult,
  openNodeDirectoryVolume,
  refuseNodeDirectoryRestore,
  restoreNodeDirectory,
} from '../../fsgroup/volume-by-hand.ts'
import { deferHandleClose } from '../../kernel/host.ts'
import { parseMountFlags } from '../../kernel/mount-table/mount-flags.ts'
import { createWalkReport, type SkipReason, type WalkReport } from '../../ownership/walk/report.ts'
import { findVolumePath } from '../../state/find-volume.ts'
import type { Session } from '../../state/session.ts'
import { explainOtherDisk } from '../../state/volume-disk.ts'
import { explainUnrestoredInodes, volumeRecords } from '../../state/volume-record.ts'
import { openReadableJournal, reportExpectedInodeCount } from '../node-state/recorded-walk.ts'
import { type OwnershipDifference, surveyVolume } from '../node-state/survey.ts'
import {
  countSkippedInodes,
  formatOwnershipDifferences,
  formatSkippedInodes,
  type OutputLine,
  quoteForShell,
} from '../output/output.ts'
import { readTargetOperand, resolveTargetOperand, type TargetOperand } from './operands.ts'
import type { SessionVerb } from './verb.ts'

export const restoreVerb: SessionVerb<RestoreCommand, RestoreDocument> = {
  operands: 'DIR|VOLUME',
  summary: 'put back all that modekeep has changed in DIR',
  text: [
    'Puts groups, modes and capabilities back to what they were before modekeep changed them. What users of the ' +
      'volume changed since is named and left, and stays recorded, as does what cannot be put back now: with either it ends with status 1 and says what to do. It may be interrupted and ' +
      'repeated.',
    'VOLUME is a name that status shows, or an unambiguous beginning of one. The volume is found where it was last, or where it is mounted now. restore ' +
      'also runs a pending restore. What apply gave is restored too: pods with restoreOnUnmount then return to the first state. It is refused while a pod uses the volume with a group that is on disk (by a walk, ' +
      'or mapped), with or without --force.',
  ],
  options: {
    'dry-run': 'print what would be put back; change nothing',
    force:
      'also put back what users of the volume changed since, unless its inode number may have been used again; ' +
      'set-id bits and capabilities return only to files whose content is still the recorded one. Also puts the ' +
      'records on another disk or image than the one that was walked, and says what differs',
  },
  examples: ['modekeep restore /srv/volumes/data --dry-run', 'modekeep restore /srv/volumes/data'],
  failure: 'an inode was not put back, also where its user changed it since; it stays recorded',
  read: (args) => ({
    verb: 'restore',
    target: readTargetOperand('restore', args),
    isDry: args.given.has('dry-run'),
    isForced: args.given.has('force'),
  }),
  run: restoreRecordedOwnership,
  lines({ directory, isDry, outcome, next, refusal, otherDisk, report, differences }) {
    if (outcome === 'nothing recorded') return [`${directory}: nothing is recorded, so there is nothing to put back`]
    const [changed, tail] = isDry ? ['would be put back', '. Nothing was changed.'] : ['put back', '']
    const counts = `${report.visited} looked at, ${report.changed} ${changed}, ${report.alreadyRight} as recorded already`
    const lines: OutputLine[] = [
      { text: `${directory}: ${counts}, ${countSkippedInodes(report)} left alone${tail}`, style: 'strong' },
    ]
    if (refusal !== null) lines.push({ text: `restore would be refused now: ${refusal}`, style: 'notice' })
    if (otherDisk !== null && refusal === null) lines.push({ text: otherDisk, style: 'notice' })
    lines.push(...formatSkippedInodes(report))
    if (next !== null) lines.push({ text: next, style: 'notice' })
    return [...lines, ...formatOwnershipDifferences(differences, report.changed)]
  },
  trouble: 'not everything was put back, and what was not stays recorded: what to do is above',
  hasTrouble: ({ outcome }) => outcome === 'unfinished' || outcome === 'partly restored',
  interrupted({ isDry, target }) {
    if (isDry) return undefined
    const named = 'beginning' in target ? target.beginning : 'volume' in target ? target.volume : target.directory
    return `interrupted. What is not put back yet is still recorded: "modekeep restore ${quoteForShell(named)}" continues`
  },
}

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
  differences: OwnershipDifference[]
}

/** Restores a directory or a volume to its recorded state, or reports what a restore would change. */
export async function restoreRecordedOwnership(session: Session, command: RestoreCommand): Promise<RestoreDocument> {
  const { verb, target, isDry, isForced } = command
  const found = await resolveTargetOperand(session, target)
  session.note(found)
  const [directory, recordedVolume] =
    'volume' in found ? [await findVolumePath(session, found.volume), found.volume] : [found.directory, undefined]
  const flags = isDry ? parseMountFlags(['noatime'], true) : parseMountFlags([], false)
  const opened = await openNodeDirectoryVolume(session, directory, flags, recordedVolume)
  const { inodes } = session.host
  const { volume, tree } = opened
  using _ = deferHandleClose(inodes, tree)
  const about = { verb, directory, volume, isDry, isForced }
  if (!isDry) {
    await reportExpectedInodeCount(session, opened)
    const restored = await restoreNodeDirectory(session, opened, isForced)
    const { outcome, report = createWalkReport(), otherDisk: other = null } = restored
    const next = formatNextRestoreStep(session, restored, volume, isForced)
    return { ...about, outcome, next, refusal: null, otherDisk: other, report, differences: [] }
  }
  const refusal = catchRefusalMessage(() => refuseNodeDirectoryRestore(session, opened, isForced)) ?? null
  using journal = openReadableJournal(session, volume)
  if (journal === undefined || journal.isEmpty()) {
    const outcome = 'nothing recorded'
    return {
      ...about,
      outcome,
      next: null,
      refusal: null,
      otherDisk: null,
      report: createWalkReport(),
      differences: [],
    }
  }
  const { report, differences } = await surveyVolume(session, opened, { do: 'restore', isForced }, journal)
  const other = explainOtherDisk(session, volume, tree) ?? null
  return { ...about, outcome: 'would restore', next: null, refusal, otherDisk: other, report, differences }
}

/** Remedies by the reason why the kernel or the file system did not let modekeep change a recorded inode. */
const REMEDY_BY_SKIP_REASON: Partial<Record<SkipReason, string>> = {
  'immutable or append-only': 'clear the attributes of what is immutable or append-only (chattr -ia)',
  'read-only': 'make writable what is read-only',
  'over quota': 'raise the quota',
}

/** Names the remedy of each reason that the report has. Without one, users changed the volume during the restore. */
function formatRestoreRemedies({ left = {} }: Partial<WalkReport>): string {
  const remedies = Object.entries(REMEDY_BY_SKIP_REASON).flatMap(([reason, remedy]) =>
    Object.hasOwn(left, reason) ? remedy : [],
  )
  if (remedies.length > 0) return `${remedies.join(', ')}, and run restore again`
  return 'the volume was changed during the restore, so recorded inodes may have been missed: run restore again'
}

function formatNextRestoreStep(
  session: Session,
  { outcome, kept: left = 0, report }: NodeDirectoryRestoreResult,
  volume: string,
  isForced: boolean,
): string | null {
  if (outcome === 'unfinished') return formatRestoreRemedies(report ?? {})
  // The volume's record was unreadable, so restoreNodeDirectory wrote none in which the skipped inodes could be counted.
  if (outcome === 'partly restored' && !volumeRecords.has(session, volume)) {
    return isForced ? null : 'with --force what its users changed is put back too'
  }
  return explainUnrestoredInodes({ volume, left }, isForced) ?? null
}
