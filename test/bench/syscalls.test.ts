import { expect, it } from 'vitest'
import { differences, readCounts, total } from '../../bench/syscalls.ts'

const TABLE = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 46.15    0.000120          10        12         2 openat
 30.77    0.000080           1        78        12 futex
 23.08    0.000060          10         6           statx
------ ----------- ----------- --------- --------- ----------------
100.00    0.000260           2        96        14 total
`

it('counts are read with and without errors, and without what threads do by chance', () => {
  expect(readCounts(TABLE)).toEqual({ openat: 12, statx: 6 })
  expect(total(readCounts(TABLE))).toBe(18)
})

it('every call that is made more or less often is named', () => {
  expect(differences({ openat: 12, statx: 6 }, { openat: 12, statx: 7, read: 1 })).toEqual([
    'read: 0, 1',
    'statx: 6, 7',
  ])
})
