import { DIRECTORY, FILE_TYPE, type Handle, type Inodes, type Name, type Stat } from '../host/host.ts'
import { HardLinks } from '../ownership/hard-links.ts'
import { hold, keyOf } from '../ownership/held.ts'
import type { Journal } from '../ownership/journal.ts'
import { type Ownership, ownershipOf, same, type Target, verdict } from '../ownership/policy.ts'
import { type InodeRecord, meantState, sameBytes } from '../ownership/record.ts'
import { leave, newReport, type WalkReport } from '../ownership/report.ts'
import { traverse, type Visitor } from '../ownership/traverse.ts'
import type { Difference, KubeletCounts } from './document.ts'
import { kubeletsResult } from './kubelet-rule.ts'
import { typeOf } from './mode-string.ts'

const MOST_DIFFERENCES = 10
const PROGRESS_EACH = 4096
const PERMISSION_BITS = 0o777

export interface Survey {
  report: WalkReport
  widened: number
  kubelet: Omit<KubeletCounts, 'walks'>
  differences: Difference[]
}

/**
 * Looks at a tree as `own` does and decides as it does, but changes and records nothing.
 * @param journal what earlier walks have recorded; undefined: nothing
 * @param progress told the counts so far, now and then
 */
export function survey(
  inodes: Inodes,
  root: Handle,
  target: Target,
  journal: Journal | undefined,
  progress: (counts: WalkReport) => void = () => {},
): Survey {
  return new SurveyWalk(inodes, target, journal, progress).run(root)
}

class SurveyWalk implements Visitor {
  readonly #inodes: Inodes
  readonly #target: Target
  readonly #journal: Journal | undefined
  readonly #progress: (counts: WalkReport) => void
  readonly #links = new HardLinks()
  readonly #unfinished: ReadonlySet<string>
  /** Inodes with several names that kubelet's counts have already. */
  readonly #counted = new Set<string>()
  readonly #result: Survey = {
    report: newReport(),
    widened: 0,
    kubelet: { touched: 0, changed: 0, widened: 0 },
    differences: [],
  }

  constructor(inodes: Inodes, target: Target, journal: Journal | undefined, progress: (counts: WalkReport) => void) {
    this.#inodes = inodes
    this.#target = target
    this.#journal = journal?.isEmpty() ? undefined : journal
    this.#progress = progress
    this.#unfinished = new Set(journal?.unfinished().map(keyOf))
  }

  run(root: Handle): Survey {
    traverse(this.#inodes, root, this)
    for (const path of this.#links.outside()) this.left('linked outside the volume', path)
    return this.#result
  }

  left(...reason: Parameters<Visitor['left']>): void {
    leave(this.#result.report, ...reason)
  }

  inode(parent: Handle, name: Name, stat: Stat, path: () => Uint8Array): void {
    const { report } = this.#result
    if (++report.visited % PROGRESS_EACH === 0) this.#progress(report)
    this.#asKubelet(stat)
    const decided = verdict(stat, this.#target)
    if ('leave' in decided) {
      this.left(decided.leave, path())
      return
    }
    if (same(decided.want, ownershipOf(stat)) && !this.#unfinished.has(keyOf(stat))) {
      report.alreadyRight++
      return
    }
    const isDirectory = (stat.mode & FILE_TYPE) === DIRECTORY
    if (!isDirectory && stat.links > 1 && !this.#links.completes(stat, path())) return
    const record = this.#journal?.find(stat.inode, stat.born)
    if (record) this.#recorded(record, parent, name, stat, path())
    else this.#change(stat, decided.want, path())
  }

  #recorded(record: InodeRecord, parent: Handle, name: Name, seen: Stat, path: Uint8Array): void {
    const held = hold(this.#inodes, parent, name, seen)
    if (!held) {
      this.left('gone or replaced during the walk', path)
      return
    }
    this.#inodes.close(held.handle)
    const { stat } = held
    const usersOwn = record.settled && record.after.gid === this.#target.group && !same(record.after, record.seen)
    const meant = usersOwn ? undefined : meantState(record, held)
    if (meant === undefined) {
      this.left('changed since by its user', path)
      return
    }
    const decided = verdict({ ...stat, mode: meant.mode | (stat.mode & FILE_TYPE) }, this.#target)
    if (meant.forfeit) this.left('privileges not given back', path)
    const forfeited = record.forfeited || meant.forfeit === true
    const whole = forfeited || sameBytes(record.capability, held.capability)
    this.#change(stat, 'want' in decided ? decided.want : meant, path, whole)
  }

  /** @param whole false where a death has left the capability to be given back */
  #change(stat: Stat, after: Ownership, path: Uint8Array, whole = true): void {
    const { report, differences } = this.#result
    const before = ownershipOf(stat)
    // What a death has left may be right but for its record.
    if (same(before, after) && whole) {
      report.alreadyRight++
      return
    }
    if (stat.immutable) {
      this.left('immutable or append-only', path)
      return
    }
    report.changed++
    if (widens(before, after)) this.#result.widened++
    if (differences.length >= MOST_DIFFERENCES) return
    const kubelet = kubeletsResult(stat, this.#target.group)
    const text = Buffer.from(path).toString() || '.'
    differences.push({ path: text, type: typeOf(stat.mode), uid: stat.uid, before, after, kubelet })
  }

  #asKubelet(stat: Stat): void {
    const { kubelet } = this.#result
    kubelet.touched++
    const before = ownershipOf(stat)
    const after = kubeletsResult(stat, this.#target.group)
    if (same(before, after)) return
    if (stat.links > 1 && (stat.mode & FILE_TYPE) !== DIRECTORY) {
      const key = keyOf(stat)
      if (this.#counted.has(key)) return
      this.#counted.add(key)
    }
    kubelet.changed++
    if (widens(before, after)) kubelet.widened++
  }
}

function widens(before: Ownership, after: Ownership): boolean {
  return (after.mode & ~before.mode & PERMISSION_BITS) !== 0
}
