import type { Inodes } from '../host/host.ts'
import type { Held } from './held.ts'
import type { Answer, Ledger, Sighting } from './ledger.ts'
import { type Change, makeChanges } from './make.ts'
import type { InodeRecord } from './record.ts'
import { leave, type WalkReport } from './report.ts'
import type { Task } from './task.ts'
import { isDirectory } from './traverse.ts'

/** One commit to disk for so many inodes; twice as many handles may be held, while one batch is on its way to disk. */
export const BATCH_SIZE = 1000

/** An inode to decide on. */
interface Candidate {
  held: Held
  path: Uint8Array
}

interface Recorded {
  batch: number
  changes: Change[]
}

/**
 * Inodes on their way to be changed. A full batch is decided on and recorded, and while its records are on their way to
 * disk the next is collected; then its changes are made.
 */
export class Pipeline {
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #ledger: Ledger
  readonly #report: WalkReport
  readonly #onBatch: () => void
  #candidates: Candidate[] = []
  #recorded: Recorded | undefined

  constructor(inodes: Inodes, task: Task, ledger: Ledger, report: WalkReport, onBatch: () => void = () => {}) {
    this.#inodes = inodes
    this.#task = task
    this.#ledger = ledger
    this.#report = report
    this.#onBatch = onBatch
  }

  isEmpty(): boolean {
    return this.#candidates.length === 0 && this.#recorded === undefined
  }

  collect(held: Held, path: Uint8Array): void {
    this.#candidates.push({ held, path })
    if (this.#candidates.length >= BATCH_SIZE) this.#turn()
  }

  /** Records and makes all there is. */
  flush(): void {
    while (!this.isEmpty()) this.#turn()
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    for (const { held } of [...this.#candidates, ...(this.#recorded?.changes ?? [])]) this.#inodes.close(held.handle)
    this.#candidates = []
    this.#recorded = undefined
  }

  /** Records what was collected, and makes the changes that were recorded before. */
  #turn(): void {
    const previous = this.#recorded
    this.#recorded = this.#record()
    if (previous) this.#make(previous)
    this.#onBatch()
  }

  #record(): Recorded | undefined {
    const candidates = this.#candidates
    this.#candidates = []
    const answers = this.#answers(candidates)
    const changes: Change[] = []
    const records: InodeRecord[] = []
    for (const [index, { held, path }] of candidates.entries()) {
      const answer = answers?.[index]
      const decided = answer === 'wait' ? {} : this.#task.decide(held, path, answer)
      if (decided.leave) leave(this.#report, decided.leave, path)
      if (decided.forfeits) leave(this.#report, 'privileges not given back', path)
      const record = decided.change ?? decided.settle
      if (record) records.push(record)
      if (decided.change) changes.push({ held, record: decided.change })
      else this.#inodes.close(held.handle)
    }
    return records.length === 0 ? undefined : { changes, batch: this.#ledger.record(records) }
  }

  /** Undefined: nothing had to be asked. */
  #answers(candidates: readonly Candidate[]): Answer[] | undefined {
    const asked: Sighting[] = []
    const places: number[] = []
    for (const [index, { held, path }] of candidates.entries()) {
      const { stat } = held
      const links = isDirectory(stat) ? 1 : stat.links
      if (links <= 1 && !this.#task.asksFor(stat)) continue
      asked.push({ inode: stat.inode, born: stat.born, links, changed: stat.changed, path })
      places.push(index)
    }
    if (asked.length === 0) return undefined
    const answers = this.#ledger.ask(asked)
    const byPlace: Answer[] = []
    for (const [index, place] of places.entries()) byPlace[place] = answers[index]
    return byPlace
  }

  #make({ batch, changes }: Recorded): void {
    try {
      this.#ledger.awaitDurable(batch)
      const { made, failed } = makeChanges(this.#inodes, changes, this.#report)
      this.#ledger.settle(batch)
      if (this.#task.forgets && made.length > 0) this.#ledger.forget(made)
      // Recorded as what they still are, so that the next walk or restore tries them again.
      if (failed.length > 0) this.#ledger.settle(this.#ledger.record(failed.map((r) => ({ ...r, after: r.seen }))))
    } finally {
      for (const { held } of changes) this.#inodes.close(held.handle)
    }
  }
}
