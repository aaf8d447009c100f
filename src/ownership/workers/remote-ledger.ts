import type { InodeRecord } from '../inode/record.ts'
import { encode } from '../journal/codec.ts'
import type { Sighting } from '../walk/hard-links.ts'
import type { Answer, Batch, Ledger } from '../walk/ledger.ts'
import { packKeys, packSightings, unpackAnswers } from './messages.ts'
import type { WorkerPort } from './worker-port.ts'

/** The ledger of a thread that has no journal: the pool has it. */
export class RemoteLedger implements Ledger {
  readonly #pool: WorkerPort
  readonly #durable = new Set<number>()
  /** Goes to the pool with the records of a batch, and comes back for those of another. */
  readonly #spare: ArrayBuffer[] = []
  /** The same for answers. */
  #spareForAnswers: ArrayBuffer | undefined
  #batches = 0

  constructor(pool: WorkerPort) {
    this.#pool = pool
  }

  ask(sightings: readonly Sighting[]): Answer[] {
    const memory = this.#spareForAnswers
    this.#pool.say({ say: 'ask', sightings: packSightings(sightings), memory }, memory ? [memory] : [])
    const { answers } = this.#pool.await('answers')
    const unpacked = unpackAnswers(answers)
    this.#spareForAnswers = answers.records.buffer
    return unpacked
  }

  record(records: readonly InodeRecord[]): Batch {
    const batch = this.#batches++
    const encoded = encode(records, this.#spare.pop())
    this.#pool.say({ say: 'record', batch, records: encoded }, [encoded.buffer])
    return {
      awaitDurable: () => this.#awaitDurable(batch),
      settle: () => this.#pool.say({ say: 'settle', batch }),
    }
  }

  #awaitDurable(batch: number): void {
    while (!this.#durable.delete(batch)) {
      const { batch: other, memory } = this.#pool.await('durable')
      this.#durable.add(other)
      this.#spare.push(memory)
    }
  }

  forget(records: readonly InodeRecord[]): void {
    this.#pool.say({ say: 'forget', keys: packKeys(records) })
  }
}
