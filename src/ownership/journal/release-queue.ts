import type { InodeRecord } from '../inode/record.ts'
import { keysOf, startsOf, viewOf } from './codec.ts'
import type { Written } from './journal-file.ts'
import { KEY } from './layout.ts'
import type { Records } from './records.ts'

/** Batches that wait for the volume to be synced. A crash makes the next walk check each inode in them. */
const MOST_WAITING = 200

/**
 * Batches whose changes were made, and inodes that were restored or are gone. A power cut takes changes of a volume that
 * its disk does not have yet, so the volume is synced before the journal drops what describes them.
 */
export class ReleaseQueue {
  /** Makes the volume's changes durable. Every walk sets it. */
  syncVolume: () => void = () => {}
  #settled: bigint[] = []
  #forgotten: BigInt64Array[] = []
  readonly #write: (written: Written) => void

  constructor(write: (written: Written) => void) {
    this.#write = write
  }

  get forgotten(): readonly BigInt64Array[] {
    return this.#forgotten
  }

  get isFull(): boolean {
    return this.#settled.length + this.#forgotten.length >= MOST_WAITING
  }

  settle(batch: bigint): void {
    this.#settled.push(batch)
  }

  forget(keys: BigInt64Array): void {
    this.#forgotten.push(keys)
  }

  /**
   * Whether an inode that is to be recorded may be among the forgotten: that must be on disk first.
   * @param read returns what the journal has, without the forgotten
   */
  mayHave(read: () => Records, records: readonly InodeRecord[], plain: Uint8Array): boolean {
    if (this.#forgotten.length === 0) return false
    const recorded = read()
    const isMissing = (bytes: DataView, at: number) => recorded.entryOf(bytes, at) === undefined
    const { buffer, byteOffset, byteLength } = keysOf(records)
    const [keys, encoded] = [new DataView(buffer, byteOffset, byteLength), viewOf(plain)]
    return (
      records.some((_, index) => isMissing(keys, 16 * index)) ||
      startsOf(encoded).some((at) => isMissing(encoded, at + KEY))
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
