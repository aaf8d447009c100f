import type { Handle, Inodes, Name, Stat } from '../host/host.ts'
import { Batch } from './batch.ts'
import { hold, keyOf } from './held.ts'
import type { Journal } from './journal.ts'
import { ownershipOf } from './policy.ts'
import { isAsLeft } from './record.ts'
import { leave, newReport, type WalkReport } from './report.ts'
import { traverse, type Visitor } from './traverse.ts'

/**
 * Puts every recorded inode of a tree back to what it was: group, mode, set-id bits, capability. An inode that somebody
 * changed since is left and stays recorded, unless `force`. May be repeated and may be killed.
 * In the report `changed` counts what was put back, `alreadyRight` what already was as recorded.
 */
export function restore(inodes: Inodes, root: Handle, journal: Journal, force = false): WalkReport {
  const walk = new RestoreWalk(inodes, journal, force)
  return walk.run(root)
}

class RestoreWalk implements Visitor {
  readonly #inodes: Inodes
  readonly #journal: Journal
  readonly #force: boolean
  readonly #report = newReport()
  readonly #batch: Batch
  readonly #kept = new Set<string>()
  readonly #queued = new Set<string>()

  constructor(inodes: Inodes, journal: Journal, force: boolean) {
    this.#inodes = inodes
    this.#journal = journal
    this.#force = force
    this.#batch = new Batch(inodes, journal, this.#report, (made, failed) => {
      journal.forget(made)
      for (const record of failed) this.#kept.add(keyOf(record))
      this.#queued.clear()
    })
  }

  run(root: Handle): WalkReport {
    try {
      traverse(this.#inodes, root, this)
      this.#batch.flush()
    } finally {
      this.#batch.close()
    }
    this.#forgetVanished()
    this.#journal.confirm()
    return this.#report
  }

  left(...reason: Parameters<Visitor['left']>): void {
    leave(this.#report, ...reason)
  }

  inode(parent: Handle, name: Name, stat: Stat, path: () => Uint8Array): void {
    this.#report.visited++
    const record = this.#journal.find(stat.inode, stat.born)
    const key = keyOf(stat)
    // A second hard link of an inode that is on its way.
    if (!record || this.#queued.has(key)) return
    const held = hold(this.#inodes, parent, name, stat)
    if (!held) {
      leave(this.#report, 'gone or replaced during the walk', path())
      return
    }
    if (!this.#force && !isAsLeft(record, ownershipOf(held.stat))) {
      this.#inodes.close(held.handle)
      if (!this.#kept.has(key)) leave(this.#report, 'changed since by its user', path())
      this.#kept.add(key)
      return
    }
    this.#queued.add(key)
    this.#batch.add(held.handle, ownershipOf(held.stat), record, record.before)
  }

  /** Records of inodes the volume no longer has. Kept when a part could not be looked at. */
  #forgetVanished(): void {
    if (this.#report.left['moved during the walk'] || this.#report.left['sub-mount']) return
    const vanished = [...this.#journal.all()].filter((record) => !this.#kept.has(keyOf(record)))
    this.#journal.forget(vanished)
  }
}
