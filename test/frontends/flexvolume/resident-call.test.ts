import { describe, expect, it } from 'vitest'
import { hasSameVariables, parseResidentCall } from '../../../src/frontends/flexvolume/resident-call.ts'

const parse = (text: string) => parseResidentCall(Buffer.from(text))

describe('a call that the loader hands to the resident worker', () => {
  it('has the umask, the arguments and the variables', () => {
    expect(parse('18\x003\0mount\0/pods/a\0{"a":"=b"}\0MODEKEEP_CONFIG=/etc/a=b\0')).toEqual({
      umask: 0o022,
      argv: ['mount', '/pods/a', '{"a":"=b"}'],
      env: { MODEKEEP_CONFIG: '/etc/a=b' },
    })
    expect(parse('0\x001\0init\0')).toEqual({ umask: 0, argv: ['init'], env: {} })
  })

  it.each([
    ['nothing', ''],
    ['an argument that is cut off', '18\x002\0unmount\0/pods/'],
    ['too few arguments', '18\x003\0unmount\0/pods/a\0'],
    ['no number of arguments', '18\0init\0'],
    ['no umask', 'init\x001\0init\0'],
  ])('is not made if it has %s', (_what, text) => {
    expect(parse(text)).toBeUndefined()
  })

  it("is made only with this process's configuration, whatever the loader and the socket add", () => {
    const own = { MODEKEEP_CONFIG: '/a', MODEKEEP_KERNEL: '5', MODEKEEP_SOCKET: '/s', PATH: '/bin' }
    expect(hasSameVariables({ MODEKEEP_CONFIG: '/a' }, own)).toBe(true)
    expect(hasSameVariables({ MODEKEEP_CONFIG: '/b' }, own)).toBe(false)
    expect(hasSameVariables({}, own)).toBe(false)
    expect(hasSameVariables({ MODEKEEP_CONFIG: '/a', MODEKEEP_OTHER: '' }, own)).toBe(false)
  })
})
