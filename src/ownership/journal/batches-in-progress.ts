import { createView, findRecordStarts } from './codec.ts'
import { KEY_OFFSET } from './layout.ts'
import { RecordIndex } from './record-index.ts'

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
  const bytes = createView(records)
  const starts = findRecordStarts(bytes)
  const index = new RecordIndex(starts.length)
  for (let place = 0; place < starts.length; place++) index.add(bytes, (starts[place] as number) + KEY_OFFSET, place)
  return index
}
