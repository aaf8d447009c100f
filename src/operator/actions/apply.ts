import { applyByHand, type ByHandOrder, openByHand, orderFor } from '../../fs-group/by-hand.ts'
import { needsWalk, refuseOthers } from '../../fs-group/own-volume.ts'
import { refuseOfKernel, refuseOfSystem, refuseOwnFile } from '../../fs-group/system-directory.ts'
import { closing } from '../../host/host.ts'
import { mountFlags } from '../../mount-table/flags.ts'
import { createReport, type WalkReport } from '../../ownership/walk/report.ts'
import { refusalOf } from '../../refusal/refusal.ts'
import type { Session } from '../../store/session.ts'
import { refuseOtherDisk } from '../../store/volume-disk.ts'
import { volumeRecords } from '../../store/volume-record.ts'
import { findMountsInside, type HiddenMounts } from './hidden-mounts.ts'
import { extractLastWalk, type LastWalk } from './last-walk.ts'
import { type Difference, isSkippedByKubelet, type KubeletCounts, surveyVolume } from './survey.ts'
import { announceInodeCount, openReadableJournal, readRunningWalk } from './volume.ts'

/** What a directory is to be given. */
export interface ApplyGroupCommand<Verb> {
  verb: Verb
  directory: string
  order: ByHandOrder
  /** Although it is a directory of the system. */
  isSure?: boolean
}

/** What was asked. Modes in documents are decimal numbers of permission bits. */
interface ApplyGroupDocument<Verb> {
  verb: Verb
  directory: string
  /** Names the volume across reboots and paths. */
  volume: string
  group: number
  groupAccess: 'keep' | 'grant'
  policy: 'OnRootMismatch' | 'Always'
}

export interface ApplyDocument extends ApplyGroupDocument<'apply'> {
  /** False: the root has the group already and the policy is OnRootMismatch. */
  walked: boolean
  report: WalkReport
}

/** Gives a directory to a group, as a pod's mount does. */
export async function apply(session: Session, command: ApplyGroupCommand<'apply'>): Promise<ApplyDocument> {
  const { verb, directory, order } = command
  const { inodes } = session.host
  const opened = await openByHand(session, directory, mountFlags([], false))
  using _ = closing(inodes, opened.tree)
  refuseOfKernel(opened)
  refuseOfSystem(session.host, directory, command.isSure)
  refuseOwnFile(opened, command.isSure)
  if (session.expect && needsWalk(session, opened.tree, orderFor(opened, order)))
    await announceInodeCount(session, opened)
  const report = await applyByHand(session, opened, order)
  const { group, access: groupAccess, policy } = order
  const asked = { verb, directory, volume: opened.volume, group, groupAccess, policy }
  return { ...asked, walked: report !== undefined, report: report ?? createReport() }
}

export interface PlanDocument extends ApplyGroupDocument<'plan'> {
  /** Whether `apply` would walk; where it would not, all counts of `report` are 0. */
  walks: boolean
  /** Why `apply` would be refused now. */
  refusal: string | null
  /** A walk or a restore of the volume is under way: what is counted changes meanwhile. */
  busy: boolean
  /** How far that is, when it takes more than a second. */
  underWay: { visited: number; changed: number } | null
  /** What is on record of the last walk. */
  recorded: LastWalk | null
  /** `changed` counts what `apply` would change. */
  report: WalkReport
  /** Inodes that would gain permission bits. */
  widened: number
  kubelet: { walks: boolean } & KubeletCounts
  /** Mounts inside of the directory: no walk enters them, and a pod does not see them unless it asks; null: none. */
  submounts: HiddenMounts | null
  /** The first inodes that would be changed. */
  differences: Difference[]
}

/**
 * Says what `apply` would do, and what kubelet would. The tree is looked at through a read-only mount of its own, no
 * lock is held and nothing of the volume or its records is changed.
 */
export async function plan(session: Session, command: ApplyGroupCommand<'plan'>): Promise<PlanDocument> {
  const { verb, directory, order } = command
  const { inodes } = session.host
  const opened = await openByHand(session, directory, mountFlags(['noatime'], true))
  using _ = closing(inodes, opened.tree)
  refuseOfKernel(opened)
  const { volume, tree } = opened
  const { group, access: groupAccess, policy } = order
  const root = inodes.stat(tree)
  const walks = needsWalk(session, tree, orderFor(opened, order))
  const walk = readRunningWalk(session, volume)
  const record = volumeRecords.readUnlessDamaged(session, volume)
  using journal = openReadableJournal(session, volume)
  const seen = await surveyVolume(session, opened, { do: 'own', policy: order }, journal)
  const { report, widened, differences } = walks ? seen : { report: createReport(), widened: 0, differences: [] }
  const refuse = () => {
    refuseOfSystem(session.host, directory, command.isSure)
    refuseOwnFile(opened, command.isSure)
    refuseOthers(session, orderFor(opened, order), root.device)
    refuseOtherDisk(session, volume, tree)
  }
  const kubeletWalks = policy === 'Always' || !isSkippedByKubelet(root, group)
  return {
    ...{ verb, directory, volume, group, groupAccess, policy, walks },
    refusal: refusalOf(refuse) ?? null,
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
