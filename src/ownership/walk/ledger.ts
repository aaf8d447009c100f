import type { InodeRecord } from '../inode/record.ts'
import { decode, type Encoded } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import type { LinkNames, Sighting } from './hard-links.ts'

/** `wait`: of an inode with several names, this is not the one under which it is to be dealt with. */
export type Answer = 'wait' | InodeRecord | undefined

export type EncodedAnswer = 'wait' | (Encoded & { settled: boolean }) | undefined

/** Records on their way to disk. */
export interface Batch {
  /** Returns when they are there. */
  awaitDurable(): void
  /** All their changes have been made. */
  settle(): void
}

/** What a walk must know of the whole volume, and its way to the journal, whichever thread it runs in. */
export interface Ledger {
  /** One answer for each sighting: what the journal holds of the inode. Each counts as a name that was met. */
  ask(sightings: readonly Sighting[]): Answer[]
  /** Undefined: nothing is recorded, so nothing may be changed. */
  record(records: readonly InodeRecord[]): Batch | undefined
  /** Nothing is left to put back. */
  forget(records: readonly InodeRecord[]): void
}

/** Records nothing: a walk with it is a survey. */
export class SurveyLedger implements Ledger {
  readonly names: LinkNames
  readonly #journal: Journal | undefined

  /** @param journal what earlier walks have recorded; undefined: nothing */
  constructor(journal: Journal | undefined, names: LinkNames) {
    this.#journal = journal
    this.names = names
  }

  ask(sightings: readonly Sighting[]): Answer[] {
    return sightings.map((sighting) => {
      const answer = this.askEncoded(sighting)
      return typeof answer === 'object' ? decode(answer, answer.settled) : answer
    })
  }

  /** The same of one inode, for another thread. */
  askEncoded(sighting: Sighting): EncodedAnswer {
    if (sighting.links > 1 && !this.names.addName(sighting)) return 'wait'
    const found = this.#journal?.findEncoded(sighting.inode, sighting.born)
    // Met a second time while it is being changed.
    return found?.underWay ? 'wait' : found
  }

  record(_records: readonly InodeRecord[]): Batch | undefined {
    return undefined
  }

  forget(_records: readonly InodeRecord[]): void {}
}

/** In the thread that has the journal. */
export class JournalLedger extends SurveyLedger {
  readonly #journal: Journal

  constructor(journal: Journal, names: LinkNames) {
    super(journal, names)
    this.#journal = journal
  }

  override record(records: readonly InodeRecord[]): Batch {
    const batch = this.#journal.append(records)
    // It is on disk when append returns.
    return { awaitDurable() {}, settle: () => this.#journal.settle(batch) }
  }

  override forget(records: readonly InodeRecord[]): void {
    this.#journal.forget(records)
  }
}
