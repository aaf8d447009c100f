import fc, { type Arbitrary } from 'fast-check'
import type { InodeRecord } from '../../src/ownership/inode/record.ts'

const u32 = fc.nat({ max: 0xffffffff })
const mode = fc.nat({ max: 0o7777 })
const i64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((list) => Uint8Array.from(list))
const maybe = fc.option(bytes(60), { nil: undefined })
const ownership = fc.record({ gid: u32, mode })

/** Records as a walk makes them, and many that none makes. */
export const inodeRecords: Arbitrary<InodeRecord> = fc.record({
  inode: u64,
  born: i64,
  path: bytes(40),
  uid: u32,
  before: ownership,
  capability: maybe,
  acl: fc.record({ before: maybe, seen: maybe, after: maybe }),
  modified: i64,
  size: u64,
  seen: ownership,
  capabilityIntact: fc.boolean(),
  intended: ownership,
  forfeited: fc.boolean(),
  after: ownership,
  settled: fc.boolean(),
})

/** So many, of different inodes. */
export function inodeBatch(length: number): Arbitrary<InodeRecord[]> {
  return fc.uniqueArray(inodeRecords, {
    minLength: length,
    maxLength: length,
    selector: ({ inode, born }) => `${BigInt.asIntN(64, inode)} ${born}`,
  })
}
