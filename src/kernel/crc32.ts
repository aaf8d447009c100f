// CRC-32 (ISO 3309), four bytes at a time. node:zlib has it too, but loading that module takes longer than a call may.
const CRC_TABLE_ROW_LENGTH = 256
const CRC32_TABLE = new Int32Array(4 * CRC_TABLE_ROW_LENGTH)
// CRC is linear: the checksum of an XOR is the XOR of the checksums.
for (let bit = 128, rest = 1; bit > 0; bit >>= 1) {
  rest = (rest & 1) === 0 ? rest >>> 1 : (rest >>> 1) ^ 0xedb88320
  for (let byte = 0; byte < CRC_TABLE_ROW_LENGTH; byte += 2 * bit)
    CRC32_TABLE[byte + bit] = rest ^ (CRC32_TABLE[byte] as number)
}
for (let index = CRC_TABLE_ROW_LENGTH; index < CRC32_TABLE.length; index++) {
  const previous = CRC32_TABLE[index - CRC_TABLE_ROW_LENGTH] as number
  CRC32_TABLE[index] = (previous >>> 8) ^ (CRC32_TABLE[previous & 0xff] as number)
}

/**
 * Computes the CRC-32 of consecutive parts. It detects damage by disks or accidents, not forgery.
 * @param seed checksum of the bytes before the parts
 */
export function computeCrc32(parts: readonly Uint8Array[], seed = 0): number {
  return ~parts.reduce(addToCrc32, ~seed) >>> 0
}

function addToCrc32(previous: number, part: Uint8Array): number {
  const lookUp = (row: number, byte: number) => CRC32_TABLE[row * CRC_TABLE_ROW_LENGTH + (byte & 0xff)] as number
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
