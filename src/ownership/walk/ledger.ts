import type { InodeRecord } from '../inode/record.ts'
import type { Encoded } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import type { States } from '../journal/state-table.ts'
import type { HardLinks, Sighting } from './hard-links.ts'

/** Inodes that a ledger is asked of. */
export interface Question {
  /** Inode and birth time of each in turn. */
  keys: BigInt64Array
  /** By their place those with several names: each counts as a name that was met. */
  sightings: ReadonlyMap<number, Sighting>
}

/**
 * A record as it lies in the journal. `wait`: the inode is being changed, or has several names and is dealt with under
 * another one.
 */
export type Answer = 'wait' | Known | undefined

type Known = Encoded & { settled: boolean; underWay?: boolean }

/** The same of a plain inode; `other`: there is more to its record. */
export type PlainAnswer = 'wait' | States | 'other' | undefined

/** What a walk must know of the whole volume, and its way to the journal. */
export class Ledger {
  readonly #journal: Journal | undefined
  readonly #names: Pick<HardLinks, 'addName'>
  /** Nothing is recorded, so nothing may be changed. */
  readonly isSurvey: boolean

  /**
   * @param journal what earlier walks have recorded; undefined: nothing
   * @param names decides under which of its names an inode with several is dealt with
   */
  constructor(journal: Journal | undefined, names: Pick<HardLinks, 'addName'>, isSurvey: boolean) {
    this.#journal = journal
    this.#names = names
    this.isSurvey = isSurvey
  }

  /** What the journal holds of each inode. */
  ask({ keys, sightings }: Question): Answer[] {
    const none = () => Array.from({ length: keys.length / 2 }, () => undefined)
    const answers: Answer[] = this.#journal?.find(keys) ?? none()
    for (const [index, answer] of answers.entries()) {
      // Met a second time while it is being changed.
      if (typeof answer === 'object' && answer.underWay) answers[index] = 'wait'
    }
    for (const [index, sighting] of sightings) if (!this.#names.addName(sighting)) answers[index] = 'wait'
    return answers
  }

  /** What is known of plain inodes: see Journal.statesOf. */
  statesOf(keys: BigInt64Array): PlainAnswer[] {
    return this.#journal?.statesOf(keys) ?? Array.from({ length: keys.length / 2 }, () => undefined)
  }

  /** The whole record of an inode. @param key inode and birth time */
  find(key: BigInt64Array): Known | undefined {
    return this.#journal?.find(key)[0]
  }

  /** What `ask` or `find` has told, or a record that was put together of it. @param settled see InodeRecord */
  decode(record: Encoded, settled: boolean): InodeRecord {
    return this.#recorded().decode(record, settled)
  }

  /** @param plain see Journal.append @returns the batch's number: they are on disk */
  record(records: readonly InodeRecord[], plain?: Uint8Array): bigint {
    return this.#recorded().append(records, plain)
  }

  #recorded(): Journal {
    if (this.#journal === undefined) throw new Error('a walk without a journal changes nothing')
    return this.#journal
  }

  /** All its changes have been made. */
  settle(batch: bigint): void {
    this.#journal?.settle(batch)
  }

  /** Nothing is left to put back. @param keys inode and birth time of each in turn */
  forget(keys: BigInt64Array): void {
    this.#journal?.forget(keys)
  }
}
