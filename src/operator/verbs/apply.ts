import { type ApplyCommand, type ApplyDocument, apply as run } from '../actions/apply.ts'
import { leftCount, leftLines } from '../text/left.ts'
import type { Line } from '../text/line.ts'
import { shellQuoted } from '../text/printable.ts'
import type { Work } from './form.ts'
import { orderOf, WALK_OPTIONS } from './order.ts'

export const apply: Work<ApplyCommand, ApplyDocument> = {
  operands: 'DIR',
  needs: '--fsgroup G',
  summary: "give DIR to group G, as a pod's mount with ownership: walk does",
  text: [
    'Gives DIR to a group. What an inode was is recorded before it is changed. It is refused while a pod with another ' +
      'group uses DIR.',
    'It may be interrupted at any time. The same command continues, and restore puts everything back.',
  ],
  options: WALK_OPTIONS,
  completes: 'directories',
  examples: ['modekeep apply /srv/volumes/data --fsgroup 2000'],
  read: (args) => ({ verb: 'apply', ...orderOf('apply', args) }),
  run,
  lines: applyLines,
  interrupted: ({ directory }) =>
    'interrupted. What was changed is recorded: the same command continues, ' +
    `"modekeep restore ${shellQuoted(directory)}" puts it back`,
}

function applyLines({ directory, group, groupAccess, walked, report }: ApplyDocument): Line[] {
  if (!walked) {
    return [
      {
        text: `${directory}: the root has group ${group} already, so nothing was walked (--fs-group-change-policy Always walks)`,
      },
    ]
  }
  const counts = `${report.visited} looked at, ${report.changed} changed, ${report.alreadyRight} already right`
  return [
    { text: `${directory}: group ${group}, groupAccess ${groupAccess}`, style: 'strong' },
    { text: `${counts}, ${leftCount(report)} left alone` },
    ...leftLines(report),
  ]
}
