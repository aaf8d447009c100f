const AUTHORITY_INDEX = 1
const SLASH = 0x2f
const DASH = 0x2d
/** In HPACK's Huffman code. A dash is 010110, of 6 bits too, so it can stand for a slash without moving anything. */
const SLASH_CODE = 0b011000

/** How many codes of 0, 1, 2, … bits HPACK's Huffman code has; it is canonical, so this gives every code's length. */
const CODES_OF_LENGTH = [
  0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
]

/** In place, in the values of `:authority`. What is malformed is left to the server to refuse. */
export function replaceAuthoritySlashes(block: Buffer): void {
  let at = 0
  const integer = (bits: number): number => {
    const mask = 2 ** bits - 1
    let value = (block[at++] ?? 0) & mask
    if (value < mask) return value
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = block[at++] ?? 0
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    return Number.POSITIVE_INFINITY
  }
  const text = (): [content: Buffer, isHuffman: boolean] => {
    const isHuffman = ((block[at] ?? 0) & 0x80) !== 0
    const size = integer(7)
    const content = block.subarray(at, at + size)
    at += size
    return [content, isHuffman]
  }
  while (at < block.length) {
    const first = block[at] ?? 0
    if (first & 0x80) integer(7)
    else if ((first & 0xe0) === 0x20) integer(5)
    else {
      const name = integer(first & 0x40 ? 6 : 4)
      if (name === 0) text()
      const [content, isHuffman] = text()
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
  /** The first code of this length. */
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
    // The third to the fifth bit tell the two apart.
    if (length === 6 && code === SLASH_CODE) for (const at of [bit - 3, bit - 2, bit - 1]) flip(text, at)
    code = 0
    length = 0
    first = 0
  }
}

function flip(text: Buffer, bit: number): void {
  text[bit >> 3] = (text[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7))
}
