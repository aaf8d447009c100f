import { IntTable } from './int-table.ts'

/** Position of the last record, counted from 1. */
const LAST = 0
/** See StateTable; the VISITED bit is set once a walk has visited the inode. */
const STATE = 1
const VALUES = 2
/** A sparse value: position of the first record, counted from 1. 0: it is the last record. */
const FIRST = 0
const SPARSE_VALUES = 1
// The upper word of most inodes is 0, so it is the last one of the key.
const INODE_AND_BIRTH = [0, 3, 1, 2]
const FORGOTTEN = 0
const VISITED = 0x8000

/**
 * Maps an inode to the positions of its first record, which has the original state, and of its last.
 * Entries keep the order of insertion, which mostly is the order of the lookups. A forgotten inode keeps its entry.
 */
export class RecordIndex {
  /** Keys: see INODE_AND_BIRTH. */
  readonly #table: IntTable
  /** The entry after the last one found, which mostly is the next one looked up. */
  #next = 0
  /** Number of inodes with a record. */
  size = 0

  /** @param expected estimated number of inodes; the table grows */
  constructor(expected: number) {
    this.#table = new IntTable(VALUES, SPARSE_VALUES, expected)
  }

  /**
   * @param bytes and `at`: inode and birth time, 16 bytes
   * @param place position of a record, counted from 0
   * @returns the number of its entry
   */
  add(bytes: DataView, at: number, place: number): number {
    const table = this.#table
    const entry = this.#findEntry(bytes, at) ?? this.#insert(bytes, at)
    const last = table.get(entry, LAST)
    if (last === FORGOTTEN) {
      this.size++
      table.setSparse(entry, FIRST, 0)
    } else if (table.getSparse(entry, FIRST) === 0) table.setSparse(entry, FIRST, last)
    table.set(entry, LAST, place + 1)
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
    return this.#table.get(entry, STATE) & ~VISITED
  }

  setState(entry: number, state: number): void {
    this.#table.set(entry, STATE, state)
  }

  markVisited(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry !== undefined) this.#table.set(entry, STATE, this.#table.get(entry, STATE) | VISITED)
  }

  /** Returns inode and birth time in turn of the inodes that have a record and were not visited. */
  listUnvisited(): BigInt64Array {
    const words: number[] = []
    for (let entry = 0; entry < this.#table.end; entry++) {
      const isVisited = (this.#table.get(entry, STATE) & VISITED) !== 0
      if (isVisited || this.#table.get(entry, LAST) === FORGOTTEN) continue
      for (const word of INODE_AND_BIRTH) words.push(this.#table.getKey(entry, word))
    }
    return new BigInt64Array(Int32Array.from(words).buffer)
  }

  remove(bytes: DataView, at: number): void {
    const entry = this.find(bytes, at)
    if (entry === undefined) return
    this.#table.set(entry, LAST, FORGOTTEN)
    this.size--
  }

  /** Returns the entry of an inode that has a record. */
  find(bytes: DataView, at: number): number | undefined {
    const entry = this.#findEntry(bytes, at)
    return entry === undefined || this.#table.get(entry, LAST) === FORGOTTEN ? undefined : entry
  }

  /** Returns the position of an entry's first record. */
  getFirst(entry: number): number {
    return (this.#table.getSparse(entry, FIRST) || this.#table.get(entry, LAST)) - 1
  }

  /** Returns the position of an entry's last record; below 0: the inode is forgotten. */
  getLast(entry: number): number {
    return this.#table.get(entry, LAST) - 1
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
