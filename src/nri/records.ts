/** What came was no message of the protocol: the connection is of no use any more. */
export class ProtocolError extends Error {}

/** A header of fixed length, and the payload whose length it tells. */
export interface Framed {
  readonly header: Buffer
  readonly payload: Buffer
}

/** Cuts a stream of bytes into records, however it comes in pieces. It holds no more than one record and a piece. */
export class RecordReader {
  readonly #headerLength: number
  readonly #lengthAt: number
  readonly #most: number
  #pieces: Buffer[] = []
  #held = 0
  /** Known once a header is there. */
  #wanted: number

  /**
   * @param lengthAt where in the header the payload's length is, a number of 32 bits, big-endian
   * @param most the longest payload that is taken, in bytes
   */
  constructor(headerLength: number, lengthAt: number, most: number) {
    this.#headerLength = headerLength
    this.#lengthAt = lengthAt
    this.#most = most
    this.#wanted = headerLength
  }

  /** @throws {ProtocolError} for a payload that is too long */
  *push(piece: Buffer): Generator<Framed> {
    this.#pieces.push(piece)
    this.#held += piece.length
    while (this.#held >= this.#wanted) {
      const all = this.#join()
      const length = all.readUInt32BE(this.#lengthAt)
      if (length > this.#most)
        throw new ProtocolError(`a message has ${length} bytes, which is more than ${this.#most}`)
      const end = this.#headerLength + length
      if (all.length < end) {
        this.#wanted = end
        return
      }
      this.#wanted = this.#headerLength
      this.#pieces = [all.subarray(end)]
      this.#held = all.length - end
      yield { header: all.subarray(0, this.#headerLength), payload: all.subarray(this.#headerLength, end) }
    }
  }

  #join(): Buffer {
    const [only = Buffer.alloc(0), ...more] = this.#pieces
    const all = more.length === 0 ? only : Buffer.concat(this.#pieces)
    this.#pieces = [all]
    return all
  }
}
