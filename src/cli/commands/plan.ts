import { catchRefusalMessage } from '../../errors/refusal.ts'
import { needsGroupWalk, refuseOtherVolumeUsers } from '../../fsgroup/apply-to-volume.ts'
import {
  refuseKernelFileSystem,
  refuseOwnLogOrConfig,
  refuseSystemDirectory,
} from '../../fsgroup/refused-directories.ts'
import { createFsGroupTarget, openNodeDirectoryVolume } from '../../fsgroup/volume-by-hand.ts'
import { deferHandleClose } from '../../kernel/host.ts'
import { parseMountFlags } from '../../kernel/mount-table/mount-flags.ts'
import { createWalkReport, type WalkReport } from '../../ownership/walk/report.ts'
import type { Session } from '../../state/session.ts'
import { refuseOtherDisk } from '../../state/volume-disk.ts'
import { volumeRecords } from '../../state/volume-record.ts'
import { findMountsInside, formatHiddenMounts, type HiddenMounts } from '../node-state/hidden-mounts.ts'
import { extractLastWalk, type LastWalk, openReadableJournal, readRunningWalk } from '../node-state/recorded-walk.ts'
import {
  isWalkSkippedByKubelet,
  type KubeletCounts,
  type OwnershipDifference,
  surveyVolume,
} from '../node-state/survey.ts'
import {
  countSkippedInodes,
  formatOwnershipDifferences,
  formatSkippedInodes,
  type OutputLine,
} from '../output/output.ts'
import { APPLY_OPTIONS, type ApplyGroupCommand, type ApplyGroupDocument, readGroupOperands } from './apply.ts'
import type { SessionVerb } from './verb.ts'

export const planVerb: SessionVerb<ApplyGroupCommand<'plan'>, PlanDocument> = {
  operands: 'DIR',
  needs: '--fsgroup G',
  summary: 'print what apply and kubelet would change',
  text: [
    "Prints what apply would change in DIR, and what kubelet's own walk would change: counts, and the first changes " +
      'as ls -l shows them before and after. Changes nothing, not even an access time.',
  ],
  options: APPLY_OPTIONS,
  examples: ['modekeep plan /srv/volumes/data --fsgroup 2000 --fs-group-change-policy Always'],
  isLooking: true,
  isForAnyNamespace: true,
  read: (args) => ({ verb: 'plan', ...readGroupOperands('plan', args) }),
  run: planGroupChange,
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
      ...formatOwnershipDifferences(plan.differences, report.changed),
    ]
  },
}

export interface PlanDocument extends ApplyGroupDocument<'plan'> {
  /** True if `apply` would walk. Otherwise all counts of `report` are 0. */
  walks: boolean
  /** The refusal that `apply` would get now. */
  refusal: string | null
  /** A walk or a restore of the volume is running, so the counts change meanwhile. */
  busy: boolean
  /** Progress of that walk, once it has run for a second. */
  underWay: { visited: number; changed: number } | null
  /** The recorded state of the last walk. */
  recorded: LastWalk | null
  /** `changed` counts what `apply` would change. */
  report: WalkReport
  /** Inodes that would gain permission bits. */
  widened: number
  kubelet: { walks: boolean } & KubeletCounts
  /** Mounts inside the directory; null: none. No walk enters them, and a pod sees them only on request. */
  submounts: HiddenMounts | null
  /** The first inodes that would be changed. */
  differences: OwnershipDifference[]
}

/**
 * Reports what `apply` would do, and what kubelet would. The tree is inspected through a private read-only mount. No lock
 * is taken, and neither the volume nor its records are changed.
 */
export async function planGroupChange(session: Session, command: ApplyGroupCommand<'plan'>): Promise<PlanDocument> {
  const { verb, directory, fsGroup } = command
  const { inodes } = session.host
  const opened = await openNodeDirectoryVolume(session, directory, parseMountFlags(['noatime'], true))
  using _ = deferHandleClose(inodes, opened.tree)
  refuseKernelFileSystem(opened)
  const { volume, tree } = opened
  const { groupId: group, access: groupAccess, changePolicy: policy } = fsGroup
  const root = inodes.stat(tree)
  const walks = needsGroupWalk(session, tree, fsGroup, volume)
  const walk = readRunningWalk(session, volume)
  const record = volumeRecords.readUnlessDamaged(session, volume)
  using journal = openReadableJournal(session, volume)
  const seen = await surveyVolume(session, opened, { do: 'apply', fsGroup }, journal)
  const { report, widened, differences } = walks ? seen : { report: createWalkReport(), widened: 0, differences: [] }
  const refuse = () => {
    refuseSystemDirectory(session.host, directory, command.isSure)
    refuseOwnLogOrConfig(opened, command.isSure)
    refuseOtherVolumeUsers(session, group, createFsGroupTarget(opened), root.device)
    refuseOtherDisk(session, volume, tree)
  }
  const kubeletWalks = policy === 'Always' || !isWalkSkippedByKubelet(root, group)
  return {
    ...{ verb, directory, volume, group, groupAccess, policy, walks },
    refusal: catchRefusalMessage(refuse) ?? null,
    busy: walk !== null,
    underWay: walk && walk.pid !== null ? { visited: walk.visited, changed: walk.changed } : null,
    recorded: record ? extractLastWalk(record) : null,
    report,
    widened,
    submounts: findMountsInside(session, directory) ?? null,
    kubelet: { walks: kubeletWalks, ...(kubeletWalks ? seen.kubelet : { touched: 0, changed: 0, widened: 0 }) },
    differences,
  }
}

function formatPlanState({ walks, refusal, busy, underWay, recorded, kubelet, submounts }: PlanDocument): OutputLine[] {
  const lines: OutputLine[] = []
  if (submounts) {
    const text = `mounts inside are not walked, and hidden from a pod unless it asks for them: ${formatHiddenMounts(submounts)}`
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
