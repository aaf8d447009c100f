import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { nodeFiles } from '../../src/host/node-files.ts'

const files = nodeFiles(fs)

function directory(): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'modekeep-node-files-'))
  onTestFinished(() => fs.rmSync(path, { recursive: true }))
  return path
}

describe('a copy', () => {
  it.each([0o6777, 0o666, 0o400])("of a file with mode %o is its owner's alone, and never set-uid", (mode) => {
    const [from, to] = [join(directory(), 'from'), join(directory(), 'to')]
    fs.writeFileSync(from, 'bytes')
    fs.chmodSync(from, mode)
    files.copy(from, to)
    expect([fs.statSync(to).mode & 0o7777, fs.readFileSync(to, 'utf8')]).toEqual([0o600, 'bytes'])
  })

  it('has the bytes of a file that is larger than one block', () => {
    const [from, to] = [join(directory(), 'from'), join(directory(), 'to')]
    fs.writeFileSync(from, Buffer.alloc(40_000_001, 'modekeep'))
    files.copy(from, to)
    expect(files.isSame(from, to)).toBe(true)
  })

  it('takes no name that is taken', () => {
    const [from, to] = [join(directory(), 'from'), join(directory(), 'to')]
    for (const path of [from, to]) fs.writeFileSync(path, path)
    expect(() => files.copy(from, to)).toThrow(/EEXIST/)
    expect(fs.readFileSync(to, 'utf8')).toBe(to)
  })
})
