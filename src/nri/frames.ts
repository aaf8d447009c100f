/** The peer broke the protocol, and the connection must be closed. */
export class ProtocolError extends Error {}

/** A header of fixed length, which contains the length of the payload. */
export interface Frame {
  readonly header: Buffer
  readonly payload: Buffer
}

/** Splits a byte stream into frames. Buffers at most one frame and one piece of the stream. */
export class FrameReader {
  readonly #headerLength: number
  readonly #lengthOffset: number
  readonly #maxPayloadLength: number
  #pieces: Buffer[] = []
  #bufferedLength = 0
  /** Length of the next frame, or of its header until the header is complete. */
  #neededLength: number

  /**
   * @param lengthOffset offset of the payload's length in the header: 32 bits, big-endian
   * @param maxPayloadLength in bytes
   */
  constructor(headerLength: number, lengthOffset: number, maxPayloadLength: number) {
    this.#headerLength = headerLength
    this.#lengthOffset = lengthOffset
    this.#maxPayloadLength = maxPayloadLength
    this.#neededLength = headerLength
  }

  /** @throws {ProtocolError} if a payload is too long */
  *push(piece: Buffer): Generator<Frame> {
    this.#pieces.push(piece)
    this.#bufferedLength += piece.length
    while (this.#bufferedLength >= this.#neededLength) {
      const all = this.#join()
      const length = all.readUInt32BE(this.#lengthOffset)
      if (length > this.#maxPayloadLength)
        throw new ProtocolError(`a message has ${length} bytes, which is more than ${this.#maxPayloadLength}`)
      const end = this.#headerLength + length
      if (all.length < end) {
        this.#neededLength = end
        return
      }
      this.#neededLength = this.#headerLength
      this.#pieces = [all.subarray(end)]
      this.#bufferedLength = all.length - end
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
