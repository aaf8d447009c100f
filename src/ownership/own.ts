import { DIRECTORY, FILE_TYPE, type Handle, type Inodes, type Name, type Stat } from '../host/host.ts'
import { Batch } from './batch.ts'
import { HardLinks } from './hard-links.ts'
import { firstRecord, type Held, hold, keyOf } from './held.ts'
import type { Journal } from './journal.ts'
import { ownershipOf, same, type Target, verdict } from './policy.ts'
import { type InodeRecord, type Meant, meantState } from './record.ts'
import { leave, newReport, type WalkReport } from './report.ts'
import { traverse, type Visitor } from './traverse.ts'

/**
 * Gives every inode of a tree to a group. May be repeated and may be killed: what is right is not
 * touched, what was recorded is finished, what its users changed since is left.
 * @param root the tree's root; a detached mount serves, so that no path leads to it before it is done
 * @throws {Refusal} when the journal cannot be used, {SystemError} when an inode fails in a way that is not its own
 */
export function own(inodes: Inodes, root: Handle, target: Target, journal: Journal): WalkReport {
  return new OwnWalk(inodes, target, journal).run(root)
}

// ctime comes from a clock that ticks every few milliseconds.
const CLOCK_SLACK = 1_000_000_000n

class OwnWalk implements Visitor {
  readonly #inodes: Inodes
  readonly #target: Target
  readonly #journal: Journal
  readonly #report = newReport()
  readonly #links = new HardLinks()
  readonly #batch: Batch
  readonly #unfinished: Map<string, InodeRecord>
  readonly #firstTime: boolean
  readonly #started = BigInt(Date.now()) * 1_000_000n - CLOCK_SLACK

  constructor(inodes: Inodes, target: Target, journal: Journal) {
    this.#inodes = inodes
    this.#target = target
    this.#journal = journal
    this.#batch = new Batch(inodes, journal, this.#report)
    this.#firstTime = journal.isEmpty()
    this.#unfinished = new Map(journal.unfinished().map((record) => [keyOf(record), record]))
  }

  run(root: Handle): WalkReport {
    try {
      traverse(this.#inodes, root, this)
      this.#batch.flush()
      this.#journal.confirm()
    } finally {
      this.#batch.close()
    }
    for (const path of this.#links.outside()) leave(this.#report, 'linked outside the volume', path)
    return this.#report
  }

  left(...reason: Parameters<Visitor['left']>): void {
    leave(this.#report, ...reason)
  }

  inode(parent: Handle, name: Name, stat: Stat, path: () => Uint8Array): void {
    this.#report.visited++
    const decided = verdict(stat, this.#target)
    if ('leave' in decided) {
      leave(this.#report, decided.leave, path())
      return
    }
    if (same(decided.want, ownershipOf(stat)) && !this.#unfinished.has(keyOf(stat))) {
      this.#report.alreadyRight++
      return
    }
    const isDirectory = (stat.mode & FILE_TYPE) === DIRECTORY
    if (!isDirectory && stat.links > 1 && !this.#links.completes(stat, path())) return
    const held = hold(this.#inodes, parent, name, stat)
    if (held) this.#settle(held, path())
    else leave(this.#report, 'gone or replaced during the walk', path())
  }

  #settle(held: Held, path: Uint8Array): void {
    const known = this.#find(held.stat)
    const meant: Meant | undefined = known ? this.#meantState(known, held) : ownershipOf(held.stat)
    if (meant === undefined) {
      this.#inodes.close(held.handle)
      // Whatever a dead call had in mind for it, it is its user's now.
      if (known && !known.settled) this.#journal.record([known])
      leave(this.#report, 'changed since by its user', path)
      return
    }
    const decided = verdict({ ...held.stat, mode: meant.mode | (held.stat.mode & FILE_TYPE) }, this.#target)
    this.#batch.add(held, known ?? firstRecord(held, path), meant, 'want' in decided ? decided.want : meant)
  }

  /** A volume's first walk has no records to find, but for what it changed itself and then meets under another name. */
  #find(stat: Stat): InodeRecord | undefined {
    if (this.#firstTime && stat.changed < this.#started) return undefined
    return this.#journal.find(stat.inode, stat.born)
  }

  /** Recorded and confirmed for this group, yet different now: that is somebody's wish too, and is not undone. */
  #meantState(record: InodeRecord, held: Held): Meant | undefined {
    if (record.settled && record.after.gid === this.#target.group && !same(record.after, record.seen)) return undefined
    return meantState(record, held)
  }
}
