import { describe, expect, it } from 'vitest'
import type { FaultPoint } from '../helpers/inject.ts'
import { parseTrace } from '../helpers/strace-text.ts'
import { drawTenth } from './draw.ts'
import { expectPreceded } from './durable-first.ts'
import { FAULTS, faultsNamed, inWords } from './fault.ts'
import { readOptions } from './options.ts'
import { ownCalls, residentCalls } from './own-calls.ts'
import type { After } from './scenario.ts'
import { table } from './table.ts'

const INJECTED = '= -1 EIO (Input/output error) (INJECTED)'

describe('the order of records and changes in a trace', () => {
  const check = (...lines: string[]) => {
    const calls = parseTrace(lines.map((line) => `7 ${line}`).join('\n'))
    const point: FaultPoint = { name: 'fsync', when: 1, text: '' }
    const ended = { text: '', errors: '', code: 0, signal: null, hung: false }
    const after: After = { point, fault: { name: 'EIO', lasts: false }, ended, calls, turn: 0, reached: true }
    expectPreceded(after, '/state')
  }
  const change = 'fchownat(9</v/f>, "", -1, 2000, AT_EMPTY_PATH) = 0'
  const lost = `fsync(8</state/ownership/1/journal.db-wal>) ${INJECTED}`

  it('is wrong if an inode is changed after the write of its record failed', () => {
    expect(() => check(lost, change)).toThrow(/fchownat.* follows fsync/)
    expect(() => check(`rename("/state/mounts/a/record.json.new", "/x") ${INJECTED}`, change)).toThrow(/follows rename/)
  })

  it('is checked also for a record that is renamed through directory handles', () => {
    const open = 'openat(AT_FDCWD</>, "/state/mounts/a", O_RDONLY|O_PATH) = 22</state/mounts/a>'
    const renamed = `rename("/proc/self/fd/22/record.json.new", "/proc/self/fd/22/record.json") ${INJECTED}`
    expect(() => check(open, renamed, change)).toThrow('follows rename("/state/mounts/a/record.json.new"')
  })

  it('is right for a change after a retried write, a change before a failed write, and a failed change', () => {
    check(lost, 'fsync(8</state/ownership/1/journal.db-wal>) = 0', change)
    check(change, lost)
    check(lost, 'fchownat(9</v/f>, "", -1, 2000, AT_EMPTY_PATH) = -1 EIO (Input/output error)')
    check(`fsync(8</state/log>) ${INJECTED}`, change)
  })
})

describe('the system calls of a command', () => {
  const trace = [
    'openat(AT_FDCWD</>, "/lib/libc.so", O_RDONLY) = 3</lib/libc.so>',
    'openat(AT_FDCWD</>, "/n/config.json", O_RDONLY) = 3</n/config.json>',
    'mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0) = 0x7f',
    'mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5</n/state/journal.db-shm>, 0) = 0x7f',
    'futex(0x7f, FUTEX_WAKE) = 0',
    'statx(4</n/v>, "", AT_EMPTY_PATH, STATX_ALL, {}) = 0',
    'syscall_0x1c4(4, "", 0, 0, 0, 0) = 0',
    'write(1<pipe:[7]>, "{}", 2) = 2',
    'fcntl(1<pipe:[7]>, F_GETFL) = 1',
  ]

  it("begin with the reading of the configuration and end with the reply, without the runtime's own calls", () => {
    const calls = ownCalls(parseTrace(trace.map((line) => `7 ${line}`).join('\n')), '/n/config.json')
    expect(calls.map(({ name, when }) => `${name} ${when}`)).toEqual(['openat 2', 'mmap 2', 'statx 1', 'write 1'])
  })

  it('are refused if no call opens the configuration', () => {
    expect(() => ownCalls([], '/n/config.json')).toThrow('no call opens /n/config.json')
  })
})

describe('the system calls of a resident worker', () => {
  const trace = [
    'statx(AT_FDCWD</>, "/n/state", 0, STATX_ALL, {}) = 0',
    'accept4(23<socket:[7]>, NULL, NULL, SOCK_CLOEXEC) = 24<socket:[8]>',
    'read(24<socket:[8]>, "18", 65536) = 2',
    'epoll_pwait(17<anon_inode:[eventpoll]>, [], 1024, 0, NULL, 8) = 0',
    'write(1<socket:[9]>, "{\\"outcome\\":null}\\n", 17) = 17',
    'write(24<socket:[8]>, "{}", 2) = 2',
    'close(24<socket:[8]>) = 0',
    'statx(AT_FDCWD</>, "/n/state", 0, STATX_ALL, {}) = 0',
  ]

  it('begin with the connection and end when it is closed', () => {
    const calls = residentCalls(parseTrace(trace.map((line) => `7 ${line}`).join('\n')))
    expect(calls.map(({ name, when }) => `${name} ${when}`)).toEqual(['accept4 1', 'read 1', 'write 1', 'write 2'])
  })

  it('are refused if the worker accepts no connection', () => {
    expect(() => residentCalls([])).toThrow('accepts no connection')
  })

  it('a seed draws the same tenth of them again, each with one fault; another seed draws another', () => {
    const points = Array.from({ length: 40 }, (_, when) => ({ name: 'statx', when, text: '' }))
    const faults = faultsNamed(FAULTS)
    const jobs = faults.flatMap((fault) => points.map((point) => ({ point, fault, turn: 0 })))
    const drawn = drawTenth(jobs, 1)
    expect(new Set(drawn.map((index) => jobs[index]?.point.when)).size).toBe(4)
    expect(drawTenth(jobs, 1)).toEqual(drawn)
    expect(drawTenth(jobs, 2)).not.toEqual(drawn)
  })
})

describe('npm run test:faults', () => {
  it('accepts every fault by name, and "permanent" for each fault that can be permanent', () => {
    expect(faultsNamed(FAULTS).map(inWords)).toEqual([
      'KILL',
      'EIO',
      'EIO from then on',
      'ENOSPC',
      'ENOSPC from then on',
      'EMFILE',
      'EMFILE from then on',
      'ENOMEM',
      'ENOMEM from then on',
      'EINTR',
      'EBUSY',
    ])
  })

  it.each([
    [['--command', 'umount'], '--command "umount": want one of mount, unmount, replace'],
    [['--fault', 'EPERM'], '--fault "EPERM": want one of KILL, EIO'],
    [['--tenth', '--seed', '0'], '--seed wants a number from 1 on, got 0'],
    [['--every', '0'], '--every wants a number from 1 on, got 0'],
    [['--evry', '3'], "Unknown option '--evry'"],
  ])('refuses %j', (args, message) => {
    expect(() => readOptions(args)).toThrow(message)
  })

  it('prints an aligned table, the failures, and a closing line', () => {
    const row = { command: 'mount', fault: 'EIO from then on', calls: 97, tried: 10, struck: 9, survived: 9 } as const
    const text = table({ rows: [row], failures: ['mount of a directory: EIO at openat 3'], seconds: 4.4 })
    expect(text.split('\n')).toEqual([
      'command  system calls  fault             tried  survived',
      'mount              97  EIO from then on     10         9',
      '',
      'NOT SURVIVED mount of a directory: EIO at openat 3',
      '',
      '10 faults tried, 9 struck a call, 9 survived, 1 not, 4 s',
      '',
    ])
  })
})
