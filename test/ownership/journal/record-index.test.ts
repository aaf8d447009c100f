import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RecordIndex } from '../../../src/ownership/journal/record-index.ts'

function key(inode: bigint, born: bigint): DataView {
  const bytes = new DataView(new ArrayBuffer(16))
  bytes.setBigUint64(0, inode, true)
  bytes.setBigInt64(8, born, true)
  return bytes
}

function placesOf(index: RecordIndex, bytes: DataView): number[] {
  const entry = index.find(bytes, 0)
  return entry === undefined ? [] : [index.getFirst(entry), index.getLast(entry)]
}

const steps = fc.array(
  fc.record({
    inode: fc.oneof(fc.bigInt(0n, 9n), fc.bigInt(0n, 2n ** 64n - 1n)),
    born: fc.constantFrom(0n, 1n, -1n, 1_700_000_000_000_000_000n),
    forgets: fc.boolean(),
  }),
  { maxLength: 4000, size: 'max' },
)

it("the journal's index finds the first and the last record of every inode that is not forgotten", () => {
  fc.assert(
    fc.property(steps, (list) => {
      const index = new RecordIndex(0)
      const known = new Map<string, number[]>()
      for (const [place, { inode, born, forgets }] of list.entries()) {
        const name = `${inode} ${born}`
        if (forgets) {
          index.remove(key(inode, born), 0)
          known.delete(name)
        } else {
          index.add(key(inode, born), 0, place)
          known.set(name, [known.get(name)?.[0] ?? place, place])
        }
      }
      expect(index.size).toBe(known.size)
      const found = list.map(({ inode, born }) => placesOf(index, key(inode, born)))
      expect(found).toEqual(list.map(({ inode, born }) => known.get(`${inode} ${born}`) ?? []))
    }),
    { seed: 1, numRuns: 40 },
  )
})

it("the journal's index grows beyond its expected size, also if inodes are removed and added", () => {
  const index = new RecordIndex(10)
  for (let inode = 0; inode < 50_000; inode++) index.add(key(BigInt(inode), 7n), 0, inode)
  for (let inode = 0; inode < 49_990; inode++) index.remove(key(BigInt(inode), 7n), 0)
  for (let round = 0; round < 50_000; round++) {
    index.add(key(BigInt(100_000 + round), 7n), 0, round)
    index.remove(key(BigInt(100_000 + round), 7n), 0)
  }
  expect(index.size).toBe(10)
  expect(placesOf(index, key(49_995n, 7n))).toEqual([49_995, 49_995])
  expect(placesOf(index, key(5n, 7n))).toEqual([])
})
