import type { Handle, Inodes, Name, Stat } from '../../host/host.ts'
import { hold, keyOf } from '../../ownership/inode/open-inode.ts'
import { isDirectory, type Ownership, type OwnOrder, ownershipOf, same } from '../../ownership/inode/policy.ts'
import { type InodeRecord, sameBytes } from '../../ownership/inode/record.ts'
import type { Journal } from '../../ownership/journal/journal.ts'
import { ownSpec } from '../../ownership/own.ts'
import { pathBelow } from '../../ownership/walk/entry.ts'
import { frameOf } from '../../ownership/walk/frame.ts'
import { gone } from '../../ownership/walk/gone.ts'
import { HardLinks, linkName, type Sighting } from '../../ownership/walk/hard-links.ts'
import { firstName, lastName, type Names } from '../../ownership/walk/ledger.ts'
import { leave, newReport, type WalkReport } from '../../ownership/walk/report.ts'
import type { Task } from '../../ownership/walk/task.ts'
import { type TaskSpec, taskOf } from '../../ownership/walk/task-spec.ts'
import { type Boundary, isElsewhere, type Place, SELF, traverse, type Visitor } from '../../ownership/walk/traverse.ts'
import type { Difference, KubeletCounts } from './document.ts'
import { kubeletsResult } from './kubelet-rule.ts'
import { typeOf } from './mode-string.ts'

const MOST_DIFFERENCES = 10
const PERMISSION_BITS = 0o777
const NONE = new Uint8Array()

export interface Survey {
  report: WalkReport
  widened: number
  kubelet: Omit<KubeletCounts, 'walks'>
  differences: Difference[]
}

/** What a walk would do, without its order: a restore needs none. */
export type Intent = { do: 'own'; order: OwnOrder } | { do: 'restore'; isForced: boolean }

/**
 * Looks at a tree as a walk or a restore does and decides by the same task, but changes and records nothing.
 * @param journal what earlier walks have recorded; undefined: nothing
 * @param progress told the counts so far, after every directory
 */
export function survey(
  inodes: Inodes,
  root: Handle,
  intent: Intent,
  journal: Journal | undefined,
  progress: (counts: WalkReport) => void = () => {},
): Survey {
  const top = inodes.openDirectory(root, SELF)
  try {
    const stat = inodes.stat(top)
    const walk = new SurveyWalk(inodes, stat, intent, journal, progress)
    traverse(inodes, [frameOf(inodes.duplicate(top), stat, NONE, NONE)], stat, walk)
    walk.directory(top, NONE)
    return walk.end()
  } finally {
    inodes.close(top)
  }
}

function specOf(intent: Intent, journal: Journal | undefined): TaskSpec {
  return intent.do === 'own' ? { do: 'own', ...ownSpec(intent.order, journal) } : intent
}

class SurveyWalk implements Visitor {
  readonly #inodes: Inodes
  readonly #inside: Boundary
  /** Undefined: kubelet has no such rule. */
  readonly #group: number | undefined
  readonly #task: Task
  readonly #journal: Journal | undefined
  readonly #progress: (counts: WalkReport) => void
  readonly #links = new HardLinks()
  readonly #names: Names
  /** Inodes with several names that kubelet's counts have already. */
  readonly #counted = new Set<string>()
  readonly #result: Survey = {
    report: newReport(),
    widened: 0,
    kubelet: { touched: 0, changed: 0, widened: 0 },
    differences: [],
  }

  constructor(
    inodes: Inodes,
    inside: Boundary,
    intent: Intent,
    journal: Journal | undefined,
    progress: (counts: WalkReport) => void,
  ) {
    this.#inodes = inodes
    this.#inside = inside
    this.#group = intent.do === 'own' ? intent.order.group : undefined
    this.#names = intent.do === 'own' ? lastName(this.#links) : firstName()
    this.#journal = journal
    this.#task = taskOf(specOf(intent, journal))
    this.#progress = progress
  }

  end(): Survey {
    for (const path of this.#links.outside()) this.left('linked outside the volume', path)
    return this.#result
  }

  left(...reason: Parameters<Visitor['left']>): void {
    leave(this.#result.report, ...reason)
  }

  entry(parent: Place, name: Name): boolean {
    const stat = gone(() => this.#inodes.statEntry(parent.handle, name))
    if (stat && isDirectory(stat)) return true
    const path = pathBelow(parent.path, name)
    if (stat === undefined) this.left('gone or replaced during the walk', path)
    else if (isElsewhere(stat, this.#inside)) this.left('sub-mount', path)
    else this.#inode(parent.handle, name, stat, path, parent)
    return false
  }

  directory(handle: Handle, path: Uint8Array): void {
    this.#inode(handle, SELF, this.#inodes.stat(handle), path)
    this.#progress(this.#result.report)
  }

  #inode(parent: Handle, name: Name, seen: Stat, path: Uint8Array, above?: Place): void {
    const { report } = this.#result
    report.visited++
    if (this.#group !== undefined) this.#asKubelet(seen, this.#group)
    const glance = this.#task.glance(seen)
    if (glance === 'right') report.alreadyRight++
    else if (typeof glance === 'object') this.left(glance.leave, path)
    if (glance !== 'look') return
    if (above && seen.links > 1) {
      const { inode, born, links, changed } = seen
      const sighting: Sighting = { inode, born, links, changed, at: Date.now(), name: linkName(above, name), path }
      if (!this.#names.isTurn(sighting)) return
    }
    const handle = gone(() => this.#inodes.openEntry(parent, name))
    if (handle === undefined) {
      this.left('gone or replaced during the walk', path)
      return
    }
    const stat = this.#inodes.stat(handle)
    const held = hold(this.#inodes, handle, stat, parent, name)
    this.#inodes.close(handle)
    const decided = this.#task.decide(held, path, this.#journal?.find(stat.inode, stat.born))
    if (decided.leave) this.left(decided.leave, path)
    if (decided.forfeits) this.left('privileges not given back', path)
    if (decided.change) this.#change(stat, decided.change, held.capability)
  }

  #change(stat: Stat, { path, seen, after, acl, ...record }: InodeRecord, capability: Uint8Array | null): void {
    const { report, differences } = this.#result
    // What a death has left may be right but for its capability.
    const whole = record.forfeited || sameBytes(record.capability, capability)
    if (same(seen, after) && sameBytes(acl.seen, acl.after) && whole) {
      report.alreadyRight++
      return
    }
    if (stat.immutable) {
      this.left('immutable or append-only', path)
      return
    }
    report.changed++
    if (widens(seen, after)) this.#result.widened++
    if (differences.length >= MOST_DIFFERENCES) return
    const kubelet = this.#group === undefined ? null : kubeletsResult(stat, this.#group)
    const text = Buffer.from(path).toString() || '.'
    differences.push({ path: text, type: typeOf(stat.mode), uid: stat.uid, before: seen, after, kubelet })
  }

  #asKubelet(stat: Stat, group: number): void {
    const { kubelet } = this.#result
    kubelet.touched++
    const before = ownershipOf(stat)
    const after = kubeletsResult(stat, group)
    if (same(before, after)) return
    if (stat.links > 1 && !isDirectory(stat)) {
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
