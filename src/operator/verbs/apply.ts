import type { ByHandOrder } from '../../fs-group/volume-by-hand.ts'
import {
  type ApplyDocument,
  type ApplyGroupCommand,
  type PlanDocument,
  apply as runApply,
  plan as runPlan,
} from '../actions/apply.ts'
import { formatHidden } from '../actions/hidden-mounts.ts'
import { type Line, quoteForShell } from '../text/output.ts'
import { countSkippedInodes, formatDifferences, formatSkippedInodes } from '../text/report.ts'
import type { SessionVerb, VerbArguments } from './form.ts'
import { readDirectoryOperand } from './paths.ts'

const OPTIONS = {
  fsgroup: 'the group, a decimal number',
  'group-access':
    'keep (default): the group, and set-gid on directories, no permission bit; ' +
    'grant: also rw for the group, and x on directories, as kubelet does',
  'fs-group-change-policy':
    'OnRootMismatch (default): no walk if the root has the group already; Always: look at every inode',
  force:
    'also what users of the volume changed since an earlier walk, unless its inode number may have been used again; ' +
    'looks at every inode',
  yes: 'also a directory of the system, such as /etc or all of /var/lib',
} as const

/** Reads the directory, and the group, access and policy to apply. */
function readGroupOperands(verb: string, args: VerbArguments): Omit<ApplyGroupCommand<string>, 'verb'> {
  const { given, faults } = args
  const directory = readDirectoryOperand(verb, args)
  if (!given.has('fsgroup')) faults.push('--fsgroup is missing: name the group, as in --fsgroup 2000')
  const order: ByHandOrder = {
    group: Number(given.get('fsgroup')),
    access: given.get('group-access') === 'grant' ? 'grant' : 'keep',
    policy: given.get('fs-group-change-policy') === 'Always' ? 'Always' : 'OnRootMismatch',
    ...(given.has('force') && { isForced: true }),
  }
  return { directory, order, ...(given.has('yes') && { isSure: true }) }
}

export const plan: SessionVerb<ApplyGroupCommand<'plan'>, PlanDocument> = {
  operands: 'DIR',
  needs: '--fsgroup G',
  summary: 'print what apply and kubelet would change',
  text: [
    "Prints what apply would change in DIR, and what kubelet's own walk would change: counts, and the first changes " +
      'as ls -l shows them before and after. Changes nothing, not even an access time.',
  ],
  options: OPTIONS,
  examples: ['modekeep plan /srv/volumes/data --fsgroup 2000 --fs-group-change-policy Always'],
  isLooking: true,
  isForAnyNamespace: true,
  read: (args) => ({ verb: 'plan', ...readGroupOperands('plan', args) }),
  run: runPlan,
  lines(plan) {
    const { directory, group, groupAccess, policy, report, kubelet } = plan
    const title = `${directory}: group ${group}, groupAccess ${groupAccess}, policy ${policy}`
    const rows: [string, number | string, number | string][] = [
      ['', 'modekeep', 'kubelet'],
      ['looked at', report.visited, kubelet.touched],
      ['would change', report.changed, kubelet.changed],
      ['of these, gain permission bits', plan.widened, kubelet.widened],
      ['ctime would move', report.changed, kubelet.touched],
      ['already right', report.alreadyRight, ''],
      ['left alone', countSkippedInodes(report), ''],
    ]
    const cell = (value: number | string) => String(value).padStart(12)
    return [
      { text: title, style: 'strong' },
      'Nothing was changed.',
      ...formatPlanState(plan),
      '',
      ...rows.map(([what, ours, theirs]) => `  ${what.padEnd(30)}${cell(ours)}${cell(theirs)}`.trimEnd()),
      ...formatSkippedInodes(report),
      ...formatDifferences(plan.differences, report.changed),
    ]
  },
}

export const apply: SessionVerb<ApplyGroupCommand<'apply'>, ApplyDocument> = {
  operands: 'DIR',
  needs: '--fsgroup G',
  summary: "give DIR to group G, as a pod's mount with ownership: walk does",
  text: [
    'Gives DIR to a group. What an inode was is recorded before it is changed. It is refused while a pod with another ' +
      'group uses DIR.',
    'It may be interrupted at any time. The same command continues, and restore puts everything back.',
    'The result is durable: when later pods with restoreOnUnmount are unmounted, the volume returns to it. restore returns to the first ' +
      'state and drops it.',
  ],
  options: OPTIONS,
  examples: [
    'modekeep apply /srv/volumes/data --fsgroup 2000',
    'modekeep apply /srv/volumes/data --fsgroup 2000 --force',
  ],
  read: (args) => ({ verb: 'apply', ...readGroupOperands('apply', args) }),
  run: runApply,
  lines({ directory, group, groupAccess, walked, report }) {
    if (!walked) {
      const hint = '--fs-group-change-policy Always walks'
      return [`${directory}: the root has group ${group} already, so nothing was walked (${hint})`]
    }
    const counts = `${report.visited} looked at, ${report.changed} changed, ${report.alreadyRight} already right`
    return [
      { text: `${directory}: group ${group}, groupAccess ${groupAccess}`, style: 'strong' },
      `${counts}, ${countSkippedInodes(report)} left alone`,
      ...formatSkippedInodes(report),
    ]
  },
  interrupted: ({ directory }) =>
    'interrupted. What was changed is recorded: the same command continues, ' +
    `"modekeep restore ${quoteForShell(directory)}" puts it back`,
}

function formatPlanState({ walks, refusal, busy, underWay, recorded, kubelet, submounts }: PlanDocument): Line[] {
  const lines: Line[] = []
  if (submounts) {
    const text = `mounts inside are not walked, and hidden from a pod unless it asks for them: ${formatHidden(submounts)}`
    lines.push({ text, style: 'notice' })
  }
  if (refusal !== null) lines.push({ text: `apply would be refused now: ${refusal}`, style: 'notice' })
  if (busy) {
    const far = underWay ? ` (${underWay.visited} looked at, ${underWay.changed} changed)` : ''
    lines.push({ text: `a walk or restore is under way there${far}, so these counts are of a moment`, style: 'notice' })
  }
  if (!walks) {
    lines.push('apply would not walk: the root has the group already (--fs-group-change-policy Always walks)')
  }
  if (!kubelet.walks) lines.push('kubelet would not walk: the root has the group and its permission bits already')
  if (recorded) {
    const { group, groupAccess, complete, left, restorePending } = recorded
    const pending = restorePending ? ', restored by its last unmount' : ''
    const unfinished = left === null ? 'a walk or restore that was not finished' : 'a restore, after a walk'
    const state = complete ? 'a finished walk' : unfinished
    lines.push(`on record: ${state} for group ${group}, groupAccess ${groupAccess}${pending}`)
  }
  return lines
}
