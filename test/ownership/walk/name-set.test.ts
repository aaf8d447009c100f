import { expect, it } from 'vitest'
import { hashName, NameSet } from '../../../src/ownership/walk/name-set.ts'

const HERE = { inode: 1n, born: 1n }

it('names are distinguished by their directory, and by all their bytes', () => {
  const directories = [HERE, { inode: 1n, born: 2n }, { inode: 2n ** 63n, born: 1n }, { inode: 1n, born: 2n ** 40n }]
  const numbers = directories.map((directory) => hashName(directory, Buffer.from('a')))
  numbers.push(
    hashName(HERE, Uint8Array.of(0xff)),
    hashName(HERE, Uint8Array.of(0xfe)),
    hashName(HERE, Buffer.from('ab')),
  )
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(hashName({ ...HERE }, Buffer.from('a'))).toBe(numbers[0])
  for (const number of numbers) expect(number).toSatisfy((n: number) => Number.isSafeInteger(n - 1) && n > 0)
})

it('a name counts once in a set of any size', () => {
  const names = Array.from({ length: 200_000 }, (_, index) => hashName(HERE, Buffer.from(`file-${index}`)))
  expect(new Set(names).size).toBe(names.length)
  const set = new NameSet()
  for (const [index, name] of names.entries()) {
    set.add(name)
    set.add(names[index >> 1] ?? 0)
    if (set.size !== index + 1) expect.unreachable()
  }
  expect(set.size).toBe(names.length)
})
