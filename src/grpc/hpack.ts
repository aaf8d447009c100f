const AUTHORITY_INDEX = 1
const SLASH = 0x2f
const DASH = 0x2d
/** HPACK's Huffman codes of both are of 6 bits, so that one can stand for the other without moving anything. */
const SLASH_CODE = 0b011000
const DASH_CODE = 0b010110

/** How many codes of each length HPACK's Huffman code has; it is canonical, so this gives every code's length. */
const CODES_OF_LENGTH = new Map([
  ...[
    [5, 10],
    [6, 26],
    [7, 32],
    [8, 6],
    [10, 5],
    [11, 3],
    [12, 2],
    [13, 6],
    [14, 2],
    [15, 3],
    [19, 3],
    [20, 8],
  ],
  ...[
    [21, 13],
    [22, 26],
    [23, 29],
    [24, 12],
    [25, 4],
    [26, 15],
    [27, 19],
    [28, 29],
    [30, 4],
  ],
] as [number, number][])

/** In place, in the values of `:authority`. What is malformed is left to the server to refuse. */
export function dashSlashes(block: Buffer): void {
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
      if (name === AUTHORITY_INDEX) isHuffman ? mendHuffman(content) : mendPlain(content)
    }
  }
}

function mendPlain(text: Buffer): void {
  for (const [index, byte] of text.entries()) if (byte === SLASH) text[index] = DASH
}

function mendHuffman(text: Buffer): void {
  let code = 0
  let length = 0
  /** The first code of this length. */
  let first = 0
  for (let bit = 0; bit < text.length * 8; bit++) {
    code = code * 2 + (((text[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1)
    length += 1
    first *= 2
    const count = CODES_OF_LENGTH.get(length) ?? 0
    if (code - first >= count) {
      first += count
      continue
    }
    if (length === 6 && code === SLASH_CODE) replaceBits(text, bit - 5, SLASH_CODE ^ DASH_CODE)
    code = 0
    length = 0
    first = 0
  }
}

function replaceBits(text: Buffer, start: number, changed: number): void {
  for (let index = 0; index < 6; index++) {
    const bit = start + index
    text[bit >> 3] = (text[bit >> 3] ?? 0) ^ (((changed >> (5 - index)) & 1) << (7 - (bit & 7)))
  }
}
