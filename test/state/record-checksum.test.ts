import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { computeChecksum } from '../../src/state/record.ts'
import { holds } from '../property/holds.ts'

describe('a checksum', () => {
  it("equals zlib's CRC-32 for bytes in any number of parts", () => {
    expect(computeChecksum([Buffer.from('123456789')])).toBe(0xcbf43926)
    holds(
      fc.array(fc.uint8Array()),
      (parts) => {
        expect(computeChecksum(parts)).toBe(crc32(Buffer.concat(parts)))
        expect(computeChecksum(parts.slice(1), computeChecksum(parts.slice(0, 1)))).toBe(computeChecksum(parts))
      },
      500,
    )
  })
})
