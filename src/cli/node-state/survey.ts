import type { NodeDirectoryVolume } from '../../fsgroup/volume-by-hand.ts'
import {
  BLOCK_DEVICE_TYPE,
  CHARACTER_DEVICE_TYPE,
  DIRECTORY_TYPE,
  FIFO_TYPE,
  FILE_TYPE_MASK,
  type Handle,
  type Inodes,
  isDirectory,
  REGULAR_FILE_TYPE,
  SOCKET_TYPE,
  type Stat,
  SYMLINK_TYPE,
} from '../../kernel/host.ts'
import { isLocalMountTree } from '../../kernel/mount-table/responsiveness.ts'
import { extractOwnership, isSameOwnership, type Ownership } from '../../ownership/inode/policy.ts'
import type { Journal } from '../../ownership/journal/journal.ts'
import { FirstLinkFilter } from '../../ownership/walk/hard-links.ts'
import type { WalkObserver } from '../../ownership/walk/ledger.ts'
import type { ProgressListener } from '../../ownership/walk/report.ts'
import { type SurveyTask, surveyTree } from '../../ownership/walks.ts'
import type { Session } from '../../state/session.ts'
import { computeWalkSilenceLimitMs, createGivenUpWalkFault } from '../../worker/given-up.ts'
import { runIsolatedWork } from '../../worker/isolated.ts'
import { openReadableJournal } from './recorded-walk.ts'

const FILE_TYPE_NAMES = {
  [REGULAR_FILE_TYPE]: 'file',
  [DIRECTORY_TYPE]: 'directory',
  [SYMLINK_TYPE]: 'link',
  [FIFO_TYPE]: 'fifo',
  [SOCKET_TYPE]: 'socket',
  [BLOCK_DEVICE_TYPE]: 'block device',
  [CHARACTER_DEVICE_TYPE]: 'character device',
} as const

/** The type of an inode, as documents name it. */
export type InodeType = (typeof FILE_TYPE_NAMES)[keyof typeof FILE_TYPE_NAMES]

/** @param mode with its type bits */
export function parseInodeType(mode: number): InodeType {
  return FILE_TYPE_NAMES[(mode & FILE_TYPE_MASK) as keyof typeof FILE_TYPE_NAMES] ?? 'file'
}

/** Counts of kubelet's own walk of the tree. Kubelet calls chown and chmod on each `touched` inode, so its ctime moves. */
export type KubeletCounts = Record<'touched' | 'changed' | 'widened', number>

export interface OwnershipDifference {
  /** Path relative to the directory; bytes that are not UTF-8 become U+FFFD. */
  path: string
  type: InodeType
  uid: number
  before: Ownership
  after: Ownership
  /** Null for a restore, for which kubelet has no rule. */
  kubelet: Ownership | null
}

const MAX_LISTED_DIFFERENCES = 10

/** The request to the isolated process. */
interface VolumeSurveyRequest {
  volume: string
  task: SurveyTask
}

export type OwnershipSurvey = Awaited<ReturnType<typeof surveyOwnership>>

/**
 * Surveys a volume, in an isolated process if this one must not wait for a locked directory.
 * @param directory for messages
 * @throws {Refusal} if the volume is unresponsive
 */
export async function surveyVolume(
  session: Session,
  { volume, tree, directory }: NodeDirectoryVolume,
  task: SurveyTask,
  journal: Journal | undefined,
): Promise<OwnershipSurvey> {
  const { host, progress } = session
  if (!session.isolatesWalks) return surveyOwnership(host.inodes, tree, task, journal, progress)
  const about: VolumeSurveyRequest = { volume, task }
  return runIsolatedWork(session, {
    work: 'survey',
    about,
    handle: tree,
    patienceMs: isLocalMountTree(host, tree, directory) ? computeWalkSilenceLimitMs(session, volume) : undefined,
    givenUp: (seconds, waiting, pid) => createGivenUpWalkFault(directory, seconds, pid, waiting),
  })
}

/** Runs the survey in the isolated process. */
export async function surveyVolumeInWorker(
  session: Session,
  tree: Handle,
  { volume, task }: VolumeSurveyRequest,
): Promise<OwnershipSurvey> {
  using journal = openReadableJournal(session, volume)
  return await surveyOwnership(session.host.inodes, tree, task, journal, session.progress)
}

/**
 * Counts what a walk or a restore of a tree, and kubelet's walk, would change. Changes and records nothing.
 * @param journal the records of earlier walks; undefined: none
 */
export async function surveyOwnership(
  inodes: Inodes,
  root: Handle,
  task: SurveyTask,
  journal: Journal | undefined,
  progress?: ProgressListener,
) {
  const group = task.do === 'apply' ? task.fsGroup.groupId : undefined
  const kubelet: KubeletCounts = { touched: 0, changed: 0, widened: 0 }
  const differences: OwnershipDifference[] = []
  let widened = 0
  /** Hard-linked inodes that kubelet's counts already include. */
  const counted = new FirstLinkFilter()
  const observer: WalkObserver = {
    onVisit(stat) {
      if (group === undefined) return
      kubelet.touched++
      const before = extractOwnership(stat)
      const after = computeKubeletOwnership(stat, group)
      if (isSameOwnership(before, after)) return
      if (stat.links > 1 && !isDirectory(stat) && !counted.addName(stat)) return
      kubelet.changed++
      if (isModeWidened(before, after)) kubelet.widened++
    },
    onWouldChange(stat, { path, seen, after }) {
      if (isModeWidened(seen, after)) widened++
      if (differences.length >= MAX_LISTED_DIFFERENCES) return
      const about = { path: Buffer.from(path).toString() || '.', type: parseInodeType(stat.mode), uid: stat.uid }
      const kubelets = group === undefined ? null : computeKubeletOwnership(stat, group)
      differences.push({ ...about, before: seen, after, kubelet: kubelets })
    },
  }
  const report = await surveyTree(inodes, root, task, journal, { observer, progress })
  return { report, widened, kubelet, differences }
}

function isModeWidened(before: Ownership, after: Ownership): boolean {
  return (after.mode & ~before.mode & 0o777) !== 0
}

const KUBELET_FILE_MODE_BITS = 0o660
const KUBELET_DIRECTORY_MODE_BITS = 0o2770

/** Computes the result of kubelet's walk on an inode: chown, and chmod with more bits unless it is a link (volume_linux.go). */
function computeKubeletOwnership(stat: Stat, group: number): Ownership {
  const { mode } = extractOwnership(stat)
  if ((stat.mode & FILE_TYPE_MASK) === SYMLINK_TYPE) return { gid: group, mode }
  return { gid: group, mode: mode | (isDirectory(stat) ? KUBELET_DIRECTORY_MODE_BITS : KUBELET_FILE_MODE_BITS) }
}

/** True if kubelet skips the walk with OnRootMismatch, which also requires the permission bits on the root. */
export function isWalkSkippedByKubelet(root: Stat, group: number): boolean {
  return root.gid === group && (root.mode & KUBELET_DIRECTORY_MODE_BITS) === KUBELET_DIRECTORY_MODE_BITS
}
