import type { InodeRecord } from '../inode/record.ts'
import { decode, type Encoded, encode } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import type { HardLinks, Sighting } from './hard-links.ts'

/** Inodes that a ledger is asked of. It can be sent. */
export interface Question {
  /** Inode and birth time of each in turn. */
  keys: BigInt64Array
  /** By their place those with several names: each counts as a name that was met. */
  sightings: ReadonlyMap<number, Sighting>
}

/** `wait`: it is being changed, or is an inode with several names and is dealt with under another one. */
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
  /** What the journal holds of each inode: a function that waits for the answers, which are on their way meanwhile. */
  ask(question: Question): () => Answer[]
  /** Undefined: nothing is recorded, so nothing may be changed. */
  record(records: readonly InodeRecord[]): Batch | undefined
  /** Nothing is left to put back. @param keys inode and birth time of each in turn */
  forget(keys: BigInt64Array): void
}

/** In the thread that has the journal. */
export class JournalLedger implements Ledger {
  readonly #journal: Journal | undefined
  readonly #names: Pick<HardLinks, 'addName'>
  readonly #isSurvey: boolean

  /**
   * @param journal what earlier walks have recorded; undefined: nothing
   * @param names decides under which of its names an inode with several is dealt with
   * @param isSurvey records nothing, and so has nothing changed
   */
  constructor(journal: Journal | undefined, names: Pick<HardLinks, 'addName'>, isSurvey: boolean) {
    this.#journal = journal
    this.#names = names
    this.#isSurvey = isSurvey
  }

  ask(question: Question): () => Answer[] {
    const answers = Array.from(this.find(question), (found) =>
      typeof found === 'object' ? decode(found, found.settled) : found,
    )
    return () => answers
  }

  /** The same as it lies in the journal, for another thread. */
  *find({ keys, sightings }: Question): Generator<EncodedAnswer> {
    for (let index = 0; index * 2 < keys.length; index++) {
      const sighting = sightings.get(index)
      const isItsTurn = sighting === undefined || this.#names.addName(sighting)
      const found = isItsTurn ? this.#journal?.find(keys[index * 2] ?? 0n, keys[index * 2 + 1] ?? 0n) : 'wait'
      // Met a second time while it is being changed.
      yield typeof found === 'object' && found.underWay ? 'wait' : found
    }
  }

  record(records: readonly InodeRecord[]): Batch | undefined {
    const journal = this.#isSurvey ? undefined : this.#journal
    if (journal === undefined) return undefined
    const [batch = 0n] = journal.append([encode(records)])
    // It is on disk when append returns.
    return { awaitDurable() {}, settle: () => journal.settle(batch) }
  }

  forget(keys: BigInt64Array): void {
    this.#journal?.forget(keys)
  }
}
