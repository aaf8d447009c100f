import { expect, it } from 'vitest'
import { createFault } from '../../src/errors/fault.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { type CallLog, createCallLog, type LogLevel } from '../../src/log/call-log.ts'

const CALL = { verb: 'mount', directory: '/pods/p/v' }

function logged(level: LogLevel, use: (log: CallLog) => void): Record<string, unknown>[] {
  const lines: string[] = []
  use(createCallLog({ ...CALL }, level, (line) => lines.push(line)))
  expect(lines.filter((line) => line.includes('\n'))).toEqual([])
  return lines.map((line) => JSON.parse(line))
}

const COMMON = { time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/), pid: process.pid, ...CALL }
const TIMED = { ...COMMON, durationMs: expect.any(Number) }

it('the call log writes one JSON line with all noted facts when the call ends', () => {
  const lines = logged('info', (log) => {
    log.note({ pod: 'n/p', decision: 'preparing' })
    log.note({ decision: 'fresh', steps: ['record', 'attach'] })
    log.end('Success')
  })
  expect(lines).toEqual([
    { ...TIMED, level: 'info', outcome: 'Success', pod: 'n/p', decision: 'fresh', steps: ['record', 'attach'] },
  ])
})

it('the line of a failed call contains the error and its stack', () => {
  const lines = logged('info', (log) => log.end('Failure', new TypeError('two\nlines')))
  expect(lines).toEqual([
    {
      ...TIMED,
      level: 'error',
      outcome: 'Failure',
      error: 'two\nlines',
      stack: expect.stringMatching(/^TypeError: two\nlines\n {4}at /),
    },
  ])
})

it('the line of a refused call differs from that of a failed call by isRefused', () => {
  const refused = logged('info', (log) => log.end('Failure', new Refusal(createFault('internal', 'no'))))
  const failed = logged('info', (log) => log.end('Failure', new Error('no')))
  expect([refused, failed].map(([line]) => [line?.error, line?.isRefused])).toEqual([
    ['no', true],
    ['no', undefined],
  ])
})

it('the call log writes a failure whose reason is not an Error', () => {
  expect(logged('error', (log) => log.end('Failure', 'text'))).toEqual([
    { ...TIMED, level: 'error', outcome: 'Failure' },
  ])
})

it('the call log writes each warning as a separate line with the pod and without other facts', () => {
  const lines = logged('info', (log) => {
    log.note({ pod: 'n/p', decision: 'preparing' })
    log.warn('first')
    log.warn('second')
    log.end('Success')
  })
  expect(lines.slice(0, 2)).toEqual([
    { ...COMMON, level: 'warn', pod: 'n/p', message: 'first' },
    { ...COMMON, level: 'warn', pod: 'n/p', message: 'second' },
  ])
  expect(lines).toHaveLength(3)
})

it.each<[LogLevel, string[]]>([
  ['error', ['error']],
  ['warn', ['warn', 'error']],
  ['info', ['warn', 'info', 'error']],
  ['debug', ['warn', 'info', 'error']],
])('the call log at level %s writes entries of at least that level', (level, written) => {
  const lines = logged(level, (log) => {
    log.warn('a warning')
    log.end('Success')
    log.end('Failure', new Error('x'))
  })
  expect(lines.map((line) => line.level)).toEqual(written)
})

it('the call log counts equal warnings in a row instead of repeating them', () => {
  const lines = logged('info', (log) => {
    for (let n = 0; n < 1234; n++) log.warn('the same')
    log.warn('another')
    log.warn('the same')
    log.end('Success')
  })
  expect(lines.map(({ level, message, repeated }) => [level, message, repeated])).toEqual([
    ['warn', 'the same', undefined],
    ['warn', 'the same', 10],
    ['warn', 'the same', 90],
    ['warn', 'the same', 900],
    ['warn', 'the same', 233],
    ['warn', 'another', undefined],
    ['warn', 'the same', undefined],
    ['info', undefined, undefined],
  ])
})

it('the call log counts equal warnings across several calls that share a last warning', () => {
  const last = { repeated: 0, reported: 0 }
  const lines: string[] = []
  for (let n = 0; n < 30; n++) createCallLog({ ...CALL }, 'info', (line) => lines.push(line), last).warn('the same')
  expect(lines.map((line) => JSON.parse(line).repeated)).toEqual([undefined, 10])
})
