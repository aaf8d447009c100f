/** The checksums of one volume's journal: a row in another's place, or of another volume's, has another one. */
export class Checksums {
  readonly #volume: number
  // Loaded by who opens a journal: it takes longer than all else in a call that finds its volume ready.
  readonly #zlib = process.getBuiltinModule('node:zlib')

  constructor(volume: string) {
    this.#volume = this.#zlib.crc32(volume)
  }

  /** @param before the checksum of the batch before this one: none can be missing between two others */
  ofBatch(number: bigint, records: Uint8Array, before: bigint | undefined): bigint {
    return this.#of(`${number} ${before}`, records)
  }

  ofAcl(number: bigint, acl: Uint8Array): bigint {
    return this.#of(`acl ${number}`, acl)
  }

  /** @param place what tells the row from all others */
  #of(place: string, bytes: Uint8Array): bigint {
    const { crc32 } = this.#zlib
    return BigInt(crc32(bytes, crc32(place, this.#volume)))
  }
}
