import type { Journal } from '../journal/journal.ts'
import { unpackKeys } from './packing.ts'

interface Pending {
  index: number
  batch: number
  records: Uint8Array<ArrayBuffer>
}

type Durable = (index: number, batch: number, memory: ArrayBuffer) => void

/** The journal for several threads: what they record at about the same time becomes durable with one commit. */
export class PoolJournal {
  readonly #journal: Journal
  readonly #durable: Durable
  readonly #fail: (error: unknown) => void
  readonly #batches = new Map<string, bigint>()
  #pending: Pending[] = []

  /** @param durable tells a worker that its batch is on disk, and gives its memory back; `fail`: that it could not be put there */
  constructor(journal: Journal, durable: Durable, fail: (error: unknown) => void) {
    this.#journal = journal
    this.#durable = durable
    this.#fail = fail
  }

  record(index: number, { batch, records }: Omit<Pending, 'index'>): void {
    this.#pending.push({ index, batch, records })
    if (this.#pending.length === 1) setImmediate(() => this.#commit())
  }

  #commit(): void {
    const pending = this.#pending
    this.#pending = []
    try {
      const batches = this.#journal.appendAll(pending.map(({ records }) => records))
      for (const [at, { index, batch, records }] of pending.entries()) {
        this.#batches.set(`${index}-${batch}`, batches[at] ?? 0n)
        this.#durable(index, batch, records.buffer)
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  settle(index: number, batch: number): void {
    const key = `${index}-${batch}`
    const settled = this.#batches.get(key)
    if (settled !== undefined) this.#journal.settle(settled)
    this.#batches.delete(key)
  }

  forget(keys: BigInt64Array): void {
    this.#journal.forget(unpackKeys(keys))
  }
}
