import type { Handle, Inodes, Name, Stat } from '../host/host.ts'
import { Batch } from './batch.ts'
import { hold, keyOf } from './held.ts'
import type { Journal } from './journal.ts'
import { SET_IDS } from './policy.ts'
import { meantState } from './record.ts'
import { leave, newReport, type WalkReport } from './report.ts'
import { traverse, type Visitor } from './traverse.ts'

/**
 * Puts every recorded inode of a tree back to what it was: group, mode, set-id bits, capability. What somebody changed
 * since is left. Only what was put back is forgotten: an inode that was not met may be met another time.
 * May be repeated and may be killed.
 * In the report `changed` counts what was put back, `alreadyRight` what already was as recorded.
 */
export function restore(inodes: Inodes, root: Handle, journal: Journal): WalkReport {
  return new RestoreWalk(inodes, journal).run(root)
}

class RestoreWalk implements Visitor {
  readonly #inodes: Inodes
  readonly #journal: Journal
  readonly #report = newReport()
  readonly #batch: Batch
  /** Inodes on their way, or left: a second hard link of one says nothing new. */
  readonly #met = new Set<string>()

  constructor(inodes: Inodes, journal: Journal) {
    this.#inodes = inodes
    this.#journal = journal
    this.#batch = new Batch(inodes, journal, this.#report, (made) => {
      journal.forget(made)
      for (const record of made) this.#met.delete(keyOf(record))
    })
  }

  run(root: Handle): WalkReport {
    try {
      traverse(this.#inodes, root, this)
      this.#batch.flush()
      this.#journal.confirm()
    } finally {
      this.#batch.close()
    }
    return this.#report
  }

  left(...reason: Parameters<Visitor['left']>): void {
    leave(this.#report, ...reason)
  }

  inode(parent: Handle, name: Name, stat: Stat, path: () => Uint8Array): void {
    this.#report.visited++
    const key = keyOf(stat)
    const record = this.#met.has(key) ? undefined : this.#journal.find(stat.inode, stat.born)
    if (!record) return
    const held = hold(this.#inodes, parent, name, stat)
    if (!held) {
      leave(this.#report, 'gone or replaced during the walk', path())
      return
    }
    this.#met.add(key)
    const meant = meantState(record, held)
    if (meant) {
      const { gid, mode } = record.before
      const bare = record.forfeited || meant.forfeit
      this.#batch.add(held, record, meant, bare ? { gid, mode: mode & ~SET_IDS } : record.before)
      return
    }
    this.#inodes.close(held.handle)
    // Whatever a dead call had in mind for it, it is its user's now.
    if (!record.settled) this.#journal.record([record])
    leave(this.#report, 'changed since by its user', path())
  }
}
