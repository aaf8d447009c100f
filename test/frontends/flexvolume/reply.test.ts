import { describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../../src/config/defaults.ts'
import { parseFlexVolumeRequest } from '../../../src/config/request.ts'
import { createFault } from '../../../src/errors/fault.ts'
import { Refusal } from '../../../src/errors/refusal.ts'
import { createFailureReply, formatReplyLine } from '../../../src/frontends/flexvolume/protocol.ts'
import { SystemError } from '../../../src/kernel/host.ts'
import { volumeKindLookup } from '../../../src/volume/index.ts'

function errorOf(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('the reply to a failure', () => {
  it('is the message of a refusal', () => {
    expect(
      createFailureReply(new Refusal([createFault('internal', 'a is wrong'), createFault('internal', 'b is wrong')])),
    ).toEqual({
      status: 'Failure',
      message: 'a is wrong; b is wrong [internal]',
    })
  })

  it.each([
    [
      new SystemError('openat', 'EMFILE', '"a"'),
      'modekeep failed: openat "a": EMFILE; see its log on the node [internal]',
    ],
    [
      new SystemError('open_tree', 'EPERM', '"a"'),
      'modekeep failed: open_tree "a": EPERM; if SELinux or AppArmor denied it, the audit log of the node says so; see its log on the node [internal]',
    ],
    [new TypeError('x is undefined'), 'modekeep failed: x is undefined; see its log on the node [internal]'],
    ['a string', 'modekeep failed: a string; see its log on the node [internal]'],
    [undefined, 'modekeep failed: undefined; see its log on the node [internal]'],
  ])('of any other kind refers to the log: %s', (error, message) => {
    expect(createFailureReply(error)).toEqual({ status: 'Failure', message })
  })

  const HINT = "… (the node's modekeep log has more of it)"

  it.each([
    ['a refusal', (text: string) => new Refusal(createFault('group-conflict', text)), '', ' [group-conflict]'],
    ['an error', (text: string) => new Error(text), 'modekeep failed: ', '; see its log on the node [internal]'],
  ])('has 850 bytes of %s and names the log for the rest', (_what, make, before, after) => {
    expect(createFailureReply(make('x'.repeat(850)))).toEqual({
      status: 'Failure',
      message: `${before}${'x'.repeat(850)}${after}`,
    })
    for (const length of [851, 1_000_000]) {
      expect(createFailureReply(make('x'.repeat(length)))).toEqual({
        status: 'Failure',
        message: `${before}${'x'.repeat(850)}${HINT}${after}`,
      })
    }
    // 850 bytes end within the 284th of these.
    expect(createFailureReply(make('日'.repeat(400)))).toMatchObject({
      message: `${before}${'日'.repeat(283)}${HINT}${after}`,
    })
  })

  const thirty = (make: (n: number) => string) => Array.from({ length: 30 }, (_, n) => make(n))
  const tmpfs = { 'kubernetes.io/fsType': 'tmpfs' }
  it.each([
    ['unknown mount options', { ...tmpfs, mountOptions: thirty((n) => `bogus${n}`).join() }, 'has ["bogus0","bogus1",'],
    [
      'flags with values',
      { ...tmpfs, mountOptions: thirty((n) => `suid=${n}`).join() },
      'has "suid=0": write suid without a value',
    ],
    [
      'bad values',
      { ...tmpfs, mountOptions: thirty((n) => `size=x${n}`).join() },
      'has "size=x0": write it like size=64m',
    ],
    ['long bad values', { ...tmpfs, mountOptions: thirty((n) => `size=${n}${'x'.repeat(120)}`).join() }, HINT],
    ['unknown keys', Object.fromEntries(thirty((n) => `key${n}`).map((key) => [key, 'x'])), 'unknown ["key0","key1",'],
    ['keys given twice', `{${thirty((n) => `"k${n}":"","k${n}":""`).join()}}`, 'option "k0" is given twice: keep one'],
  ])('to thirty %s fits an event', (_what, options, part) => {
    const text = typeof options === 'string' ? options : JSON.stringify(options)
    const error = errorOf(() =>
      parseFlexVolumeRequest('/pods/p/volumes/modekeep~fs/v', text, DEFAULT_CONFIG, volumeKindLookup),
    )
    expect(error).toBeInstanceOf(Refusal)
    const line = formatReplyLine(createFailureReply(error))
    expect(JSON.parse(line)).toEqual({ status: 'Failure', message: expect.stringContaining(part) })
    expect(Buffer.byteLength(line)).toBeLessThan(1024)
  })

  it('contains the error code of a name that is too long', () => {
    const error = new SystemError('openat', 'ENAMETOOLONG', JSON.stringify('x'.repeat(300)))
    const shown = `"${'x'.repeat(199)}…`
    expect(createFailureReply(error)).toEqual({
      status: 'Failure',
      message: `modekeep failed: openat ${shown}: ENAMETOOLONG; see its log on the node [internal]`,
    })
  })

  it('fits an event, even if the path is too long for the kernel', () => {
    const path = '/name'.repeat(1000)
    const line = formatReplyLine(createFailureReply(new SystemError('openat', 'ENAMETOOLONG', JSON.stringify(path))))
    expect(JSON.parse(line).message).toMatch(
      /^modekeep failed: openat "\/name\/name.*: ENAMETOOLONG; see its log on the node \[internal\]$/,
    )
    expect(Buffer.byteLength(line)).toBeLessThan(1024)
  })

  it('contains no stack trace', () => {
    expect(JSON.stringify(createFailureReply(new Error('x')))).not.toContain('.ts:')
  })
})

describe('the reply line', () => {
  it.each([
    [{ status: 'Success' as const }, '{"status":"Success"}\n'],
    [
      { status: 'Not supported' as const, message: 'no such verb' },
      '{"status":"Not supported","message":"no such verb"}\n',
    ],
    [
      { status: 'Failure' as const, message: 'two\nlines and a "quote"\u0007' },
      '{"status":"Failure","message":"two\\nlines and a \\"quote\\"\\u0007"}\n',
    ],
    // Half of a surrogate pair is no UTF-8: it is escaped.
    [{ status: 'Failure' as const, message: '\ud83d' }, '{"status":"Failure","message":"\\ud83d"}\n'],
  ])('is one JSON document and one newline: %#', (reply, line) => {
    expect(formatReplyLine(reply)).toBe(line)
    expect(JSON.parse(line)).toEqual(reply)
  })
})
