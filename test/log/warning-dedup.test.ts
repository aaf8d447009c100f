import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createCallLog } from '../../src/log/call-log.ts'
import { appendLogLine } from '../../src/log/log-file.ts'
import { createDuplicateWarningCheck } from '../../src/log/warning-dedup.ts'

const NOW = Date.parse('2026-01-02T03:04:05.678Z')
const HOUR = 3_600_000

let file: string
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  file = `${fs.mkdtempSync(`${tmpdir()}/modekeep-log-`)}/log`
})
afterEach(() => {
  vi.useRealTimers()
  fs.rmSync(file.replace(/\/log$/, ''), { recursive: true })
})

const warning = (over: Record<string, unknown> = {}) =>
  JSON.stringify({
    time: new Date(NOW).toISOString(),
    level: 'warn',
    pid: 77,
    verb: 'mount',
    directory: '/pods/p/v',
    message: 'the "disk" is\nfull',
    ...over,
  })
const at = (milliseconds: number) => ({ time: new Date(NOW + milliseconds).toISOString(), pid: 5 })
const isSaid = (line = warning()) => createDuplicateWarningCheck(fs, file)(line)

describe('a warning that another call has written', () => {
  it.each([
    ['a moment ago', 0, true],
    ['almost an hour ago', 1000 - HOUR, true],
    ['an hour ago', -HOUR, false],
    ['in the future, by a clock that was ahead', 1000, false],
  ])('a warning that another call wrote %s (%i ms from now) is a duplicate: %s', (_when, age, said) => {
    appendLogLine(fs, file, warning(at(age)))
    expect(isSaid()).toBe(said)
  })

  it.each([
    ['another message', { message: 'the "disk" is' }],
    ['another directory', { directory: '/pods/q/v' }],
    ['another verb', { verb: 'unmount' }],
    ['another count', { repeated: 10 }],
    ['another level', { level: 'info' }],
    ['an invalid time', { time: 'yesterday' }],
  ])('a warning with %s is no duplicate', (_what, over) => {
    appendLogLine(fs, file, warning({ ...at(-1000), ...over }))
    expect(isSaid()).toBe(false)
  })

  it('the age of a duplicate warning counts from the last line with that warning', () => {
    for (const age of [-2 * HOUR, -1000]) appendLogLine(fs, file, warning(at(age)))
    expect(isSaid()).toBe(true)
  })

  it('a warning is no duplicate of a line that is incomplete, has lost its beginning, or is still being written', () => {
    const line = warning(at(-1000))
    for (const torn of [line, line.slice(0, -20) + line, `${line.slice(40)}\n`]) {
      fs.writeFileSync(file, torn)
      expect(isSaid()).toBe(false)
    }
    appendLogLine(fs, file, warning(at(-500)))
    expect(isSaid()).toBe(true)
  })

  it('a duplicate warning is found within the last 64 KiB of the log, at any cut', () => {
    for (const { length, said } of [
      { length: 65_000, said: true },
      { length: 65_536, said: false },
    ]) {
      fs.writeFileSync(file, `${'x\n'.repeat(1000)}${warning(at(-1))}\n${'é'.repeat(length / 2 - 1)}\n`)
      expect(isSaid()).toBe(said)
    }
  })

  it('a warning is no duplicate after a rotation, without a log, or if the log is unreadable', () => {
    appendLogLine(fs, file, warning(at(-1)), 1)
    expect([fs.existsSync(`${file}.1`), isSaid()]).toEqual([true, false])
    fs.mkdirSync(file)
    expect(isSaid()).toBe(false)
  })

  it('a truncated warning is a duplicate of an equally truncated warning', () => {
    const warn = () =>
      createCallLog({ verb: 'mount' }, 'info', (line) => appendLogLine(fs, file, line)).warn('é'.repeat(9000))
    warn()
    const [line = ''] = fs.readFileSync(file, 'utf8').split('\n')
    expect(line).toContain('bytes cut')
    expect(isSaid(line.replace(/"pid":\d+/, '"pid":1'))).toBe(true)
  })
})

describe('a failing call that kubelet repeats', () => {
  const call = (warnings: readonly string[], error?: Error) => {
    const facts = { verb: 'mount', directory: '/pods/p/v' }
    const append = (line: string) => appendLogLine(fs, file, line)
    const log = createCallLog({ ...facts }, 'info', append, undefined, createDuplicateWarningCheck(fs, file))
    for (const message of warnings) log.warn(message)
    log.end(error ? 'Failure' : 'Success', error)
  }
  const told = () =>
    fs
      .readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .map(({ message, outcome, repeatedWarnings }) => message ?? [outcome, repeatedWarnings])
  const failure = new Error('it failed')

  it('logs one line for each call, each warning once, and new warnings at once', () => {
    call(['one', 'two'], failure)
    call(['one', 'two'], failure)
    call(['one', 'three', 'two'], failure)
    call(['three'], failure)
    const first = ['one', 'two', ['Failure', undefined]]
    expect(told()).toEqual([...first, ['Failure', 2], 'three', ['Failure', 2], ['Failure', 1]])
  })

  it('logs all warnings again when the call finally succeeds', () => {
    call(['one', 'two'], failure)
    call(['one', 'two'])
    expect(told()).toEqual(['one', 'two', ['Failure', undefined], 'one', 'two', ['Success', undefined]])
  })

  it('logs the warnings again each hour', () => {
    for (let minutes = 0; minutes < 120; minutes += 2) {
      vi.setSystemTime(NOW + minutes * 60_000)
      call(['one'], failure)
    }
    expect(told().filter((message) => message === 'one')).toHaveLength(2)
    expect(told()).toHaveLength(60 + 2)
  })
})
