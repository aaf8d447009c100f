import { expect, it } from 'vitest'
import { SystemError } from '../../src/kernel/host.ts'
import { FileError, succeeds, tolerateSystemErrors, withPath } from '../../src/kernel/system-error.ts'

const throws = (error: unknown) => () => {
  throw error
}
const refused = (code: string) => new SystemError('write', code, 'an open handle')

function errorOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return expect.unreachable()
}

it.each([
  ['ENOSPC', /: free space or inodes on its file system$/],
  ['EROFS', /: make its file system writable$/],
  ['ENAMETOOLONG', /: remove the cause$/],
])('a system error (%s) is reported with the operation, the file and the remedy', (code, way) => {
  const error = errorOf(() => withPath('write', '/state/a', throws(refused(code))))
  expect(error).toBeInstanceOf(FileError)
  expect(error).toMatchObject({ code, message: expect.stringMatching(/^cannot write \/state\/a \(.*\): /) })
  expect((error as Error).message).toMatch(way)
})

it('an error names the innermost file, and an error that is no system error is unchanged', () => {
  const inner = errorOf(() => withPath('lock', '/state/lock', throws(refused('EIO'))))
  expect(errorOf(() => withPath('write', '/state/a', throws(inner)))).toBe(inner)
  const bug = new TypeError('no text')
  expect(errorOf(() => withPath('write', '/state/a', throws(bug)))).toBe(bug)
  expect(withPath('read', '/state/a', () => 5)).toBe(5)
})

it("tolerateSystemErrors and succeeds accept system errors, and throw modekeep's own errors", () => {
  for (const code of ['ENOENT', 'EACCES', 'EIO']) {
    expect(tolerateSystemErrors(throws(refused(code)))).toBeUndefined()
    expect(succeeds(throws(refused(code)))).toBe(false)
  }
  expect([tolerateSystemErrors(() => 5), succeeds(() => {})]).toEqual([5, true])
  for (const work of [tolerateSystemErrors, succeeds])
    expect(() => work(throws(new TypeError('no text')))).toThrow('no text')
})
