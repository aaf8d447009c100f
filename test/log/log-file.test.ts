import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { memfs } from 'memfs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { appendLogLine } from '../../src/log/log-file.ts'
import { GENERATIONS, logLines } from './log-lines.ts'

type Fs = Parameters<typeof appendLogLine>[0]

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code })
}

/** `over` with one call replaced. */
function broken(over: Fs, call: keyof Fs, error: Error): Fs {
  return {
    ...over,
    [call]: () => {
      throw error
    },
  }
}

let directory: string
beforeEach(() => {
  directory = fs.mkdtempSync(`${tmpdir()}/modekeep-log-`)
})
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }))

describe.each<[string, () => [typeof fs, string]]>([
  ['memfs', () => [memfs({ '/x': null }).fs as unknown as typeof fs, '/x']],
  ['real files', () => [fs, directory]],
])('a line for the log, on %s', (_where, place) => {
  it('a log line is appended with a newline, and the directory of the log is created if missing', () => {
    const [over, top] = place()
    appendLogLine(over, `${top}/var/log/modekeep/log`, 'one')
    appendLogLine(over, `${top}/var/log/modekeep/log`, 'two')
    expect(over.readFileSync(`${top}/var/log/modekeep/log`, 'utf8')).toBe('one\ntwo\n')
    const modes = [`${top}/var/log/modekeep/log`, `${top}/var/log/modekeep`].map((path) => over.statSync(path).mode)
    expect(modes.map((mode) => mode & 0o7)).toEqual([0, 0])
  })

  it('a log line that fills the file makes that file the first rotated file', () => {
    const [over, top] = place()
    appendLogLine(over, `${top}/log`, '123456789', 20)
    expect(over.readdirSync(top)).toEqual(['log'])
    appendLogLine(over, `${top}/log`, '123456789', 20)
    expect(over.readdirSync(top)).toEqual(['log.1'])
    appendLogLine(over, `${top}/log`, 'next', 20)
    expect(over.readFileSync(`${top}/log`, 'utf8')).toBe('next\n')
    expect(over.readFileSync(`${top}/log.1`, 'utf8')).toBe('123456789\n123456789\n')
  })

  it('the log has at most three rotated files with the latest lines', () => {
    const [over, top] = place()
    for (let n = 0; n <= 100; n++) appendLogLine(over, `${top}/log`, `line ${n}`, 20)
    expect(over.readdirSync(top).sort()).toEqual(GENERATIONS)
    // Three lines of seven or eight bytes fill a file of 20.
    expect(logLines(over, top)).toEqual([
      'line 99',
      'line 100',
      'line 96',
      'line 97',
      'line 98',
      'line 93',
      'line 94',
      'line 95',
      'line 90',
      'line 91',
      'line 92',
    ])
  })

  it.each<[keyof Fs, string]>([
    ['openSync', 'EACCES'],
    ['openSync', 'EROFS'],
    ['mkdirSync', 'EACCES'],
    ['writeSync', 'ENOSPC'],
    ['writeSync', 'EDQUOT'],
    ['fstatSync', 'EIO'],
    ['statSync', 'ENOENT'],
    ['renameSync', 'EACCES'],
    ['closeSync', 'EIO'],
  ])('an append to the log does not throw if %s fails with %s', (call, code) => {
    const [over, top] = place()
    expect(() => appendLogLine(broken(over, call, failure(code)), `${top}/a/log`, 'x'.repeat(30), 20)).not.toThrow()
  })

  it('a log line is written even if the file cannot be rotated', () => {
    const [over, top] = place()
    const stuck = broken(over, 'renameSync', failure('EACCES'))
    for (const line of ['one', 'two', 'three']) appendLogLine(stuck, `${top}/log`, line, 1)
    expect(over.readFileSync(`${top}/log`, 'utf8')).toBe('one\ntwo\nthree\n')
  })

  it('a log line is not lost if another call rotates between the steps of a rotation', () => {
    const [over, top] = place()
    let others = ['other', 'after'].map((line) => () => appendLogLine(over, `${top}/log`, line, 20))
    const interrupted: Fs = {
      ...over,
      renameSync(from, to) {
        const now = String(from).endsWith('/log') ? others : []
        others = others.slice(now.length)
        for (const call of now) call()
        over.renameSync(from, to)
      },
    }
    appendLogLine(interrupted, `${top}/log`, 'first, long enough to rotate', 20)
    expect(logLines(over, top).sort()).toEqual(['after', 'first, long enough to rotate', 'other'])
  })

  it('the log is rotated again some time after a call crashed during a rotation', () => {
    const [over, top] = place()
    over.mkdirSync(`${top}/log.rotating`)
    appendLogLine(over, `${top}/log`, 'one', 1)
    expect(over.existsSync(`${top}/log.1`)).toBe(false)
    const longAgo = new Date(Date.now() - 61_000)
    over.utimesSync(`${top}/log.rotating`, longAgo, longAgo)
    appendLogLine(over, `${top}/log`, 'two', 1)
    appendLogLine(over, `${top}/log`, 'three', 1)
    expect(over.readdirSync(top)).toEqual(['log.1'])
    expect(logLines(over, top)).toEqual(['one', 'two', 'three'])
  })

  it('a log line is not lost if another call has rotated the log since the file was opened', () => {
    const [over, top] = place()
    const late: Fs = {
      ...over,
      writeSync: ((fd: number, text: string) => {
        appendLogLine(over, `${top}/log`, 'other, long enough to rotate', 20)
        return over.writeSync(fd, text)
      }) as Fs['writeSync'],
    }
    appendLogLine(late, `${top}/log`, 'first, long enough to rotate', 20)
    appendLogLine(over, `${top}/log`, 'after', 20)
    expect(logLines(over, top).sort()).toEqual([
      'after',
      'first, long enough to rotate',
      'other, long enough to rotate',
    ])
    expect(over.readdirSync(top).sort()).toEqual(['log', 'log.1'])
  })
})
