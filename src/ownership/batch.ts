import { errorCode, type Handle, type Inodes } from '../host/host.ts'
import { change } from './change.ts'
import type { Journal } from './journal.ts'
import type { Ownership } from './policy.ts'
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
  now: Ownership
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
    this.#outcome = outcome
    this.#inodes = inodes
    this.#journal = journal
    this.#report = report
  }

  /** @param now what the inode was seen to be through `handle` */
  add(handle: Handle, now: Ownership, record: InodeRecord, want: Ownership): void {
    this.#changes.push({ handle, now, record, want })
    if (this.#changes.length >= BATCH_SIZE) this.flush()
  }

  flush(): void {
    if (this.#changes.length === 0) return
    this.#journal.record(this.#changes.map(({ record }) => record))
    const made: InodeRecord[] = []
    const failed: InodeRecord[] = []
    for (const { handle, now, record, want } of this.#changes) {
      try {
        if (change(this.#inodes, handle, now, want, record.capability)) this.#report.changed++
        else this.#report.alreadyRight++
        made.push(record)
      } catch (error) {
        const reason = TOLERATED[errorCode(error) ?? '']
        if (reason === undefined) throw error
        leave(this.#report, reason, record.path)
        failed.push(record)
      }
    }
    this.close()
    this.#outcome(made, failed)
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const { handle } of this.#changes) this.#inodes.close(handle)
    this.#changes = []
  }
}
