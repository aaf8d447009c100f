import fc, { type Arbitrary } from 'fast-check'

/** What can happen to a file: places are parts of its length, so that every one lies in any file. */
export type Damage =
  | { kind: 'flip'; bits: readonly (readonly [place: number, bit: number])[] }
  | { kind: 'overwrite'; place: number; bytes: readonly number[] }
  | { kind: 'truncate'; place: number }
  | { kind: 'extend'; bytes: readonly number[] }
  | { kind: 'repeat'; from: number; to: number; length: number }

// Without a bias: a file's first bytes are not likelier than others.
export const place = fc.noBias(fc.nat({ max: 2 ** 30 - 1 })).map((part) => part / 2 ** 30)
const bytes = fc.array(fc.nat({ max: 255 }), { minLength: 1, maxLength: 64 })

export const damages: Arbitrary<Damage> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('flip' as const),
      bits: fc.array(fc.tuple(place, fc.nat({ max: 7 })), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('overwrite' as const), place, bytes }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('truncate' as const), place }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('extend' as const), bytes }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('repeat' as const),
      from: place,
      to: place,
      length: fc.integer({ min: 1, max: 4096 }),
    }),
  },
)

export function damaged(content: Buffer, damage: Damage): Buffer {
  const result = Buffer.from(content)
  const at = (part: number) => Math.floor(part * result.length)
  switch (damage.kind) {
    case 'flip':
      for (const [part, bit] of damage.bits) {
        if (result.length > 0) result.writeUInt8(result.readUInt8(at(part)) ^ (1 << bit), at(part))
      }
      return result
    case 'overwrite':
      Buffer.from(damage.bytes).copy(result, at(damage.place))
      return result
    case 'truncate':
      return result.subarray(0, at(damage.place))
    case 'extend':
      return Buffer.concat([result, Buffer.from(damage.bytes)])
    case 'repeat':
      // As a disk does that wrote a block to a wrong place.
      content.copy(result, at(damage.to), at(damage.from), at(damage.from) + damage.length)
      return result
  }
}
