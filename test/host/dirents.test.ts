import { describe, expect, it } from 'vitest'
import { Dirents, TYPE_DIRECTORY } from '../../src/host/dirents.ts'
import { toDirents } from '../memory-host/entries.ts'

const names = (count: number) => Array.from({ length: count }, (_, index) => Buffer.from(`file-${index}`))

/** The same block, of directories. */
function ofDirectories(block: Uint8Array): Uint8Array {
  for (const entries = new Dirents(block); entries.next(); )
    block[entries.name.byteOffset - block.byteOffset - 1] = TYPE_DIRECTORY
  return block
}

function rest(entries: Dirents): string[] {
  const found: string[] = []
  while (entries.next()) found.push(Buffer.from(entries.name).toString())
  return found
}

describe('a block of directory entries', () => {
  it('is read without the two that every directory has, names of every length whole', () => {
    const all = ['.', '..', '.a', '...', 'a', '1234', '12345', '123456789012'].map((name) => Buffer.from(name))
    expect(rest(new Dirents(toDirents(all, 0)))).toEqual(['.a', '...', 'a', '1234', '12345', '123456789012'])
  })

  it('tells where to go on, after an entry and after all of them', () => {
    const entries = new Dirents(toDirents(names(3), 7))
    expect(entries.after).toBeUndefined()
    entries.next()
    expect([entries.after, entries.end]).toEqual([8n, 10n])
  })

  it('is split into two halves of what is left, none twice and none lost', () => {
    const entries = new Dirents(toDirents(names(10), 0))
    entries.next()
    entries.next()
    const half = entries.split()
    expect(entries.isSplit).toBe(true)
    const [own, given] = [rest(entries), rest(new Dirents(half))]
    expect([own, given]).toEqual([
      ['file-2', 'file-3', 'file-4', 'file-5'],
      ['file-6', 'file-7', 'file-8', 'file-9'],
    ])
  })

  it('is worth sharing for 256 files or two directories that are left', () => {
    expect(new Dirents(toDirents(names(255), 0)).isWorthSharing()).toBe(false)
    const files = new Dirents(toDirents(names(256), 0))
    expect(files.isWorthSharing()).toBe(true)
    files.next()
    expect(files.isWorthSharing()).toBe(false)
    expect(new Dirents(ofDirectories(toDirents(names(2), 0))).isWorthSharing()).toBe(true)
    expect(new Dirents(ofDirectories(toDirents(names(1), 0))).isWorthSharing()).toBe(false)
  })

  it('that is damaged is refused, and not read for ever', () => {
    const block = toDirents(names(2), 0)
    block.fill(0, 16, 18)
    expect(() => new Dirents(block).next()).toThrow('damaged')
  })
})
