import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { appendLogLine } from '../../src/log/log-file.ts'
import { createLogReader, findLogEnd, type LogCursor } from '../../src/log/log-reader.ts'

const LOG_FILE = new URL('../../src/log/log-file.ts', import.meta.url).href

let directory: string
let file: string
let cursor: LogCursor | undefined
let number: number
beforeEach(() => {
  directory = fs.mkdtempSync(`${tmpdir()}/modekeep-log-cursor-`)
  file = `${directory}/log`
  cursor = undefined
  number = 0
})
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }))

/** Fills a file after two. */
const append = (count = 1) => {
  for (let n = 0; n < count; n++) appendLogLine(fs, file, `line ${number++}`.padEnd(140, '.'), 200)
}

function news(over: typeof fs = fs): { lines: number[]; isGap: boolean } {
  const lines: number[] = []
  const reader = createLogReader(over, file, 'skip', cursor ?? findLogEnd(over, file))
  for (const line of reader.lines()) lines.push(Number(/^line (\d+)\.*$/.exec(line)?.[1]))
  // As it comes back from disk.
  cursor = JSON.parse(JSON.stringify(reader.cursor))
  return { lines, isGap: reader.gaps === 1 }
}

const told = (...lines: number[]) => ({ lines, isGap: false })

describe('a log that is read by one process after another', () => {
  it('is read from its end if the cursor is at its end', () => {
    append(3)
    expect(news()).toEqual(told())
    append()
    expect(news()).toEqual(told(3))
  })

  it('is read completely if the cursor was made before the log existed', () => {
    expect(news()).toEqual(told())
    expect(news()).toEqual(told())
    append(5)
    expect(news()).toEqual(told(0, 1, 2, 3, 4))
    expect(news()).toEqual(told())
  })

  it.each([1, 2, 3, 4, 5, 6])('is read %i lines at a time, each once and in order, through rotations', (step) => {
    append()
    news()
    for (let first = 1; first < 60; first += step) {
      append(step)
      expect(news()).toEqual(told(...Array.from({ length: step }, (_, n) => first + n)))
    }
    expect(fs.readdirSync(directory).sort()).toContain('log.3')
  })

  it('is read from its end, with a gap counted, after the file of the cursor was rotated away', () => {
    append()
    news()
    append(12)
    expect(news()).toEqual({ lines: [], isGap: true })
    append()
    expect(news()).toEqual(told(13))
  })

  it.each<[string, () => void]>([
    ['emptied', () => fs.truncateSync(file, 0)],
    ['removed', () => fs.rmSync(file)],
    ['written again', () => fs.writeFileSync(file, `${'another'.padEnd(400, '.')}\n`)],
  ])('has no line twice after the log was %s', (_what, spoil) => {
    append(3)
    news()
    spoil()
    append()
    expect(news()).toEqual({ lines: [], isGap: true })
    append()
    expect(news()).toEqual(told(4))
  })

  it('is read by any later process with a late line in a rotated file', () => {
    append()
    news()
    const late = fs.openSync(file, 'a')
    append(3)
    expect(news()).toEqual(told(1, 2, 3))
    append(2)
    expect(news()).toEqual(told(4, 5))
    fs.writeSync(late, 'line 100\n')
    append()
    expect(news()).toEqual(told(100, 6))
    fs.writeSync(late, 'line 101\n')
    expect(news()).toEqual(told(101))
    fs.closeSync(late)
    expect(news()).toEqual(told())
  })

  it('is read with an incomplete line once, only after its newline is written', () => {
    append()
    news()
    append()
    fs.appendFileSync(file, 'li')
    expect(news()).toEqual(told(1))
    fs.appendFileSync(file, 'ne 7\n')
    expect(news()).toEqual(told(7))
  })

  it('is read up to the last newline', () => {
    append()
    news()
    fs.appendFileSync(file, 'line 7')
    expect(news()).toEqual(told())
    fs.appendFileSync(file, '\nline 8\nli')
    expect(news()).toEqual(told(7, 8))
  })

  it('is read with lines longer than a block that contain multi-byte characters', () => {
    append()
    news()
    const long = 'é€𝄞'.repeat(400_000)
    fs.appendFileSync(file, `${long}\n${long}\n`)
    const lines = [...createLogReader(fs, file, 'skip', cursor).lines()]
    expect(lines.map((line) => line === long)).toEqual([true, true])
  })

  it.each([0, 1, 2])('is read in a consistent state if the log rotates after file %i was opened', (after) => {
    append(5)
    news()
    append(2)
    let opened = 0
    const rotating = {
      ...fs,
      openSync: (...args: Parameters<typeof fs.openSync>) => {
        if (opened++ === after + 1) append(2)
        return fs.openSync(...args)
      },
    } as typeof fs
    const { lines, isGap } = news(rotating)
    expect([...lines, ...news().lines]).toEqual([5, 6, 7, 8])
    expect([opened > after + 1, isGap]).toEqual([true, false])
  })

  it('is read with every line of other processes once while they write', async () => {
    news()
    const script = `import * as fs from 'node:fs'; import { appendLogLine } from ${JSON.stringify(LOG_FILE)}
      for (let n = 0; n < 4000; n++) appendLogLine(fs, ${JSON.stringify(file)}, 'line ' + n, 20_000)`
    const writers = [1, 2].map(() =>
      spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: 'inherit',
      }),
    )
    const ended = Promise.all(writers.map((writer) => once(writer, 'close')))
    let isOver = false
    void ended.then(() => {
      isOver = true
    })
    const counts = new Map<number, number>()
    let gaps = 0
    for (let last = false; ; ) {
      const { lines, isGap } = news()
      for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
      if (isGap) gaps++
      if (last) break
      last = isOver
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect((await ended).map(([code]) => code)).toEqual([0, 0])
    expect(Math.max(...counts.values())).toBeLessThanOrEqual(2)
    // On a machine that lets the reader wait, its place may be gone.
    if (gaps === 0) expect([...counts.values()].reduce((sum, count) => sum + count)).toBe(8000)
    expect(counts.size).toBeGreaterThan(1000)
  })
})
