import { encode } from '../codec.ts'
import type { Answer, Ledger, Sighting } from '../ledger.ts'
import type { InodeRecord } from '../record.ts'
import type { MemberPort } from './member-port.ts'
import { packKeys } from './messages.ts'
import { packSightings, unpackAnswers } from './packing.ts'

/** The ledger of a thread that has no journal: the lead has it. */
export class RemoteLedger implements Ledger {
  readonly #lead: MemberPort
  readonly #durable = new Set<number>()
  #batches = 0

  constructor(lead: MemberPort) {
    this.#lead = lead
  }

  ask(sightings: readonly Sighting[]): Answer[] {
    this.#lead.say({ say: 'ask', sightings: packSightings(sightings) })
    return unpackAnswers(this.#lead.await('answers').answers)
  }

  record(records: readonly InodeRecord[]): number {
    const batch = this.#batches++
    this.#lead.say({ say: 'record', batch, records: encode(records) })
    return batch
  }

  awaitDurable(batch: number): void {
    while (!this.#durable.delete(batch)) this.#durable.add(this.#lead.await('durable').batch)
  }

  settle(batch: number): void {
    this.#lead.say({ say: 'settle', batch })
  }

  forget(records: readonly InodeRecord[]): void {
    this.#lead.say({ say: 'forget', keys: packKeys(records) })
  }
}
