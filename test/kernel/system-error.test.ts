import { expect, it } from 'vitest'
import { SystemError } from '../../src/kernel/host.ts'
import { addPathToErrors, FileError, hasCallSucceeded, tolerateSystemErrors } from '../../src/kernel/system-error.ts'

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
  const error = errorOf(() => addPathToErrors('write', '/state/a', throws(refused(code))))
  expect(error).toBeInstanceOf(FileError)
  expect(error).toMatchObject({ code, message: expect.stringMatching(/^cannot write \/state\/a \(.*\): /) })
  expect((error as Error).message).toMatch(way)
})

it('an error names the innermost file, and an error that is no system error is unchanged', () => {
  const inner = errorOf(() => addPathToErrors('lock', '/state/lock', throws(refused('EIO'))))
  expect(errorOf(() => addPathToErrors('write', '/state/a', throws(inner)))).toBe(inner)
  const bug = new TypeError('no text')
  expect(errorOf(() => addPathToErrors('write', '/state/a', throws(bug)))).toBe(bug)
  expect(addPathToErrors('read', '/state/a', () => 5)).toBe(5)
})

it('tolerateSystemErrors and hasCallSucceeded accept system errors, and rethrow other errors of modekeep', () => {
  for (const code of ['ENOENT', 'EACCES', 'EIO']) {
    expect(tolerateSystemErrors(throws(refused(code)))).toBeUndefined()
    expect(hasCallSucceeded(throws(refused(code)))).toBe(false)
  }
  expect([tolerateSystemErrors(() => 5), hasCallSucceeded(() => {})]).toEqual([5, true])
  for (const work of [tolerateSystemErrors, hasCallSucceeded])
    expect(() => work(throws(new TypeError('no text')))).toThrow('no text')
})
