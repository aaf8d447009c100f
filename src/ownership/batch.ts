import { errorCode, type Inodes } from '../host/host.ts'
import { capabilityOf } from './capability.ts'
import { change } from './change.ts'
import type { Held } from './held.ts'
import type { Journal } from './journal.ts'
import { type Ownership, ownershipOf, same } from './policy.ts'
import { type InodeRecord, type Meant, sameBytes } from './record.ts'
import { type LeftReason, leave, type WalkReport } from './report.ts'

// One commit to disk for so many changes; as many handles are held meanwhile.
const BATCH_SIZE = 512

/** Errors that are about one inode: it is reported and left, the walk goes on. Everything else stops it. */
const TOLERATED: Readonly<Record<string, LeftReason>> = {
  EPERM: 'immutable or append-only',
  EROFS: 'read-only',
  EDQUOT: 'over quota',
}

interface Change {
  held: Held
  record: InodeRecord
}

/** Changes on their way: first all recorded durably, then made, each on the inode that was looked at. */
export class Batch {
  readonly #inodes: Inodes
  readonly #journal: Journal
  readonly #report: WalkReport
  readonly #made: (records: InodeRecord[]) => void
  #changes: Change[] = []

  /** @param made is told after each flush which inodes now are as wanted */
  constructor(inodes: Inodes, journal: Journal, report: WalkReport, made: (records: InodeRecord[]) => void = () => {}) {
    this.#inodes = inodes
    this.#journal = journal
    this.#report = report
    this.#made = made
  }

  /**
   * @param held the inode, as it was seen
   * @param state what it would be if no call had died on it
   * @param after what to make of it
   */
  add(held: Held, record: InodeRecord, state: Meant, after: Ownership): void {
    const { modified, size } = held.stat
    const forfeited = record.forfeited || state.forfeit === true
    const seen = ownershipOf(held.stat)
    const seenWhole = sameBytes(forfeited ? null : record.capability, held.capability)
    const now = { modified, size, seen, seenWhole, meant: { gid: state.gid, mode: state.mode }, forfeited }
    this.#changes.push({ held, record: { ...record, ...now, after, settled: false } })
    if (state.forfeit) leave(this.#report, 'privileges not given back', record.path)
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
    this.#made(made)
    // Recorded as what they still are, so that the next walk or restore tries them again.
    if (failed.length > 0) this.#journal.record(failed.map((record) => ({ ...record, after: record.seen })))
  }

  /** Why the inode was left, if it was. Half a change is not to be passed over: the next call must finish it. */
  #make({ held, record }: Change): LeftReason | undefined {
    try {
      const outcome = change(this.#inodes, held, record)
      if (outcome === 'overtaken') {
        if (isWhole(record)) return 'changed during the walk'
        throw new Error('a file was changed while a call that died on it was being finished; the next call goes on')
      }
      this.#report[outcome === 'changed' ? 'changed' : 'alreadyRight']++
      return undefined
    } catch (error) {
      const reason = TOLERATED[errorCode(error) ?? '']
      if (reason && isWhole(record) && this.#isAsSeen(held, record)) return reason
      throw error
    }
  }

  #isAsSeen({ handle, capability }: Held, record: InodeRecord): boolean {
    const now = this.#inodes.stat(handle)
    if (!same(ownershipOf(now), record.seen)) return false
    return capability === null || sameBytes(capabilityOf(this.#inodes, handle), capability)
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const { held } of this.#changes) this.#inodes.close(held.handle)
    this.#changes = []
  }
}

/** No call had died on the inode when it was recorded. */
function isWhole({ seen, meant, seenWhole }: InodeRecord): boolean {
  return seenWhole && same(seen, meant)
}
