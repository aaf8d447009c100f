import type { Stat } from '../../kernel/host.ts'
import type { InodeRecord } from '../inode/record.ts'
import type { EncodedRecord } from '../journal/codec.ts'
import type { Journal, JournalRecord } from '../journal/journal.ts'
import type { RecordedInodeStates } from '../journal/record-index.ts'
import type { HardLinkCounter, HardLinkVisit } from './hard-links.ts'

/** Inodes whose records are queried. */
export interface JournalQuery {
  /** Inode and birth time of each in turn. */
  keys: BigInt64Array
  /** Inodes with several names, by index. Each counts as a visited name. */
  sightings: ReadonlyMap<number, HardLinkVisit>
}

/** A record of the journal. `wait`: the inode is being changed, or is dealt with under another of its names. */
export type JournalAnswer = 'wait' | JournalRecord | undefined

/** Like JournalAnswer, for a plain inode; `other`: its record says more than its states. */
export type PlainInodeJournalAnswer = 'wait' | RecordedInodeStates | 'other' | undefined

/** A walk's access to the journal and to the names of inodes with several. */
export class WalkLedger {
  readonly #journal: Journal | undefined
  readonly #names: Pick<HardLinkCounter, 'addName'>
  /** Nothing is recorded, so nothing may be changed. */
  readonly isSurvey: boolean

  /**
   * @param journal records of earlier walks; undefined: none
   * @param names decides under which of its names an inode is dealt with
   */
  constructor(journal: Journal | undefined, names: Pick<HardLinkCounter, 'addName'>, isSurvey: boolean) {
    this.#journal = journal
    this.#names = names
    this.isSurvey = isSurvey
  }

  /** Returns the record of each inode. */
  query({ keys, sightings }: JournalQuery): JournalAnswer[] {
    const none = () => Array.from({ length: keys.length / 2 }, () => undefined)
    const answers: JournalAnswer[] = this.#journal?.find(keys) ?? none()
    for (const [index, answer] of answers.entries()) {
      // The inode is visited again while it is being changed.
      if (typeof answer === 'object' && answer.isInProgress) answers[index] = 'wait'
    }
    for (const [index, sighting] of sightings) if (!this.#names.addName(sighting)) answers[index] = 'wait'
    return answers
  }

  /** Returns the states of plain inodes: see Journal.findStates. */
  findStates(keys: BigInt64Array): PlainInodeJournalAnswer[] {
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
    if (this.#journal === undefined) throw new Error('internal error: a walk that changes inodes needs a journal')
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

/** Inodes recorded by one commit. */
const MAX_BATCH_INODES = 1200
const MIN_BATCH_INODES = 8
/** Handles not used by batches: the directories on the stack, and those of Node itself. */
const RESERVED_HANDLES = 100

/** One batch is collected and recorded while the changes of the previous one are made. */
export const BATCHES_PER_PIPELINE = 2
/** Runs of entries, none larger than a batch. One is inspected while the other is dealt with. */
const ENTRY_RUNS_PER_WALK = 2

/**
 * Returns how many inodes may be recorded at once. Each is held open from its inspection to its change.
 * @param handleLimit the process's limit of open handles (RLIMIT_NOFILE)
 * @param pipelines of the walk: one, or one for directories and one for all other inodes
 * @param maxSize the largest useful batch
 */
export function computeBatchSize(handleLimit: number, pipelines: number, maxSize = MAX_BATCH_INODES): number {
  return Math.max(
    MIN_BATCH_INODES,
    Math.min(
      maxSize,
      Math.floor((handleLimit - RESERVED_HANDLES) / (BATCHES_PER_PIPELINE * pipelines + ENTRY_RUNS_PER_WALK)),
    ),
  )
}

/** Is notified of a walk's inodes. */
export interface WalkObserver {
  /** Called for every inode, also a skipped one. `stat` may be a Look. */
  onVisit(stat: Stat): void
  /** Called for an inode that would be changed, in a walk that records nothing. `stat` may be a Look. */
  onWouldChange(stat: Stat, record: InodeRecord): void
  /** Called for a directory or file that the walk does not enter, because another mount or device begins there. */
  onBoundary?(stat: Stat): void
}

export interface WalkBatchSettings {
  batchSize: number
  /** Called after every batch, and after every run of entries. */
  onStep?: () => void
  observer?: WalkObserver | undefined
}
