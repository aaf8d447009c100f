import { type Handle, type Inodes, isDirectory, type Stat } from '../../host/host.ts'
import { type Ownership, ownershipOf, same } from '../../ownership/inode/policy.ts'
import { type InodeRecord, keyOf } from '../../ownership/inode/record.ts'
import type { Journal } from '../../ownership/journal/journal.ts'
import type { Observer } from '../../ownership/walk/pipeline.ts'
import type { ProgressListener } from '../../ownership/walk/progress.ts'
import type { WalkReport } from '../../ownership/walk/report.ts'
import { type Intent, survey as surveyTree } from '../../ownership/walks.ts'
import { type InodeType, typeOf } from './inode-type.ts'
import { kubeletsResult } from './kubelet-rule.ts'

/** Kubelet's own walk of the same tree: `touched` gets a chown and a chmod, right or not, so that ctime moves. */
export interface KubeletCounts {
  walks: boolean
  touched: number
  changed: number
  widened: number
}

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

const MOST_DIFFERENCES = 10
const PERMISSION_BITS = 0o777

export interface Survey {
  report: WalkReport
  widened: number
  kubelet: Omit<KubeletCounts, 'walks'>
  differences: Difference[]
}

/**
 * What a walk or a restore of a tree would do, and what kubelet's walk would. Changes and records nothing.
 * @param journal what earlier walks have recorded; undefined: nothing
 */
export async function survey(
  inodes: Inodes,
  root: Handle,
  intent: Intent,
  journal: Journal | undefined,
  progress?: ProgressListener,
): Promise<Survey> {
  const counting = new Counting(intent.do === 'own' ? intent.order.group : undefined)
  const report = await surveyTree(inodes, root, intent, journal, { observer: counting, progress })
  const { widened, kubelet, differences } = counting
  return { report, widened, kubelet, differences }
}

class Counting implements Observer {
  widened = 0
  readonly kubelet: Survey['kubelet'] = { touched: 0, changed: 0, widened: 0 }
  readonly differences: Difference[] = []
  readonly #group: number | undefined
  /** Inodes with several names that kubelet's counts have already. */
  readonly #counted = new Set<string>()

  /** @param group undefined for a restore: kubelet has no such rule */
  constructor(group: number | undefined) {
    this.#group = group
  }

  visited(stat: Stat): void {
    if (this.#group === undefined) return
    this.kubelet.touched++
    const before = ownershipOf(stat)
    const after = kubeletsResult(stat, this.#group)
    if (same(before, after)) return
    if (stat.links > 1 && !isDirectory(stat)) {
      const key = keyOf(stat)
      if (this.#counted.has(key)) return
      this.#counted.add(key)
    }
    this.kubelet.changed++
    if (widens(before, after)) this.kubelet.widened++
  }

  wouldChange(stat: Stat, { path, seen, after }: InodeRecord): void {
    if (widens(seen, after)) this.widened++
    if (this.differences.length >= MOST_DIFFERENCES) return
    const kubelet = this.#group === undefined ? null : kubeletsResult(stat, this.#group)
    const text = Buffer.from(path).toString() || '.'
    this.differences.push({ path: text, type: typeOf(stat.mode), uid: stat.uid, before: seen, after, kubelet })
  }
}

function widens(before: Ownership, after: Ownership): boolean {
  return (after.mode & ~before.mode & PERMISSION_BITS) !== 0
}
