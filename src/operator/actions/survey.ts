import type { VolumeByHand } from '../../fs-group/by-hand.ts'
import {
  BLOCK_DEVICE,
  CHARACTER_DEVICE,
  DIRECTORY,
  FIFO,
  FILE_TYPE,
  type Handle,
  type Inodes,
  isDirectory,
  REGULAR,
  SOCKET,
  type Stat,
  SYMLINK,
} from '../../host/host.ts'
import { isLocalTree } from '../../mount-table/silence.ts'
import { extractOwnership, isSameOwnership, type Ownership } from '../../ownership/inode/policy.ts'
import type { Journal } from '../../ownership/journal/journal.ts'
import type { WalkObserver } from '../../ownership/walk/batch.ts'
import { FirstLinks } from '../../ownership/walk/hard-links.ts'
import type { ProgressListener } from '../../ownership/walk/progress.ts'
import { type SurveyIntent, surveyTree } from '../../ownership/walks.ts'
import { doElsewhere } from '../../store/elsewhere.ts'
import { formatGivenUpWalk, walkPatienceMs } from '../../store/given-up.ts'
import type { Session } from '../../store/session.ts'
import { openReadableJournal } from './volume.ts'

const TYPES = {
  [REGULAR]: 'file',
  [DIRECTORY]: 'directory',
  [SYMLINK]: 'link',
  [FIFO]: 'fifo',
  [SOCKET]: 'socket',
  [BLOCK_DEVICE]: 'block device',
  [CHARACTER_DEVICE]: 'character device',
} as const

/** As documents name it. */
export type InodeType = (typeof TYPES)[keyof typeof TYPES]

/** @param mode with its type bits */
export function parseInodeType(mode: number): InodeType {
  return TYPES[(mode & FILE_TYPE) as keyof typeof TYPES] ?? 'file'
}

/** Kubelet's own walk of the same tree: `touched` gets a chown and a chmod, right or not, so that ctime moves. */
export type KubeletCounts = Record<'touched' | 'changed' | 'widened', number>

export interface Difference {
  /** From the directory; bytes that are no UTF-8 read as U+FFFD. */
  path: string
  type: InodeType
  uid: number
  before: Ownership
  after: Ownership
  /** Null where kubelet has no rule: for a restore. */
  kubelet: Ownership | null
}

const MAX_DIFFERENCES = 10

/** What the other process is told. */
interface SurveyRequest {
  volume: string
  intent: SurveyIntent
}

export type Survey = Awaited<ReturnType<typeof surveyOwnership>>

/**
 * Surveys a volume in a process of its own where this one must not wait for a directory that is locked.
 * @param directory for messages
 * @throws {Refusal} if the volume does not answer
 */
export async function surveyVolume(
  session: Session,
  { volume, tree, directory }: VolumeByHand,
  intent: SurveyIntent,
  journal: Journal | undefined,
): Promise<Survey> {
  const { host, progress } = session
  if (!session.isolatesWalks) return surveyOwnership(host.inodes, tree, intent, journal, progress)
  const about: SurveyRequest = { volume, intent }
  return doElsewhere(session, {
    work: 'survey',
    about,
    handle: tree,
    patienceMs: isLocalTree(host, tree, directory) ? walkPatienceMs(session, volume) : undefined,
    givenUp: (seconds, waiting, pid) => formatGivenUpWalk(directory, seconds, pid, waiting),
  })
}

/** What the other process does. */
export async function surveyForCaller(
  session: Session,
  tree: Handle,
  { volume, intent }: SurveyRequest,
): Promise<Survey> {
  using journal = openReadableJournal(session, volume)
  return await surveyOwnership(session.host.inodes, tree, intent, journal, session.progress)
}

/**
 * What a walk or a restore of a tree would do, and what kubelet's walk would. Changes and records nothing.
 * @param journal what earlier walks have recorded; undefined: nothing
 */
export async function surveyOwnership(
  inodes: Inodes,
  root: Handle,
  intent: SurveyIntent,
  journal: Journal | undefined,
  progress?: ProgressListener,
) {
  // Kubelet has no rule for a restore.
  const group = intent.do === 'own' ? intent.policy.group : undefined
  const kubelet: KubeletCounts = { touched: 0, changed: 0, widened: 0 }
  const differences: Difference[] = []
  let widened = 0
  /** Inodes with several names that kubelet's counts have already. */
  const counted = new FirstLinks()
  const observer: WalkObserver = {
    onVisit(stat) {
      if (group === undefined) return
      kubelet.touched++
      const before = extractOwnership(stat)
      const after = computeKubeletOwnership(stat, group)
      if (isSameOwnership(before, after)) return
      if (stat.links > 1 && !isDirectory(stat) && !counted.addName(stat)) return
      kubelet.changed++
      if (widens(before, after)) kubelet.widened++
    },
    onWouldChange(stat, { path, seen, after }) {
      if (widens(seen, after)) widened++
      if (differences.length >= MAX_DIFFERENCES) return
      const about = { path: Buffer.from(path).toString() || '.', type: parseInodeType(stat.mode), uid: stat.uid }
      const theirs = group === undefined ? null : computeKubeletOwnership(stat, group)
      differences.push({ ...about, before: seen, after, kubelet: theirs })
    },
  }
  const report = await surveyTree(inodes, root, intent, journal, { observer, progress })
  return { report, widened, kubelet, differences }
}

function widens(before: Ownership, after: Ownership): boolean {
  return (after.mode & ~before.mode & 0o777) !== 0
}

const KUBELET_FILE_BITS = 0o660
const KUBELET_DIRECTORY_BITS = 0o2770

/** What kubelet's own walk makes of an inode: chown, and chmod with more bits unless it is a link (volume_linux.go). */
function computeKubeletOwnership(stat: Stat, group: number): Ownership {
  const { mode } = extractOwnership(stat)
  if ((stat.mode & FILE_TYPE) === SYMLINK) return { gid: group, mode }
  return { gid: group, mode: mode | (isDirectory(stat) ? KUBELET_DIRECTORY_BITS : KUBELET_FILE_BITS) }
}

/** Whether kubelet spares the walk with OnRootMismatch: it wants the permission bits on the root too. */
export function isSkippedByKubelet(root: Stat, group: number): boolean {
  return root.gid === group && (root.mode & KUBELET_DIRECTORY_BITS) === KUBELET_DIRECTORY_BITS
}
