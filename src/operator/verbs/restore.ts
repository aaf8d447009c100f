import { type RestoreCommand, type RestoreDocument, restore as run } from '../actions/restore.ts'
import { type Line, quoteForShell } from '../text/output.ts'
import { countSkippedInodes, formatDifferences, formatSkippedInodes } from '../text/report.ts'
import type { SessionVerb } from './form.ts'
import { readTargetOperand } from './paths.ts'

export const restore: SessionVerb<RestoreCommand, RestoreDocument> = {
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
  run,
  lines({ directory, isDry, outcome, next, refusal, otherDisk, report, differences }) {
    if (outcome === 'nothing recorded') return [`${directory}: nothing is recorded, so there is nothing to put back`]
    const [changed, tail] = isDry ? ['would be put back', '. Nothing was changed.'] : ['put back', '']
    const counts = `${report.visited} looked at, ${report.changed} ${changed}, ${report.alreadyRight} as recorded already`
    const lines: Line[] = [
      { text: `${directory}: ${counts}, ${countSkippedInodes(report)} left alone${tail}`, style: 'strong' },
    ]
    if (refusal !== null) lines.push({ text: `restore would be refused now: ${refusal}`, style: 'notice' })
    if (otherDisk !== null && refusal === null) lines.push({ text: otherDisk, style: 'notice' })
    lines.push(...formatSkippedInodes(report))
    if (next !== null) lines.push({ text: next, style: 'notice' })
    return [...lines, ...formatDifferences(differences, report.changed)]
  },
  trouble: 'not everything was put back, and what was not stays recorded: what to do is above',
  hasTrouble: ({ outcome }) => outcome === 'unfinished' || outcome === 'partly restored',
  interrupted({ isDry, target }) {
    if (isDry) return undefined
    const named = 'beginning' in target ? target.beginning : 'volume' in target ? target.volume : target.directory
    return `interrupted. What is not put back yet is still recorded: "modekeep restore ${quoteForShell(named)}" continues`
  },
}
