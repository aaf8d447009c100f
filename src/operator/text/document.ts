import type { WalkReport } from '../../ownership/walk/report.ts'
import type { ApplyDocument, Document, PlanDocument, RestoreDocument } from '../actions/document.ts'
import { differenceLines } from './differences.ts'
import { doctorLines } from './doctor.ts'
import { gcLines } from './gc.ts'
import type { Line } from './line.ts'
import { healLines, statusLines } from './node.ts'

/** A document for people. */
export function linesOf(document: Document): Line[] {
  switch (document.verb) {
    case 'plan':
      return planLines(document)
    case 'apply':
      return applyLines(document)
    case 'restore':
      return restoreLines(document)
    case 'status':
      return statusLines(document, Date.now())
    case 'heal':
      return healLines(document)
    case 'gc':
      return gcLines(document)
    case 'doctor':
      return doctorLines(document)
  }
}

function planLines(plan: PlanDocument): Line[] {
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

function restoreLines({ directory, isDry, outcome, refusal, report, differences }: RestoreDocument): Line[] {
  if (outcome === 'nothing recorded') {
    return [{ text: `${directory}: nothing is recorded, so there is nothing to put back` }]
  }
  const [changed, tail] = isDry ? ['would be put back', '. Nothing was changed.'] : ['put back', '']
  const counts = `${report.visited} looked at, ${report.changed} ${changed}, ${report.alreadyRight} as recorded already`
  return [
    { text: `${directory}: ${counts}, ${leftCount(report)} left alone${tail}`, style: 'strong' },
    ...(refusal === null ? [] : [{ text: `restore would be refused now: ${refusal}`, style: 'notice' as const }]),
    ...leftLines(report),
    ...differenceLines(differences, report.changed),
  ]
}

function leftCount({ left }: WalkReport): number {
  return Object.values(left).reduce((sum, { count }) => sum + count, 0)
}

function leftLines({ left }: WalkReport): Line[] {
  return Object.entries(left).map(([reason, { count, examples }]) => {
    // The directory itself has no path in it.
    const names = examples.map((path) => path || '.').join(', ') + (count > examples.length ? ', …' : '')
    return { text: `  left alone, ${reason}: ${count} (${names})`, style: 'notice' as const }
  })
}
