/**
 * Checksums of one volume's journal. They cover the volume and the row's number, so a row moved from elsewhere does not
 * match.
 */
export class Checksums {
  readonly #volume: number
  // Loaded when a journal is opened: loading it takes longer than the rest of a call that finds its volume ready.
  readonly #zlib = process.getBuiltinModule('node:zlib')

  constructor(volume: string) {
    this.#volume = this.#zlib.crc32(volume)
  }

  /** @param before the checksum of the previous batch, so that a missing batch is noticed */
  computeBatchSum(number: bigint, records: Uint8Array, before: bigint | undefined): bigint {
    return this.#compute(`${number} ${before}`, records)
  }

  computeAclSum(number: bigint, acl: Uint8Array): bigint {
    return this.#compute(`acl ${number}`, acl)
  }

  /** @param place identifies the row */
  #compute(place: string, bytes: Uint8Array): bigint {
    const { crc32 } = this.#zlib
    return BigInt(crc32(bytes, crc32(place, this.#volume)))
  }
}
