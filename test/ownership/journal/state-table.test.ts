import { expect, it } from 'vitest'
import { NO_STATES, type States, StateTable } from '../../../src/ownership/journal/state-table.ts'

const states = (gid: number, mode = 0o640): States => ({ before: { gid, mode: 0o600 }, after: { gid: 2000, mode } })

it('gives equal states one number, and tells what a number stands for', () => {
  const table = new StateTable()
  const all = [states(1), states(1), states(2), states(1, 0o660), states(1)]
  const ids = all.map((one) => table.idOf(one))
  expect(new Set(ids).size).toBe(3)
  expect(ids.map((id) => table.get(id))).toEqual(all)
  expect(table.get(NO_STATES)).toBeUndefined()
})

it('does not grow with a volume whose users made each file another', () => {
  const table = new StateTable()
  const ids = Array.from({ length: 10_000 }, (_, gid) => table.idOf(states(gid)))
  expect(ids.filter((id) => id !== NO_STATES)).toHaveLength(4096)
  expect(table.idOf(states(5))).toBe(ids[5])
  expect(table.idOf(states(9_999))).toBe(NO_STATES)
})
