import { checksum } from '../../host/checksum.ts'
import type { Encoded } from './codec.ts'

type Row = Record<string, unknown>

/** A record as the journal has it, with the batch it was last recorded in. */
export interface StoredRecord extends Encoded {
  batch: bigint
}

/**
 * Checksums of what a journal holds, over the volume's name too: SQLite's pages have none, and a mode with one bit turned
 * over is a mode like any other.
 */
export class Checksums {
  readonly #volume: number

  constructor(volume: string) {
    this.#volume = checksum([Buffer.from(volume)])
  }

  ofChunk(batch: bigint, records: Uint8Array): bigint {
    return this.#over([batch], records)
  }

  ofFirst({ inode, born, first }: Encoded): bigint {
    return this.#over([inode, born], first)
  }

  ofLast({ inode, born, last, batch }: StoredRecord): bigint {
    return this.#over([inode, born, batch], last)
  }

  /** @throws {RangeError} where a row of `log` is not as it was written */
  checkedChunk({ batch, records, sum }: Row): { batch: bigint; records: Uint8Array } {
    if (!isNumber(batch) || !isBytes(records)) throw new RangeError('a batch of records is no such thing')
    if (sum !== this.ofChunk(batch, records)) throw new RangeError('a batch of records has changed')
    return { batch, records }
  }

  /** @throws {RangeError} where a row of `inodes` is not as it was written */
  checkedRecord({ inode, born, first, last, batch, first_sum, last_sum }: Row): StoredRecord {
    if (!isNumber(inode) || !isNumber(born) || !isNumber(batch) || !isBytes(first) || !isBytes(last))
      throw new RangeError('a record is no such thing')
    const record = { inode, born, first, last, batch }
    if (first_sum !== this.ofFirst(record)) throw new RangeError('a record has changed')
    if (last_sum !== this.ofLast(record)) throw new RangeError('a record has changed')
    return record
  }

  #over(numbers: readonly bigint[], bytes: Uint8Array): bigint {
    return BigInt(checksum([new Uint8Array(BigInt64Array.from(numbers).buffer), bytes], this.#volume))
  }
}

function isNumber(value: unknown): value is bigint {
  return typeof value === 'bigint'
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array
}
