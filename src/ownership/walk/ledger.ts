import { keyOf } from '../inode/open-inode.ts'
import type { InodeRecord } from '../inode/record.ts'
import { decode, type Encoded } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import type { HardLinks, Sighting } from './hard-links.ts'

/** `wait`: of an inode with several names, this is not the one under which it is to be dealt with. */
export type Answer = 'wait' | InodeRecord | undefined

export type EncodedAnswer = 'wait' | (Encoded & { settled: boolean }) | undefined

/** What a walk must know of the whole volume, and its way to the journal, whichever thread it runs in. */
export interface Ledger {
  /** One answer for each sighting: what the journal holds of the inode. */
  ask(sightings: readonly Sighting[]): Answer[]
  /** Begins to make records durable; returns a number for the batch. */
  record(records: readonly InodeRecord[]): number
  /** Returns when the batch is on disk. */
  awaitDurable(batch: number): void
  /** All changes of the batch have been made. */
  settle(batch: number): void
  /** Nothing is left to put back. */
  forget(records: readonly InodeRecord[]): void
}

/** In the thread that has the journal. */
export class LocalLedger implements Ledger {
  readonly #journal: Journal
  readonly #names: Names
  readonly #batches: bigint[] = []

  constructor(journal: Journal, names: Names) {
    this.#journal = journal
    this.#names = names
  }

  ask(sightings: readonly Sighting[]): Answer[] {
    return sightings.map((sighting) => {
      const answer = this.askEncoded(sighting)
      return typeof answer === 'object' ? decode(answer, answer.settled) : answer
    })
  }

  /** The same of one inode, for another thread. */
  askEncoded(sighting: Sighting): EncodedAnswer {
    if (sighting.links > 1 && !this.#names.isTurn(sighting)) return 'wait'
    const found = this.#journal.findEncoded(sighting.inode, sighting.born)
    // Met a second time while it is being changed.
    return found?.underWay ? 'wait' : found
  }

  record(records: readonly InodeRecord[]): number {
    return this.#batches.push(this.#journal.append(records)) - 1
  }

  awaitDurable(): void {
    // It is when append returns.
  }

  settle(batch: number): void {
    this.#journal.settle(this.#batches[batch] ?? 0n)
  }

  forget(records: readonly InodeRecord[]): void {
    this.#journal.forget(records)
  }
}

/** Decides under which of its names an inode with several is dealt with. */
export interface Names {
  isTurn(sighting: Sighting): boolean
}

/** A group is given under the last name, when all have been seen inside the volume. */
export function lastName(links: HardLinks): Names {
  return { isTurn: (sighting) => links.completes(sighting) }
}

/** A recorded inode is put back under the first: a second name says nothing new. */
export function firstName(): Names {
  const met = new Set<string>()
  return { isTurn: (sighting) => met.size < met.add(keyOf(sighting)).size }
}
