// CRC-32 (ISO 3309), four bytes at a time. node:zlib has it too, but loading that module takes longer than a call may.
const ROW = 256
const TABLE = new Int32Array(4 * ROW)
// CRC is linear: the checksum of an XOR is the XOR of the checksums.
for (let bit = 128, rest = 1; bit > 0; bit >>= 1) {
  rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ 0xedb88320
  for (let byte = 0; byte < ROW; byte += 2 * bit) TABLE[byte + bit] = rest ^ (TABLE[byte] as number)
}
for (let index = ROW; index < TABLE.length; index++) {
  const previous = TABLE[index - ROW] as number
  TABLE[index] = (previous >>> 8) ^ (TABLE[previous & 0xff] as number)
}

/**
 * Computes the CRC-32 of consecutive parts. It detects damage by disks or accidents, not forgery.
 * @param seed checksum of the bytes before the parts
 */
export function computeChecksum(parts: readonly Uint8Array[], seed = 0): number {
  return ~parts.reduce(add, ~seed) >>> 0
}

function add(previous: number, part: Uint8Array): number {
  const lookUp = (row: number, byte: number) => TABLE[row * ROW + (byte & 0xff)] as number
  const view = new DataView(part.buffer, part.byteOffset, part.length)
  let sum = previous
  let offset = 0
  for (; offset + 4 <= part.length; offset += 4) {
    sum ^= view.getInt32(offset, true)
    sum = lookUp(3, sum) ^ lookUp(2, sum >>> 8) ^ lookUp(1, sum >>> 16) ^ lookUp(0, sum >>> 24)
  }
  for (; offset < part.length; offset++) sum = lookUp(0, sum ^ (part[offset] as number)) ^ (sum >>> 8)
  return sum
}
