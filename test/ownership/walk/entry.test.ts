import { expect, it } from 'vitest'
import { SystemError } from '../../../src/kernel/host.ts'
import { hashEntryName, ignoreVanishedEntry, joinEntryPath } from '../../../src/ownership/walk/entry.ts'

const bytes = (text: string) => Uint8Array.from(Buffer.from(text))
const below = (directory: string, name: string) => Buffer.from(joinEntryPath(bytes(directory), bytes(name))).toString()

it.each([
  ['', '', ''],
  ['', 'a', 'a'],
  ['a', '', 'a'],
  ['a/b', 'c', 'a/b/c'],
])('joinEntryPath of "%s" and "%s" is "%s"', (directory, name, path) => {
  expect(below(directory, name)).toBe(path)
})

it('a long path is shortened to its end, which begins with a complete name', () => {
  const path = below('directory/'.repeat(200).slice(0, -1), 'name')
  expect(path).toMatch(/^…(\/directory)+\/name$/)
  expect(Buffer.byteLength(path)).toBeLessThanOrEqual(1024 + 3)
})

it.each(['ENOENT', 'ENOTDIR', 'ELOOP'])(
  'ignoreVanishedEntry returns undefined for a name that vanished (%s)',
  (code) => {
    expect(
      ignoreVanishedEntry(() => {
        throw new SystemError('openat', code, 'a')
      }),
    ).toBeUndefined()
  },
)

it("ignoreVanishedEntry throws any other error, and returns the operation's result", () => {
  const fail = () => {
    throw new SystemError('openat', 'EACCES', 'a')
  }
  expect(() => ignoreVanishedEntry(fail)).toThrow(SystemError)
  expect(ignoreVanishedEntry(() => 5)).toBe(5)
})

const HERE = { inode: 1n, born: 1n }

it('the hash of a file name depends on its directory and on all bytes of the name', () => {
  const directories = [HERE, { inode: 1n, born: 2n }, { inode: 2n ** 63n, born: 1n }, { inode: 1n, born: 2n ** 40n }]
  const numbers = directories.map((directory) => hashEntryName(directory, Buffer.from('a')))
  numbers.push(
    hashEntryName(HERE, Uint8Array.of(0xff)),
    hashEntryName(HERE, Uint8Array.of(0xfe)),
    hashEntryName(HERE, Buffer.from('ab')),
  )
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(hashEntryName({ ...HERE }, Buffer.from('a'))).toBe(numbers[0])
  for (const number of numbers) expect(number).toSatisfy((n: number) => Number.isSafeInteger(n - 1) && n > 0)
})
