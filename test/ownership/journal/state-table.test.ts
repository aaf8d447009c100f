import { expect, it } from 'vitest'
import { InodeStateTable, NO_STATE_ID, type RecordedInodeStates } from '../../../src/ownership/journal/record-index.ts'

const ids = (table: InodeStateTable, all: RecordedInodeStates[]) =>
  all.map(({ before, after }) => table.assignId(before, after))
const states = (gid: number, mode = 0o640): RecordedInodeStates => ({
  before: { gid, mode: 0o600 },
  after: { gid: 2000, mode },
})

it('the state table assigns one number to equal inode states, and returns the states of a number', () => {
  const table = new InodeStateTable()
  const all = [states(1), states(1), states(2), states(1, 0o660), states(1)]
  const found = ids(table, all)
  expect(new Set(found).size).toBe(3)
  expect(found.map((id) => table.get(id))).toEqual(all)
  expect(table.get(NO_STATE_ID)).toBeUndefined()
})

it('the state table stops growing at its limit if every file has another mode or group', () => {
  const table = new InodeStateTable()
  const all = Array.from({ length: 10_000 }, (_, gid) => states(gid))
  const found = ids(table, all)
  expect(found.filter((id) => id !== NO_STATE_ID)).toHaveLength(4096)
  expect(ids(table, [states(5), states(9_999)])).toEqual([found[5], NO_STATE_ID])
})
