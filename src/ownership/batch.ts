import { errorCode, type Handle, type Inodes, type Stat } from '../host/host.ts'
import { change } from './change.ts'
import type { Journal } from './journal.ts'
import { type Ownership, ownershipOf, same } from './policy.ts'
import type { InodeRecord } from './record.ts'
import { type LeftReason, leave, type WalkReport } from './report.ts'

// One commit to disk for so many changes; as many handles are held meanwhile.
const BATCH_SIZE = 512

/** Errors that are about one inode: it is reported and left, the walk goes on. Everything else stops it. */
const TOLERATED: Readonly<Record<string, LeftReason>> = {
  EPERM: 'immutable or append-only',
  EROFS: 'read-only',
  EDQUOT: 'over quota',
}

/** Told after each flush which inodes now are as wanted, and which refused and are as they were. */
type Outcome = (made: InodeRecord[], failed: InodeRecord[]) => void

interface Change {
  handle: Handle
  seen: Stat
  record: InodeRecord
  want: Ownership
}

/** Changes on their way: first all recorded durably, then made, each on the inode that was looked at. */
export class Batch {
  readonly #inodes: Inodes
  readonly #journal: Journal
  readonly #report: WalkReport
  readonly #outcome: Outcome
  #changes: Change[] = []

  constructor(inodes: Inodes, journal: Journal, report: WalkReport, outcome: Outcome) {
    this.#inodes = inodes
    this.#journal = journal
    this.#report = report
    this.#outcome = outcome
  }

  /** @param seen what the inode was seen to be through `handle` */
  add(handle: Handle, seen: Stat, record: InodeRecord, want: Ownership): void {
    const { modified, size } = seen
    this.#changes.push({ handle, seen, record: { ...record, modified, size, settled: false }, want })
    if (this.#changes.length >= BATCH_SIZE) this.flush()
  }

  flush(): void {
    if (this.#changes.length === 0) return
    this.#journal.record(this.#changes.map(({ record }) => record))
    const made: InodeRecord[] = []
    const failed: InodeRecord[] = []
    for (const item of this.#changes) {
      const reason = this.#make(item)
      if (reason) leave(this.#report, reason, item.record.path)
      ;(reason ? failed : made).push(item.record)
    }
    this.close()
    this.#outcome(made, failed)
  }

  /** Why the inode was left, if it was. */
  #make({ handle, seen, record, want }: Change): LeftReason | undefined {
    try {
      const outcome = change(this.#inodes, handle, seen, want, record.capability)
      if (outcome === 'overtaken') return 'changed during the walk'
      this.#report[outcome === 'changed' ? 'changed' : 'alreadyRight']++
      return undefined
    } catch (error) {
      const reason = TOLERATED[errorCode(error) ?? '']
      // Half a change is not to be passed over: the next call must finish it.
      if (reason && same(ownershipOf(this.#inodes.stat(handle)), ownershipOf(seen))) return reason
      throw error
    }
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const { handle } of this.#changes) this.#inodes.close(handle)
    this.#changes = []
  }
}
