import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sourceDate } from '../../scripts/release/source-date.ts'
import { tarOf } from '../../scripts/release/tar.ts'

const LONG = `${'d'.repeat(80)}/${'e'.repeat(60)}/${'f'.repeat(90)}`

it("an archive is read by the machine's tar as it was given: names, bytes, modes, times", () => {
  const directory = fs.mkdtempSync(join(tmpdir(), 'modekeep-tar-'))
  try {
    const bytes = [Buffer.alloc(0), Buffer.from('one'), Buffer.alloc(512, 1), Buffer.alloc(513, 2)]
    const names = ['z/empty', 'a', 'z/block', LONG]
    const entries = names.map((path, n) => ({ path, bytes: bytes[n] ?? Buffer.alloc(0), isProgram: path === 'a' }))
    fs.writeFileSync(`${directory}/x.tar`, tarOf(entries, 1_700_000_000))
    fs.mkdirSync(`${directory}/out`)
    execFileSync('tar', ['-xpf', `${directory}/x.tar`, '-C', `${directory}/out`])
    const found = entries.map(({ path }) => {
      const { mode, mtimeMs } = fs.statSync(`${directory}/out/${path}`)
      return [path, fs.readFileSync(`${directory}/out/${path}`), mode & 0o7777, mtimeMs]
    })
    const given = entries.map(({ path, bytes, isProgram }) => [
      path,
      bytes,
      isProgram ? 0o755 : 0o644,
      1_700_000_000_000,
    ])
    expect(found).toEqual(given)
    expect(tarOf(entries.toReversed(), 1_700_000_000).equals(tarOf(entries, 1_700_000_000))).toBe(true)
  } finally {
    fs.rmSync(directory, { recursive: true })
  }
})

it('takes no name that the format has no room for', () => {
  expect(() => tarOf([{ path: 'f'.repeat(101), bytes: Buffer.alloc(0) }], 0)).toThrow('too long')
})

it('a release bears the time of its sources, and without one says how to give it', async () => {
  expect(await sourceDate('/', '1700000000')).toBe(1_700_000_000)
  await expect(sourceDate('/', 'now')).rejects.toThrow('SOURCE_DATE_EPOCH is "now"')
  await expect(sourceDate('/', undefined)).rejects.toThrow('set SOURCE_DATE_EPOCH')
})
