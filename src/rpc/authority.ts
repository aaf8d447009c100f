import type { Socket } from 'node:net'
import { Duplex, Transform } from 'node:stream'

const HTTP2_PREFACE_SIZE = 24
const HTTP2_FRAME_HEADER_SIZE = 9
const HTTP2_HEADERS_FRAME_TYPE = 1
const HTTP2_END_HEADERS_FLAG = 0x4
const HTTP2_PADDED_FLAG = 0x8
const HTTP2_PRIORITY_FLAG = 0x20

/**
 * Kubelet before 1.26 sends the socket's path as `:authority`, which HTTP/2 forbids and Node's server rejects. This stream
 * replaces each slash in such a header by a dash, which is valid. A gRPC server ignores the value.
 */
export function acceptSocketPathAsAuthority(connection: Socket): Duplex {
  const readable = new AuthorityHeaderFilter()
  connection.on('error', (error) => readable.destroy(error))
  connection.on('close', () => readable.destroy())
  // The types of Duplex.from accept only web streams.
  return Duplex.from({ readable: connection.pipe(readable), writable: connection } as never)
}

/** Forwards a client's HTTP/2 bytes frame by frame, with valid `:authority` headers. */
class AuthorityHeaderFilter extends Transform {
  #rest = Buffer.alloc(0)
  #seen = 0

  override _transform(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    for (let size = this.#next(); size > 0 && this.#rest.length >= size; size = this.#next()) {
      const frame = Buffer.from(this.#rest.subarray(0, size))
      this.#rest = this.#rest.subarray(size)
      if (this.#seen > 0 && frame[3] === HTTP2_HEADERS_FRAME_TYPE) replaceSlashesInHeaders(frame)
      this.#seen += 1
      this.push(frame)
    }
    done()
  }

  /** @returns the size of the next frame; 0 until its header is complete */
  #next(): number {
    if (this.#seen === 0) return HTTP2_PREFACE_SIZE
    return this.#rest.length < HTTP2_FRAME_HEADER_SIZE ? 0 : HTTP2_FRAME_HEADER_SIZE + this.#rest.readUIntBE(0, 3)
  }
}

function replaceSlashesInHeaders(frame: Buffer): void {
  const flags = frame[4] ?? 0
  // Kubelet's headers never need several frames.
  if (!(flags & HTTP2_END_HEADERS_FLAG)) return
  const padding = flags & HTTP2_PADDED_FLAG ? (frame[HTTP2_FRAME_HEADER_SIZE] ?? 0) : 0
  const start = HTTP2_FRAME_HEADER_SIZE + (flags & HTTP2_PADDED_FLAG ? 1 : 0) + (flags & HTTP2_PRIORITY_FLAG ? 5 : 0)
  replaceAuthoritySlashes(frame.subarray(start, Math.max(start, frame.length - padding)))
}

const HPACK_AUTHORITY_INDEX = 1
const SLASH_BYTE = 0x2f
const DASH_BYTE = 0x2d
/** Slash in HPACK's Huffman code. A dash is 010110, also 6 bits, so it replaces a slash without moving other bits. */
const HUFFMAN_SLASH_CODE = 0b011000

/** Number of codes of 0, 1, 2, … bits in HPACK's Huffman code. It is canonical, so they determine every code's length. */
const HUFFMAN_CODES_BY_LENGTH = [
  0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
]

/** Replaces slashes by dashes in the values of `:authority`, in place. The server rejects malformed blocks later. */
export function replaceAuthoritySlashes(block: Buffer): void {
  let offset = 0
  const readInteger = (bits: number): number => {
    const mask = 2 ** bits - 1
    let value = (block[offset++] ?? 0) & mask
    if (value < mask) return value
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = block[offset++] ?? 0
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    return Number.POSITIVE_INFINITY
  }
  const readText = (): [content: Buffer, isHuffman: boolean] => {
    const isHuffman = ((block[offset] ?? 0) & 0x80) !== 0
    const size = readInteger(7)
    const content = block.subarray(offset, offset + size)
    offset += size
    return [content, isHuffman]
  }
  while (offset < block.length) {
    const first = block[offset] ?? 0
    if (first & 0x80) readInteger(7)
    else if ((first & 0xe0) === 0x20) readInteger(5)
    else {
      const name = readInteger(first & 0x40 ? 6 : 4)
      if (name === 0) readText()
      const [content, isHuffman] = readText()
      if (name === HPACK_AUTHORITY_INDEX) isHuffman ? replaceHuffmanSlashes(content) : replacePlainSlashes(content)
    }
  }
}

function replacePlainSlashes(text: Buffer): void {
  for (const [index, byte] of text.entries()) if (byte === SLASH_BYTE) text[index] = DASH_BYTE
}

function replaceHuffmanSlashes(text: Buffer): void {
  let code = 0
  let length = 0
  /** First code of this length. */
  let first = 0
  for (let bit = 0; bit < text.length * 8; bit++) {
    code = code * 2 + (((text[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1)
    length += 1
    first *= 2
    const count = HUFFMAN_CODES_BY_LENGTH[length] ?? 0
    if (code - first >= count) {
      first += count
      continue
    }
    // The codes of slash and dash differ in their third to fifth bits.
    if (length === 6 && code === HUFFMAN_SLASH_CODE)
      for (const index of [bit - 3, bit - 2, bit - 1]) flipBit(text, index)
    code = 0
    length = 0
    first = 0
  }
}

function flipBit(text: Buffer, bit: number): void {
  text[bit >> 3] = (text[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7))
}
