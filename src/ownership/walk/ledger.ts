import type { InodeRecord } from '../inode/record.ts'
import type { EncodedRecord } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import type { RecordedStates } from '../journal/state-table.ts'
import type { HardLinks, LinkSighting } from './hard-links.ts'

/** Inodes whose records are queried. */
export interface LedgerQuery {
  /** Inode and birth time of each in turn. */
  keys: BigInt64Array
  /** Inodes with several names, by index. Each counts as a visited name. */
  sightings: ReadonlyMap<number, LinkSighting>
}

/** A record of the journal. `wait`: the inode is being changed, or is dealt with under another of its names. */
export type LedgerAnswer = 'wait' | JournalRecord | undefined

type JournalRecord = EncodedRecord & { settled: boolean; isInProgress?: boolean }

/** Like LedgerAnswer, for a plain inode; `other`: its record says more than its states. */
export type PlainLedgerAnswer = 'wait' | RecordedStates | 'other' | undefined

/** A walk's access to the journal and to the names of inodes with several. */
export class Ledger {
  readonly #journal: Journal | undefined
  readonly #names: Pick<HardLinks, 'addName'>
  /** Nothing is recorded, so nothing may be changed. */
  readonly isSurvey: boolean

  /**
   * @param journal records of earlier walks; undefined: none
   * @param names decides under which of its names an inode is dealt with
   */
  constructor(journal: Journal | undefined, names: Pick<HardLinks, 'addName'>, isSurvey: boolean) {
    this.#journal = journal
    this.#names = names
    this.isSurvey = isSurvey
  }

  /** Returns the record of each inode. */
  query({ keys, sightings }: LedgerQuery): LedgerAnswer[] {
    const none = () => Array.from({ length: keys.length / 2 }, () => undefined)
    const answers: LedgerAnswer[] = this.#journal?.find(keys) ?? none()
    for (const [index, answer] of answers.entries()) {
      // The inode is visited again while it is being changed.
      if (typeof answer === 'object' && answer.isInProgress) answers[index] = 'wait'
    }
    for (const [index, sighting] of sightings) if (!this.#names.addName(sighting)) answers[index] = 'wait'
    return answers
  }

  /** Returns the states of plain inodes: see Journal.findStates. */
  findStates(keys: BigInt64Array): PlainLedgerAnswer[] {
    return this.#journal?.findStates(keys) ?? Array.from({ length: keys.length / 2 }, () => undefined)
  }

  /** Returns the full record of an inode. @param key inode and birth time */
  find(key: BigInt64Array): JournalRecord | undefined {
    return this.#journal?.find(key)[0]
  }

  /**
   * @param record from `query` or `find`, or composed of one
   * @param settled see InodeRecord
   */
  decode(record: EncodedRecord, settled: boolean): InodeRecord {
    return this.#requireJournal().decode(record, settled)
  }

  /**
   * @param plain see Journal.append
   * @returns the batch's number; its records are on disk
   */
  record(records: readonly InodeRecord[], plain?: Uint8Array): bigint {
    return this.#requireJournal().append(records, plain)
  }

  #requireJournal(): Journal {
    if (this.#journal === undefined) throw new Error('a walk without a journal changes nothing')
    return this.#journal
  }

  /** Marks all changes of the batch as made. */
  settle(batch: bigint): void {
    this.#journal?.settle(batch)
  }

  /** Forgets inodes that have nothing left to restore. @param keys inode and birth time of each in turn */
  forget(keys: BigInt64Array): void {
    this.#journal?.forget(keys)
  }
}
