import { expect, it } from 'vitest'
import { countCalls, differences, readCounts, total, usual } from '../../bench/syscalls.ts'

const TABLE = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 46.15    0.000120          10        12         2 openat
 30.77    0.000080           1        78        12 futex
 23.08    0.000060          10         6           statx
  0.00    0.000000           0         2           epoll_pwait
------ ----------- ----------- --------- --------- ----------------
100.00    0.000260           2        96        14 total
`

it('the counts of strace are read with and without errors, without the calls of threads', () => {
  expect(readCounts(TABLE)).toEqual({ openat: 12, statx: 6 })
  expect(total(readCounts(TABLE))).toBe(18)
})

it('the calls of one thread are counted by name, without those of threads and signals', () => {
  const trace =
    'openat(3, "a(b") = 4\nfutex(0x1, 0) = 0\nopenat(3, "b") = -1 ENOENT\n--- SIGCHLD {} ---\nclose(4) = 0\nread(5</sys/devices/system/cpu/online>, 8) = 4\n+++ exited +++\n'
  expect(countCalls(trace)).toEqual({ openat: 2, close: 1 })
})

it('every system call that is made more or less often is listed', () => {
  expect(differences({ openat: 12, statx: 6 }, { openat: 12, statx: 7, read: 1 })).toEqual([
    'read: 0, 1',
    'statx: 6, 7',
  ])
})

it('a system call that only a minority of the runs made, or did not make, does not count', () => {
  const runs = [
    { openat: 3, munmap: 42, sched_getparam: 1 },
    { openat: 3, munmap: 43, mmap: 7 },
    { openat: 3, munmap: 42, mmap: 7 },
    { openat: 2, munmap: 41, mmap: 6 },
  ]
  expect(usual(runs)).toEqual({ openat: 3, munmap: 42, mmap: 7 })
  expect(usual(runs.slice(1, 3)).munmap).toBe(42)
})
