import { encode } from '../codec.ts'
import type { Sighting } from '../hard-links.ts'
import type { Answer, Ledger } from '../ledger.ts'
import type { InodeRecord } from '../record.ts'
import type { MemberPort } from './member-port.ts'
import { packKeys } from './messages.ts'
import { packSightings, unpackAnswers } from './packing.ts'

/** The ledger of a thread that has no journal: the lead has it. */
export class RemoteLedger implements Ledger {
  readonly #lead: MemberPort
  readonly #durable = new Set<number>()
  /** Goes to the lead with the records of a batch, and comes back for those of another. */
  readonly #spare: ArrayBuffer[] = []
  /** The same for answers. */
  #spareForAnswers: ArrayBuffer | undefined
  #batches = 0

  constructor(lead: MemberPort) {
    this.#lead = lead
  }

  ask(sightings: readonly Sighting[]): Answer[] {
    const memory = this.#spareForAnswers
    this.#lead.say({ say: 'ask', sightings: packSightings(sightings), memory }, memory ? [memory] : [])
    const { answers } = this.#lead.await('answers')
    const unpacked = unpackAnswers(answers)
    this.#spareForAnswers = answers.records.buffer
    return unpacked
  }

  record(records: readonly InodeRecord[]): number {
    const batch = this.#batches++
    const encoded = encode(records, this.#spare.pop())
    this.#lead.say({ say: 'record', batch, records: encoded }, [encoded.buffer])
    return batch
  }

  awaitDurable(batch: number): void {
    while (!this.#durable.delete(batch)) {
      const { batch: other, memory } = this.#lead.await('durable')
      this.#durable.add(other)
      this.#spare.push(memory)
    }
  }

  settle(batch: number): void {
    this.#lead.say({ say: 'settle', batch })
  }

  forget(records: readonly InodeRecord[]): void {
    this.#lead.say({ say: 'forget', keys: packKeys(records) })
  }
}
