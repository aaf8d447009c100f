const AUTHORITY_INDEX = 1
const SLASH = 0x2f
const DASH = 0x2d
/** Slash in HPACK's Huffman code. A dash is 010110, also 6 bits, so it replaces a slash without moving other bits. */
const SLASH_CODE = 0b011000

/** Number of codes of 0, 1, 2, … bits in HPACK's Huffman code. It is canonical, so they determine every code's length. */
const CODES_OF_LENGTH = [
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
      if (name === AUTHORITY_INDEX) isHuffman ? replaceInHuffman(content) : replaceInPlain(content)
    }
  }
}

function replaceInPlain(text: Buffer): void {
  for (const [index, byte] of text.entries()) if (byte === SLASH) text[index] = DASH
}

function replaceInHuffman(text: Buffer): void {
  let code = 0
  let length = 0
  /** First code of this length. */
  let first = 0
  for (let bit = 0; bit < text.length * 8; bit++) {
    code = code * 2 + (((text[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1)
    length += 1
    first *= 2
    const count = CODES_OF_LENGTH[length] ?? 0
    if (code - first >= count) {
      first += count
      continue
    }
    // The codes of slash and dash differ in their third to fifth bits.
    if (length === 6 && code === SLASH_CODE) for (const index of [bit - 3, bit - 2, bit - 1]) flipBit(text, index)
    code = 0
    length = 0
    first = 0
  }
}

function flipBit(text: Buffer, bit: number): void {
  text[bit >> 3] = (text[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7))
}
