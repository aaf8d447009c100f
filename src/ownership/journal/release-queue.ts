import type { InodeRecord } from '../inode/record.ts'
import { createDataView, encodeInodeKeys } from './codec.ts'
import type { JournalTransaction } from './journal-file.ts'
import { findRecordStarts, RECORD_KEY_OFFSET } from './layout.ts'
import type { IndexedRecordLog } from './records.ts'

/** Limit of batches that wait for the volume to be synced. After a crash the next walk checks each inode in them. */
const MAX_BATCHES_BEFORE_SYNC = 200

/**
 * Batches whose changes were made, and inodes that were restored or deleted.
 * A power cut loses changes that the volume's disk does not have yet. The volume is therefore synced before the journal
 * drops their records.
 */
export class BatchReleaseQueue {
  /** Makes the volume's changes durable. Every walk sets it. */
  syncVolume: () => void = () => {}
  #settled: bigint[] = []
  #forgotten: BigInt64Array[] = []
  readonly #write: (written: JournalTransaction) => void

  constructor(write: (written: JournalTransaction) => void) {
    this.#write = write
  }

  get forgotten(): readonly BigInt64Array[] {
    return this.#forgotten
  }

  get isFull(): boolean {
    return this.#settled.length + this.#forgotten.length >= MAX_BATCHES_BEFORE_SYNC
  }

  settle(batch: bigint): void {
    this.#settled.push(batch)
  }

  forget(keys: BigInt64Array): void {
    this.#forgotten.push(keys)
  }

  /**
   * Returns whether an inode that is about to be recorded may be among the forgotten. The forgotten must then be
   * written first.
   * @param read returns the journal's records without the forgotten
   */
  mayHaveForgotten(read: () => IndexedRecordLog, records: readonly InodeRecord[], plain: Uint8Array): boolean {
    if (this.#forgotten.length === 0) return false
    const recorded = read()
    const isMissing = (bytes: DataView, at: number) => recorded.findEntry(bytes, at) === undefined
    const { buffer, byteOffset, byteLength } = encodeInodeKeys(records)
    const [keys, encoded] = [new DataView(buffer, byteOffset, byteLength), createDataView(plain)]
    return (
      records.some((_, index) => isMissing(keys, 16 * index)) ||
      findRecordStarts(encoded).some((at) => isMissing(encoded, at + RECORD_KEY_OFFSET))
    )
  }

  release(): void {
    if (this.#settled.length + this.#forgotten.length === 0) return
    this.syncVolume()
    this.#write({ settled: this.#settled, forgotten: this.#forgotten })
    this.#settled = []
    this.#forgotten = []
  }
}
