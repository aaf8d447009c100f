import { DIRECTORY, FILE_TYPE, type Handle, type Inodes, type Name, type Stat } from '../host/host.ts'
import { Batch } from './batch.ts'
import { HardLinks } from './hard-links.ts'
import { firstRecord, hold, keyOf } from './held.ts'
import type { Journal } from './journal.ts'
import { isRegular, type Ownership, ownershipOf, SET_IDS, same, verdict } from './policy.ts'
import { type InodeRecord, isAsLeft } from './record.ts'
import { leave, newReport, type WalkReport } from './report.ts'
import { traverse, type Visitor } from './traverse.ts'

/**
 * Gives every inode of a tree to a group, groupAccess keep. May be repeated and may be killed: what is right is not
 * touched, what was recorded is finished, what its users changed since is left.
 * @param root the tree's root; a detached mount serves, so that no path leads to it before it is done
 * @throws {Refusal} when the journal cannot be used, {SystemError} when an inode fails in a way that is not its own
 */
export function own(inodes: Inodes, root: Handle, group: number, journal: Journal): WalkReport {
  const walk = new OwnWalk(inodes, group, journal)
  return walk.run(root)
}

class OwnWalk implements Visitor {
  readonly #inodes: Inodes
  readonly #group: number
  readonly #journal: Journal
  readonly #report = newReport()
  readonly #links = new HardLinks()
  readonly #batch: Batch
  readonly #unfinished: Map<string, InodeRecord>
  readonly #firstTime: boolean

  constructor(inodes: Inodes, group: number, journal: Journal) {
    this.#inodes = inodes
    this.#group = group
    this.#journal = journal
    this.#batch = new Batch(inodes, journal, this.#report, (_made, failed) => {
      // Recorded as what they still are, so that the next walk tries them again.
      if (failed.length > 0) journal.record(failed.map((record) => ({ ...record, after: record.prior })))
    })
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
    const decided = verdict(stat, this.#group)
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
    if (held) this.#settle(held.handle, held.stat, path())
    else leave(this.#report, 'gone or replaced during the walk', path())
  }

  #settle(handle: Handle, stat: Stat, path: Uint8Array): void {
    const known = this.#firstTime ? undefined : this.#journal.find(stat.inode, stat.born)
    if (known && this.#isSettledByOthers(known, stat)) {
      this.#inodes.close(handle)
      leave(this.#report, 'changed since by its user', path)
      return
    }
    const record = known ?? firstRecord(this.#inodes, handle, stat, path)
    const want = this.#want(record, stat)
    const now = ownershipOf(stat)
    this.#batch.add(handle, now, { ...record, prior: now, after: want, settled: false }, want)
  }

  /** Recorded and confirmed for this group, yet different now: that is somebody's wish, and is not undone. */
  #isSettledByOthers(record: InodeRecord, stat: Stat): boolean {
    if (record.settled && record.after.gid === this.#group) return true
    return !isAsLeft(record, ownershipOf(stat))
  }

  #want(record: InodeRecord, stat: Stat): Ownership {
    const decided = verdict(stat, this.#group)
    const want = 'want' in decided ? decided.want : ownershipOf(stat)
    const lost = record.before.mode & SET_IDS
    // A call that died after its chown left the file without the set-id bits that its record still has.
    const died = !record.settled && isRegular(stat) && want.mode === (record.before.mode & ~SET_IDS)
    return died ? { ...want, mode: want.mode | lost } : want
  }
}
