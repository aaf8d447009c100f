import type { PlanDocument } from '../actions/plan.ts'
import { differenceLines } from './differences.ts'
import { leftCount, leftLines } from './left.ts'
import type { Line } from './line.ts'

/** `plan` for people. */
export function planLines(plan: PlanDocument): Line[] {
  const { directory, group, groupAccess, policy, report, kubelet } = plan
  const title = `${directory}: group ${group}, groupAccess ${groupAccess}, policy ${policy}. Nothing was changed.`
  const rows: [string, number, number | string][] = [
    ['looked at', report.visited, kubelet.touched],
    ['would change', report.changed, kubelet.changed],
    ['of these, gain permission bits', plan.widened, kubelet.widened],
    ['ctime would move', report.changed, kubelet.touched],
    ['already right', report.alreadyRight, ''],
    ['left alone', leftCount(report), ''],
  ]
  const cell = (value: number | string) => String(value).padStart(12)
  return [
    { text: title, style: 'strong' },
    ...standing(plan),
    { text: '' },
    { text: `${' '.repeat(32)}${cell('modekeep')}${cell('kubelet')}` },
    ...rows.map(([what, ours, theirs]) => ({ text: `  ${what.padEnd(30)}${cell(ours)}${cell(theirs)}`.trimEnd() })),
    ...leftLines(report),
    ...differenceLines(plan.differences, report.changed),
  ]
}

function standing({ walks, refusal, busy, underWay, recorded, kubelet }: PlanDocument): Line[] {
  const lines: Line[] = []
  if (refusal !== null) lines.push({ text: `apply would be refused now: ${refusal}`, style: 'notice' })
  if (busy) {
    const far = underWay ? ` (${underWay.visited} looked at, ${underWay.changed} changed)` : ''
    lines.push({ text: `a walk or restore is under way there${far}, so these counts are of a moment`, style: 'notice' })
  }
  if (!walks)
    lines.push({ text: 'apply would not walk: the root has the group already (--fs-group-change-policy Always walks)' })
  if (!kubelet.walks)
    lines.push({ text: 'kubelet would not walk: the root has the group and its permission bits already' })
  if (recorded) {
    const { group, groupAccess, complete, restorePending } = recorded
    const pending = restorePending ? ', restored by its last unmount' : ''
    const state = complete ? 'a finished walk' : 'a walk or restore that was not finished'
    lines.push({ text: `on record: ${state} for group ${group}, groupAccess ${groupAccess}${pending}` })
  }
  return lines
}
