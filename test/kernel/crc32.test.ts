import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { computeCrc32 } from '../../src/kernel/crc32.ts'
import { holds } from '../property/holds.ts'

describe('a checksum', () => {
  it("equals zlib's CRC-32 for bytes in any number of parts", () => {
    expect(computeCrc32([Buffer.from('123456789')])).toBe(0xcbf43926)
    holds(
      fc.array(fc.uint8Array()),
      (parts) => {
        expect(computeCrc32(parts)).toBe(crc32(Buffer.concat(parts)))
        expect(computeCrc32(parts.slice(1), computeCrc32(parts.slice(0, 1)))).toBe(computeCrc32(parts))
      },
      500,
    )
  })
})
