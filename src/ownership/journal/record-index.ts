import { isSameOwnership, type Ownership } from '../inode/policy.ts'
import { createDataView } from './codec.ts'
import { IntHashTable } from './int-table.ts'
import { findRecordStarts, RECORD_KEY_OFFSET } from './layout.ts'

/** Position of the last record, counted from 1. */
const LAST_POSITION_COLUMN = 0
/** See InodeStateTable; the VISITED_INODE_FLAG bit is set once a walk has visited the inode. */
const STATE_ID_COLUMN = 1
const INDEX_VALUE_COLUMNS = 2
/** A sparse value: position of the first record, counted from 1. 0: it is the last record. */
const FIRST_POSITION_COLUMN = 0
const SPARSE_VALUE_COLUMNS = 1
// The upper word of most inodes is 0, so it is the last one of the key.
const KEY_WORD_ORDER = [0, 3, 1, 2]
const FORGOTTEN_POSITION = 0
const VISITED_INODE_FLAG = 0x8000

/**
 * Maps an inode to the positions of its first record, which has the original state, and of its last.
 * Entries keep the order of insertion, which mostly is the order of the lookups. A forgotten inode keeps its entry.
 */
export class RecordIndex {
  /** Keys: see KEY_WORD_ORDER. */
  readonly #table: IntHashTable
  /** The entry after the last one found, which mostly is the next one looked up. */
  #next = 0
  /** Number of inodes with a record. */
  size = 0

  /** @param expected estimated number of inodes; the table grows */
  constructor(expected: number) {
    this.#table = new IntHashTable(INDEX_VALUE_COLUMNS, SPARSE_VALUE_COLUMNS, expected)
  }

  /**
   * @param bytes and `at`: inode and birth time, 16 bytes
   * @param place position of a record, counted from 0
   * @returns the number of its entry
   */
  add(bytes: DataView, at: number, place: number): number {
    const table = this.#table
    const entry = this.#findEntry(bytes, at) ?? this.#insert(bytes, at)
    const last = table.get(entry, LAST_POSITION_COLUMN)
    if (last === FORGOTTEN_POSITION) {
      this.size++
      table.setSparse(entry, FIRST_POSITION_COLUMN, 0)
    } else if (table.getSparse(entry, FIRST_POSITION_COLUMN) === 0) table.setSparse(entry, FIRST_POSITION_COLUMN, last)
    table.set(entry, LAST_POSITION_COLUMN, place + 1)
    return entry
  }

