import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { appendLogLine } from '../../src/log/log-file.ts'
import { createLogReader, type LogReader } from '../../src/log/log-reader.ts'

describe('a log that is read while it is written', () => {
  let top: string
  let file: string
  let reader: LogReader
  beforeEach(() => {
    top = fs.mkdtempSync(`${tmpdir()}/modekeep-log-`)
    file = `${top}/log`
    reader = createLogReader(fs, file, 'show')
  })
  afterEach(() => fs.rmSync(top, { recursive: true }))
  const lines = () => [...reader.lines()]
  const write = (line: string, largest?: number) => appendLogLine(fs, file, line, largest)

  it('has no lines before it exists', () => {
    expect(lines()).toEqual([])
    write('a')
    expect(lines()).toEqual(['a'])
    expect(lines()).toEqual([])
  })

  it('has the lines of rotated files first, each once', () => {
    for (const line of ['a', 'b', 'c', 'd']) write(line, 1)
    expect(fs.readdirSync(top).sort()).toEqual(['log.1', 'log.2', 'log.3'])
    write('e')
    expect(lines()).toEqual(['b', 'c', 'd', 'e'])
    expect(lines()).toEqual([])
  })

  it('is read through any number of rotations, with late lines in rotated files', () => {
    write('first')
    expect(lines()).toEqual(['first'])
    const late = fs.openSync(file, 'a')
    write('second', 1)
    write('third', 1)
    write('fourth')
    expect(lines()).toEqual(['second', 'third', 'fourth'])
    fs.writeSync(late, 'late\n')
    fs.closeSync(late)
    write('fifth')
    expect(lines()).toEqual(['late', 'fifth'])
    expect(lines()).toEqual([])
  })

  it('is read up to the last newline', () => {
    fs.writeFileSync(file, 'half')
    expect(lines()).toEqual([])
    fs.appendFileSync(file, ' and half\nnext')
    expect(lines()).toEqual(['half and half'])
    fs.appendFileSync(file, '\n')
    expect(lines()).toEqual(['next'])
  })

  it('is read with a line longer than a block and a line across two blocks', () => {
    const long = 'x'.repeat(200_000)
    write(long)
    write('ü'.repeat(40_000))
    expect(lines()).toEqual([long, 'ü'.repeat(40_000)])
  })

  it('is read from its beginning after the file was truncated', () => {
    write('one two three')
    expect(lines()).toEqual(['one two three'])
    fs.truncateSync(file)
    write('four')
    expect(lines()).toEqual(['four'])
    fs.appendFileSync(file, 'half of a line')
    expect(lines()).toEqual([])
    fs.truncateSync(file)
    write('five')
    expect(lines()).toEqual(['five'])
  })

  it('loses and repeats no line during continuous rotations', () => {
    const seen: string[] = []
    for (let n = 0; n < 500; n++) {
      write(`line ${n}`, 40)
      if (n % 3 === 0) seen.push(...lines())
    }
    seen.push(...lines())
    expect(seen).toEqual(Array.from({ length: 500 }, (_, n) => `line ${n}`))
  })
})
