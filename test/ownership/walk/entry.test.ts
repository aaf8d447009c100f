import { expect, it } from 'vitest'
import { SystemError } from '../../../src/host/host.ts'
import { ignoreVanished, joinPath } from '../../../src/ownership/walk/entry.ts'

const bytes = (text: string) => Uint8Array.from(Buffer.from(text))
const below = (directory: string, name: string) => Buffer.from(joinPath(bytes(directory), bytes(name))).toString()

it.each([
  ['', '', ''],
  ['', 'a', 'a'],
  ['a', '', 'a'],
  ['a/b', 'c', 'a/b/c'],
])('of directory "%s" and name "%s" the path is "%s"', (directory, name, path) => {
  expect(below(directory, name)).toBe(path)
})

it('of a long path only the end is kept, from a whole name on', () => {
  const path = below('directory/'.repeat(200).slice(0, -1), 'name')
  expect(path).toMatch(/^…(\/directory)+\/name$/)
  expect(Buffer.byteLength(path)).toBeLessThanOrEqual(1024 + 3)
})

it.each(['ENOENT', 'ENOTDIR', 'ELOOP'])('a name that vanished (%s) has no result', (code) => {
  expect(
    ignoreVanished(() => {
      throw new SystemError('openat', code, 'a')
    }),
  ).toBeUndefined()
})

it('every other error passes, and so does the result', () => {
  const fail = () => {
    throw new SystemError('openat', 'EACCES', 'a')
  }
  expect(() => ignoreVanished(fail)).toThrow(SystemError)
  expect(ignoreVanished(() => 5)).toBe(5)
})