  #insert(bytes: DataView, at: number): number {
    return this.#table.insert(
      bytes.getInt32(at, true),
      bytes.getInt32(at + 8, true),
      bytes.getInt32(at + 12, true),
      bytes.getInt32(at + 4, true),
    )
  }

  getState(entry: number): number {
    return this.#table.get(entry, STATE_ID_COLUMN) & ~VISITED_INODE_FLAG
  }

  setState(entry: number, state: number): void {
    this.#table.set(entry, STATE_ID_COLUMN, state)
  }

  markVisited(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry !== undefined)
      this.#table.set(entry, STATE_ID_COLUMN, this.#table.get(entry, STATE_ID_COLUMN) | VISITED_INODE_FLAG)
  }

  /** Returns inode and birth time in turn of the inodes that have a record and were not visited. */
  listUnvisited(): BigInt64Array {
    const words: number[] = []
    for (let entry = 0; entry < this.#table.end; entry++) {
      const isVisited = (this.#table.get(entry, STATE_ID_COLUMN) & VISITED_INODE_FLAG) !== 0
      if (isVisited || this.#table.get(entry, LAST_POSITION_COLUMN) === FORGOTTEN_POSITION) continue
      for (const word of KEY_WORD_ORDER) words.push(this.#table.getKey(entry, word))
    }
    return new BigInt64Array(Int32Array.from(words).buffer)
  }

  remove(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry === undefined) return
    this.#table.set(entry, LAST_POSITION_COLUMN, FORGOTTEN_POSITION)
    this.size--
  }

  /** Returns the entry of an inode that has a record. */
  find(bytes: DataView, at: number): number | undefined {
    const entry = this.#findEntry(bytes, at)
    return entry === undefined || this.#table.get(entry, LAST_POSITION_COLUMN) === FORGOTTEN_POSITION
      ? undefined
      : entry
  }

  /** Returns the position of an entry's first record. */
  getFirst(entry: number): number {
    return (this.#table.getSparse(entry, FIRST_POSITION_COLUMN) || this.#table.get(entry, LAST_POSITION_COLUMN)) - 1
  }

  /** Returns the position of an entry's last record; below 0: the inode is forgotten. */
  getLast(entry: number): number {
    return this.#table.get(entry, LAST_POSITION_COLUMN) - 1
  }

  /** Also finds a forgotten inode. */
  #findEntry(bytes: DataView, at: number): number | undefined {
    const a = bytes.getInt32(at, true)
    const b = bytes.getInt32(at + 8, true)
    const c = bytes.getInt32(at + 12, true)
    const d = bytes.getInt32(at + 4, true)
    const next = this.#next
    const isNext = next < this.#table.end && this.#table.hasKey(next, a, b, c, d)
    const entry = isNext ? next : this.#table.find(a, b, c, d)
    if (entry !== undefined) this.#next = entry + 1
    return entry
  }
}

/** State of an inode before it was first recorded, and the target of its latest change. */
export interface RecordedInodeStates {
  before: Ownership
  after: Ownership
}

/** Users can make any number of different states; most volumes have a handful. */
const MAX_INODE_STATES = 4096
export const NO_STATE_ID = 0

/** Assigns numbers to the states of inodes. Equal states are stored once. */
export class InodeStateTable {
  readonly #all: RecordedInodeStates[] = []
  readonly #ids = new Map<string, number>()
  #latest = NO_STATE_ID

  /** @returns NO_STATE_ID if there are too many different states */
  assignId(before: Ownership, after: Ownership): number {
    const latest = this.get(this.#latest)
    // Most inodes have the same states as the previous one.
    if (latest && isSameOwnership(latest.before, before) && isSameOwnership(latest.after, after)) return this.#latest
    const key = `${before.gid} ${before.mode} ${after.gid} ${after.mode}`
    const id = this.#ids.get(key) ?? this.#add(key, { before, after })
    this.#latest = id
    return id
  }

  #add(key: string, states: RecordedInodeStates): number {
    if (this.#all.length === MAX_INODE_STATES) return NO_STATE_ID
    const id = this.#all.push(states)
    this.#ids.set(key, id)
    return id
  }

  get(id: number): RecordedInodeStates | undefined {
    return this.#all[id - 1]
  }
}

/** Batches of records whose changes this process is about to make. */
export class BatchesInProgress {
  readonly #batches = new Map<bigint, { records: Uint8Array; index?: RecordIndex }>()

  add(batch: bigint, records: Uint8Array): void {
    this.#batches.set(batch, { records })
  }

  delete(batch: bigint): void {
    this.#batches.delete(batch)
  }

  has(batch: bigint): boolean {
    return this.#batches.has(batch)
  }

  /**
   * Returns the keys that are in none of the batches.
   * @param keys inode and birth time of each in turn
   */
  excludeKeys(keys: BigInt64Array): BigInt64Array {
    const bytes = new DataView(keys.buffer, keys.byteOffset, keys.byteLength)
    let at = 0
    while (at < keys.byteLength && !this.#hasInode(bytes, at)) at += 16
    // Usually no key is in a batch.
    return at === keys.byteLength ? keys : keys.filter((_, index) => !this.#hasInode(bytes, (index >> 1) * 16))
  }

  #hasInode(bytes: DataView, at: number): boolean {
    for (const batch of this.#batches.values()) {
      batch.index ??= indexRecords(batch.records)
      if (batch.index.find(bytes, at) !== undefined) return true
    }
    return false
  }
}

function indexRecords(records: Uint8Array): RecordIndex {
  const bytes = createDataView(records)
  const starts = findRecordStarts(bytes)
  const index = new RecordIndex(starts.length)
  for (let place = 0; place < starts.length; place++)
    index.add(bytes, (starts[place] as number) + RECORD_KEY_OFFSET, place)
  return index
}
