import { describe, expect, it } from 'vitest'
import { DirentIterator } from '../../src/kernel/dirents.ts'
import { toDirents } from '../memory-host/entries.ts'

const names = (count: number) => Array.from({ length: count }, (_, index) => Buffer.from(`file-${index}`))

function rest(entries: DirentIterator): string[] {
  const found: string[] = []
  while (entries.next()) found.push(Buffer.from(entries.name).toString())
  return found
}

describe('a block of directory entries', () => {
  it('is read without "." and "..", with names of any length', () => {
    const all = ['.', '..', '.a', '...', 'a', '1234', '12345', '123456789012'].map((name) => Buffer.from(name))
    expect(rest(new DirentIterator(toDirents(all, 0)))).toEqual(['.a', '...', 'a', '1234', '12345', '123456789012'])
  })

  it('returns the position after an entry and after all entries', () => {
    const entries = new DirentIterator(toDirents(names(3), 7))
    expect(entries.after).toBeUndefined()
    entries.next()
    expect([entries.after, entries.end]).toEqual([8n, 10n])
  })

  it('returns an entry again after a step back, and continues after it', () => {
    const entries = new DirentIterator(toDirents(names(4), 0))
    entries.next()
    const { place } = entries
    expect(rest(entries)).toHaveLength(3)
    expect(entries.isAtEnd).toBe(true)
    entries.goTo(place)
    expect([entries.isAtEnd, Buffer.from(entries.name).toString()]).toEqual([false, 'file-0'])
    expect(rest(entries)).toEqual(['file-1', 'file-2', 'file-3'])
  })

  it('is read with names longer than most file systems permit', () => {
    const all = [1, 254, 255, 256, 257, 1024].map((length) => Buffer.alloc(length, 'n'))
    const entries = new DirentIterator(toDirents(all, 0))
    const lengths: number[] = []
    while (entries.next()) lengths.push(entries.nameLength, entries.name.length)
    expect(lengths).toEqual(all.flatMap(({ length }) => [length, length]))
  })

  it('is refused if an entry is damaged, instead of being read endlessly', () => {
    const block = toDirents(names(2), 0)
    block.fill(0, 16, 18)
    expect(() => new DirentIterator(block).next()).toThrow('damaged')
  })
})
