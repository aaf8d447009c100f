import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { getErrno, SystemError } from '../../src/kernel/host.ts'

describe('a system error', () => {
  it('has the failed call, its subject, error code and detail on one line', () => {
    const error = new SystemError('fsconfig', 'EINVAL', 'size=x', 'tmpfs: Bad value for size')
    expect(error.message).toBe('fsconfig size=x: EINVAL (tmpfs: Bad value for size)')
    expect(error).toMatchObject({ name: 'SystemError', syscall: 'fsconfig', code: 'EINVAL' })
  })

  it('is formatted without a detail if none is given', () => {
    expect(new SystemError('openat2', 'ELOOP', '/srv/a').message).toBe('openat2 /srv/a: ELOOP')
  })
})

describe('getErrno', () => {
  it.each([
    ['a system error', new SystemError('openat', 'ENOENT', 'x'), 'ENOENT'],
    ['an error of Node', Object.assign(new Error('x'), { code: 'EACCES' }), 'EACCES'],
    ['a code that is a number', Object.assign(new Error('x'), { code: 5 }), undefined],
    ['a plain error', new Error('ENOENT'), undefined],
    ['no error at all', { code: 'ENOENT' }, undefined],
    ['text', 'ENOENT', undefined],
    ['undefined', undefined, undefined],
  ])('returns the code of %s', (_what, error, code) => {
    expect(getErrno(error)).toBe(code)
  })

  it('returns the code of a failed call of node:fs', () => {
    let thrown: unknown
    try {
      readFileSync('/nowhere/at/all')
    } catch (error) {
      thrown = error
    }
    expect(getErrno(thrown)).toBe('ENOENT')
  })
})
