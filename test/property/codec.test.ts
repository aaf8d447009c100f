import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeRecord,
  encodeInodeRecords,
  joinEncodedRecords,
  splitRecords,
} from '../../src/ownership/journal/codec.ts'
import { memoryAcls } from '../helpers/acls.ts'
import { damaged, damages } from './damage.ts'
import { holds, runs } from './holds.ts'
import { inodeBatch } from './inode-records.ts'

const acls = memoryAcls()
const decoded = (chunk: Uint8Array) => [...splitRecords(chunk)].map((one) => decodeRecord(one, true, acls))

describe('encoded records of inodes', () => {
  it('are decoded to the original records, also after splitting and joining', () => {
    holds(
      inodeBatch(3),
      (records) => {
        const settled = records.map((record) => ({ ...record, settled: true }))
        expect(decoded(encodeInodeRecords(records, acls))).toEqual(settled)
        expect(decoded(joinEncodedRecords([...splitRecords(encodeInodeRecords(records, acls))]))).toEqual(settled)
      },
      1000,
    )
  })

  it('that are damaged are decoded or refused with a RangeError', () => {
    let refused = 0
    holds(
      fc.tuple(inodeBatch(2), damages),
      ([records, damage]) => {
        try {
          decoded(damaged(Buffer.from(encodeInodeRecords(records, acls)), damage))
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
          refused++
        }
      },
      2000,
    )
    expect(refused).toBeGreaterThan(runs(100))
  })
})
