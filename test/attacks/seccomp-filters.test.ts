import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MODEKEEP, understood } from '../binary/modekeep.ts'
import { compile } from '../race/compile.ts'

const skipReason = fs.existsSync(MODEKEEP) ? '' : ' (skipped: run "npm run build")'

const EPERM = 1
const ENOSYS = 38

/** Numbers on x64 and arm64. */
const CALLS: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  clone3: [435, 435],
  epoll_create1: [291, 20],
  epoll_pwait: [281, 22],
  eventfd2: [290, 19],
  futex: [202, 98],
  getrandom: [318, 278],
  io_uring_enter: [426, 426],
  pipe2: [293, 59],
  read: [0, 63],
  close: [3, 57],
  fstat: [5, 80],
  newfstatat: [262, 79],
  madvise: [28, 233],
  mprotect: [10, 226],
  munmap: [11, 215],
  rt_sigaction: [13, 134],
  rt_sigprocmask: [14, 135],
  uname: [63, 160],
}

const DIRECTORY = '/no/such/directory'
const VERBS = [['init'], ['mount', DIRECTORY, '{}'], ['unmount', DIRECTORY]]

function answerTo(call: readonly string[], number: number, errno: number) {
  const filter = [`${number}=${errno}`, '--', MODEKEEP, ...call]
  const { status, stdout, stderr } = spawnSync(compile('helpers/refuse.c'), filter, { encoding: 'utf8' })
  return understood({ text: stdout + stderr, code: status })
}

describe.skipIf(skipReason !== '')(`a seccomp filter${skipReason}`, () => {
  it.each(Object.entries(CALLS))('that refuses %s is named in one JSON reply by every verb', (name, numbers) => {
    for (const call of VERBS) {
      const { status, message } = answerTo(call, numbers[process.arch === 'arm64' ? 1 : 0], EPERM)
      expect(status).toBe('Failure')
      expect(message).toContain(
        `the system call ${name}, which Node needs, is refused: allow it in the seccomp profile`,
      )
      expect(message).toMatch(/ \(EPERM\)$/)
    }
  })

  it.each(['clone3', 'getrandom'])('that returns ENOSYS for %s, as older kernels do, changes nothing', (name) => {
    const number = CALLS[name]?.[process.arch === 'arm64' ? 1 : 0] ?? 0
    expect(answerTo(['init'], number, ENOSYS)).toMatchObject({ status: 'Success' })
  })
})
