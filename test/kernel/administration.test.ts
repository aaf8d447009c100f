import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createNodeFiles } from '../../src/kernel/administration.ts'

const files = createNodeFiles(fs)

function directory(): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'modekeep-node-files-'))
  onTestFinished(() => fs.rmSync(path, { recursive: true }))
  return path
}

function copy(from: string, to: string): string {
  using file = files.open(from)
  return file.copyTo(to)
}

describe('a copied file', () => {
  it.each([0o6777, 0o666, 0o400])('from mode %o is accessible only to its owner, and never set-uid', (mode) => {
    const [from, to] = [join(directory(), 'from'), join(directory(), 'to')]
    fs.writeFileSync(from, 'bytes')
    fs.chmodSync(from, mode)
    copy(from, to)
    expect([fs.statSync(to).mode & 0o7777, fs.readFileSync(to, 'utf8')]).toEqual([0o600, 'bytes'])
  })

  it('has the bytes of a source larger than one block', () => {
    const [from, to] = [join(directory(), 'from'), join(directory(), 'to')]
    fs.writeFileSync(from, Buffer.alloc(40_000_001, 'modekeep'))
    expect(copy(from, to)).toBe(files.sum(from))
    expect(files.isSame(from, to)).toBe(true)
  })

  it('does not replace an existing file', () => {
    const [from, to] = [join(directory(), 'from'), join(directory(), 'to')]
    for (const path of [from, to]) fs.writeFileSync(path, path)
    expect(() => copy(from, to)).toThrow(/EEXIST/)
    expect(fs.readFileSync(to, 'utf8')).toBe(to)
  })
})

describe('a file named by a user', () => {
  const named = () => join(directory(), 'named')

  it('is read if it is a regular file of at most 1 MiB', () => {
    const path = named()
    expect(files.readForeign(path)).toBeUndefined()
    fs.writeFileSync(path, 'ä'.repeat(1 << 19))
    expect(files.readForeign(path)).toBe('ä'.repeat(1 << 19))
    fs.appendFileSync(path, 'x')
    expect(() => files.readForeign(path)).toThrow(/EFBIG/)
  })

  it('is read to its end if its size is reported as 0', () => {
    expect(files.readForeign('/proc/self/cmdline')).toBe(fs.readFileSync('/proc/self/cmdline', 'utf8'))
  })

  it('is not opened if it is a device, a directory or a FIFO, also behind a link', () => {
    const [fifo, link] = [named(), named()]
    execFileSync('mkfifo', [fifo])
    fs.symlinkSync('/dev/zero', link)
    const opened: unknown[] = []
    const watched = createNodeFiles({ ...fs, openSync: (...args) => opened.push(args) })
    for (const path of [fifo, link, '/dev/zero', directory()]) {
      expect(() => watched.readForeign(path)).toThrow(/no regular file/)
      expect(watched.head(path, 1)).toBeUndefined()
    }
    expect(opened).toEqual([])
  })

  it('is neither waited for nor read if a FIFO or a device replaces the file before the open', () => {
    const fifo = named()
    execFileSync('mkfifo', [fifo])
    const regular = fs.statSync(import.meta.filename)
    const late = createNodeFiles({ ...fs, statSync: (() => regular) as unknown as typeof fs.statSync })
    for (const path of [fifo, '/dev/zero']) expect(() => late.readForeign(path)).toThrow(/no regular file/)
  })
})
