import { catchRefusalMessage } from '../../errors/refusal.ts'
import { needsWalk, refuseOtherUsers } from '../../fs-group/apply-to-volume.ts'
import { refuseKernelFileSystem, refuseOwnFile, refuseSystemDirectory } from '../../fs-group/system-directory.ts'
import { applyByHand, type ByHandOrder, createVolumeOrder, openByHand } from '../../fs-group/volume-by-hand.ts'
import { deferClose } from '../../host/host.ts'
import { parseMountFlags } from '../../mount-table/mount-flags.ts'
import { createReport, type WalkReport } from '../../ownership/walk/report.ts'
import type { Session } from '../../store/session.ts'
import { refuseOtherDisk } from '../../store/volume-disk.ts'
import { volumeRecords } from '../../store/volume-record.ts'
import { findMountsInside, type HiddenMounts } from './hidden-mounts.ts'
import { extractLastWalk, type LastWalk } from './last-walk.ts'
import { type Difference, isSkippedByKubelet, type KubeletCounts, surveyVolume } from './survey.ts'
import { announceInodeCount, openReadableJournal, readRunningWalk } from './volume.ts'

/** Group, access and policy to apply to a directory. */
export interface ApplyGroupCommand<Verb> {
  verb: Verb
  directory: string
  order: ByHandOrder
  /** Also applies to a directory of the system. */
  isSure?: boolean
}

/** The request, as documents repeat it. Modes in documents are decimal numbers of permission bits. */
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

/** Applies a group to a directory, as a pod's mount does. */
export async function apply(session: Session, command: ApplyGroupCommand<'apply'>): Promise<ApplyDocument> {
  const { verb, directory, order } = command
  const { inodes } = session.host
  const opened = await openByHand(session, directory, parseMountFlags([], false))
  using _ = deferClose(inodes, opened.tree)
  refuseKernelFileSystem(opened)
  refuseSystemDirectory(session.host, directory, command.isSure)
  refuseOwnFile(opened, command.isSure)
  if (session.expect && needsWalk(session, opened.tree, createVolumeOrder(opened, order)))
    await announceInodeCount(session, opened)
  const report = await applyByHand(session, opened, order)
  const { group, access: groupAccess, policy } = order
  const request = { verb, directory, volume: opened.volume, group, groupAccess, policy }
  return { ...request, walked: report !== undefined, report: report ?? createReport() }
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
  differences: Difference[]
}

/**
 * Reports what `apply` would do, and what kubelet would. The tree is inspected through a private read-only mount. No lock
 * is taken, and neither the volume nor its records are changed.
 */
export async function plan(session: Session, command: ApplyGroupCommand<'plan'>): Promise<PlanDocument> {
  const { verb, directory, order } = command
  const { inodes } = session.host
  const opened = await openByHand(session, directory, parseMountFlags(['noatime'], true))
  using _ = deferClose(inodes, opened.tree)
  refuseKernelFileSystem(opened)
  const { volume, tree } = opened
  const { group, access: groupAccess, policy } = order
  const root = inodes.stat(tree)
  const walks = needsWalk(session, tree, createVolumeOrder(opened, order))
  const walk = readRunningWalk(session, volume)
  const record = volumeRecords.readUnlessDamaged(session, volume)
  using journal = openReadableJournal(session, volume)
  const seen = await surveyVolume(session, opened, { do: 'own', policy: order }, journal)
  const { report, widened, differences } = walks ? seen : { report: createReport(), widened: 0, differences: [] }
  const refuse = () => {
    refuseSystemDirectory(session.host, directory, command.isSure)
    refuseOwnFile(opened, command.isSure)
    refuseOtherUsers(session, createVolumeOrder(opened, order), root.device)
    refuseOtherDisk(session, volume, tree)
  }
  const kubeletWalks = policy === 'Always' || !isSkippedByKubelet(root, group)
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
