import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { errorCode, SystemError } from '../../src/host/host.ts'

describe('a system error', () => {
  it('says on one line which call failed, on what, how and why', () => {
    const error = new SystemError('fsconfig', 'EINVAL', 'size=x', 'tmpfs: Bad value for size')
    expect(error.message).toBe('fsconfig size=x: EINVAL (tmpfs: Bad value for size)')
    expect(error).toMatchObject({ name: 'SystemError', syscall: 'fsconfig', code: 'EINVAL' })
  })

  it('needs no detail', () => {
    expect(new SystemError('openat2', 'ELOOP', '/srv/a').message).toBe('openat2 /srv/a: ELOOP')
  })
})

describe('the code of an error', () => {
  it.each([
    ['a system error', new SystemError('openat', 'ENOENT', 'x'), 'ENOENT'],
    ["one of node's", Object.assign(new Error('x'), { code: 'EACCES' }), 'EACCES'],
    ['a code that is a number', Object.assign(new Error('x'), { code: 5 }), undefined],
    ['a plain error', new Error('ENOENT'), undefined],
    ['no error at all', { code: 'ENOENT' }, undefined],
    ['text', 'ENOENT', undefined],
    ['undefined', undefined, undefined],
  ])('is read from %s', (_what, error, code) => {
    expect(errorCode(error)).toBe(code)
  })

  it('is read from a call of node:fs that failed', () => {
    let thrown: unknown
    try {
      readFileSync('/nowhere/at/all')
    } catch (error) {
      thrown = error
    }
    expect(errorCode(thrown)).toBe('ENOENT')
  })
})
