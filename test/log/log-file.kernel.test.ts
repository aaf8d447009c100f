import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { appendLogLine } from '../../src/log/log-file.ts'
import { logLines } from './log-lines.ts'

const LOG_FILE = new URL('../../src/log/log-file.ts', import.meta.url).href

let directory: string
beforeEach(() => {
  directory = fs.mkdtempSync(`${tmpdir()}/modekeep-log-`)
})
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }))

describe('the log on a real node', () => {
  it.each([
    ['on a full disk', '/dev/full'],
    ['a directory', '/proc'],
    ['below a file', '/proc/version/log'],
  ])('an append to the log does not throw if the log is %s', (_what, file) => {
    expect(() => appendLogLine(fs, file, 'line')).not.toThrow()
  })

  it('a log rotates in the opened directory even if a symbolic link has taken the name of the directory', () => {
    const [logs, others] = [`${directory}/logs`, `${directory}/others`]
    fs.mkdirSync(logs)
    fs.mkdirSync(others)
    fs.writeFileSync(`${others}/log`, 'of another program')
    const exchanging = {
      ...fs,
      mkdirSync(...args: Parameters<typeof fs.mkdirSync>) {
        fs.renameSync(logs, `${logs}-moved`)
        fs.symlinkSync(others, logs)
        return fs.mkdirSync(...args)
      },
    } as typeof fs
    appendLogLine(exchanging, `${logs}/log`, 'a line', 1)
    expect(fs.readdirSync(others)).toEqual(['log'])
    expect(fs.readdirSync(`${logs}-moved`)).toEqual(['log.1'])
  })

  it('the log keeps every line of several processes that write and rotate concurrently', async () => {
    const processes = 6
    const lines = 60
    const code = `
      import * as fs from 'node:fs'
      import { appendLogLine } from ${JSON.stringify(LOG_FILE)}
      const [file, name] = process.argv.slice(1)
      for (let n = 0; n < ${lines}; n++) appendLogLine(fs, file, name + '-' + n + 'x'.repeat(90), 10_000)`
    for (let round = 0; round < 5; round++) {
      const top = `${directory}/${round}`
      const running = Array.from({ length: processes }, (_, name) =>
        spawn(process.execPath, ['--input-type=module', '-e', code, `${top}/log`, String(name)], { stdio: 'inherit' }),
      )
      const ends = await Promise.all(running.map((child) => once(child, 'exit')))
      expect(ends.map(([status]) => status)).toEqual(Array(processes).fill(0))
      // 34 kB in files that rotate at 10 kB: three old generations and the current one hold all of it.
      const written = logLines(fs, top)
      expect(written).toHaveLength(processes * lines)
      expect(new Set(written).size).toBe(processes * lines)
      expect(written.every((line) => /^\d-\d+x{90}$/.test(line))).toBe(true)
    }
  })
})
