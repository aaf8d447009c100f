import { type ByHandOrder, openByHand, orderFor } from '../../fs-group/by-hand.ts'
import { needsWalk, refuseOthers } from '../../fs-group/own-volume.ts'
import { mountFlags } from '../../mount-table/flags.ts'
import { newReport, type WalkReport } from '../../ownership/walk/report.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import { unlessDamaged } from '../../store/json-record.ts'
import { isVolumeBusy } from '../../store/locks.ts'
import type { Session } from '../../store/session.ts'
import { readVolumeRecord } from '../../store/volume-record.ts'
import { readWalkProgress } from '../../store/walk-progress.ts'
import type { Asked } from './document.ts'
import { withJournal } from './journal.ts'
import { kubeletSkips } from './kubelet-rule.ts'
import { type Difference, type KubeletCounts, survey } from './survey.ts'

export interface PlanCommand {
  verb: 'plan'
  directory: string
  order: ByHandOrder
}

export interface PlanDocument extends Asked {
  verb: 'plan'
  /** Whether `apply` would walk; where it would not, all counts of `report` are 0. */
  walks: boolean
  /** Why `apply` would be refused now. */
  refusal: string | null
  /** A walk or a restore of the volume is under way: what is counted changes meanwhile. */
  busy: boolean
  /** How far that is, when it takes more than a second. */
  underWay: { visited: number; changed: number } | null
  /** What is on record of the last walk. */
  recorded: { group: number; groupAccess: 'keep' | 'grant'; complete: boolean; restorePending: boolean } | null
  /** `changed` counts what `apply` would change. */
  report: WalkReport
  /** Inodes that would gain permission bits. */
  widened: number
  kubelet: KubeletCounts
  /** The first inodes that would be changed. */
  differences: Difference[]
}

/**
 * Says what `apply` would do, and what kubelet would. The tree is looked at through a read-only mount of its own, no
 * lock is held and nothing of the volume or its records is changed.
 */
export async function plan(session: Session, { directory, order }: PlanCommand): Promise<PlanDocument> {
  const { host, config } = session
  const opened = openByHand(session, directory, mountFlags(['noatime'], true))
  try {
    const { volume, tree } = opened
    const root = host.inodes.stat(tree)
    const walks = needsWalk(session, tree, orderFor(opened, order))
    const busy = isVolumeBusy(host, config.stateDir, volume)
    const record = unlessDamaged(() => readVolumeRecord(host, config.stateDir, volume))
    const { group, access, policy } = order
    const seen = await withJournal(session, volume, (journal) =>
      survey(host.inodes, tree, { do: 'own', order }, journal, session.progress),
    )
    const kubelet = policy === 'Always' || !kubeletSkips(root, group)
    return {
      verb: 'plan',
      directory,
      volume,
      group,
      groupAccess: access,
      policy,
      walks,
      refusal: refusalOf(() => refuseOthers(session, orderFor(opened, order), root.device)) ?? null,
      busy,
      underWay: busy ? underWay(session, volume) : null,
      recorded: record
        ? {
            group: record.group,
            groupAccess: record.groupAccess,
            complete: record.complete,
            restorePending: record.restorePending,
          }
        : null,
      report: walks ? seen.report : newReport(),
      widened: walks ? seen.widened : 0,
      kubelet: kubelet ? { walks: true, ...seen.kubelet } : { walks: false, touched: 0, changed: 0, widened: 0 },
      differences: walks ? seen.differences : [],
    }
  } finally {
    host.inodes.close(opened.tree)
  }
}

function underWay({ host, config }: Session, volume: string): PlanDocument['underWay'] {
  const progress = readWalkProgress(host, config.stateDir, volume)
  return progress ? { visited: progress.visited, changed: progress.changed } : null
}
