import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MODEKEEP, understood } from '../binary/modekeep.ts'
import { compile } from '../race/compile.ts'

const skipReason = fs.existsSync(MODEKEEP) ? '' : ' (skipped: run "npm run build")'

const EPERM = 1
const ENOSYS = 38

/** Numbers on x64 and arm64. */
const CALLS = {
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
} as const satisfies Readonly<Record<string, readonly [x64: number, arm64: number]>>

const PROT_EXEC = 4

const CALL_NAMES = Object.keys(CALLS) as (keyof typeof CALLS)[]

const DIRECTORY = '/no/such/directory'
const VERBS = [['init'], ['mount', DIRECTORY, '{}'], ['unmount', DIRECTORY]]

const numberOf = (name: keyof typeof CALLS) => CALLS[name][process.arch === 'arm64' ? 1 : 0]

/** @param filter the calls to refuse, as `refuse.c` has them */
function answerTo(call: readonly string[], filter: string) {
  const args = [filter, '--', MODEKEEP, ...call]
  const { status, stdout, stderr } = spawnSync(compile('helpers/refuse.c'), args, { encoding: 'utf8' })
  return understood({ text: stdout + stderr, code: status })
}

describe.skipIf(skipReason !== '')(`a seccomp filter${skipReason}`, () => {
  it.each(CALL_NAMES)('that refuses %s is named in one JSON reply by every verb', (name) => {
    for (const call of VERBS) {
      const { status, message } = answerTo(call, `${numberOf(name)}=${EPERM}`)
      expect(status).toBe('Failure')
      expect(message).toContain(
        `the system call ${name}, which Node needs, is refused: allow it in the seccomp profile`,
      )
      expect(message).toMatch(/ \(EPERM\)$/)
    }
  })

  it('that refuses to make memory executable, as with MemoryDenyWriteExecute, is named in one JSON reply by every verb', () => {
    for (const call of VERBS) {
      const { status, message } = answerTo(call, `${numberOf('mprotect')}:2:${PROT_EXEC}=${EPERM}`)
      expect(status).toBe('Failure')
      expect(message).toMatch(/forbids to execute memory that was written, .*MemoryDenyWriteExecute.* \(EPERM\)$/)
    }
  })

  it.each(['clone3', 'getrandom'] as const)(
    'that returns ENOSYS for %s, as older kernels do, changes nothing',
    (name) => {
      expect(answerTo(['init'], `${numberOf(name)}=${ENOSYS}`)).toMatchObject({ status: 'Success' })
    },
  )
})
