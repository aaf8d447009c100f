import { describe, expect, it } from 'vitest'
import { SystemError } from '../../src/host/host.ts'
import { Refusal } from '../../src/protocol/refusal.ts'
import { failureReply, replyLine } from '../../src/protocol/reply.ts'

describe('the reply to a failure', () => {
  it("is a refusal's own words", () => {
    expect(failureReply(new Refusal(['a is wrong', 'b is wrong']))).toEqual({
      status: 'Failure',
      message: 'a is wrong; b is wrong',
    })
  })

  it.each([
    [new SystemError('openat', 'EMFILE', '"a"'), 'modekeep failed: openat "a": EMFILE; see its log on the node'],
    [new TypeError('x is undefined'), 'modekeep failed: x is undefined; see its log on the node'],
    ['a string', 'modekeep failed: a string; see its log on the node'],
    [undefined, 'modekeep failed: undefined; see its log on the node'],
  ])('of any other kind points to the log: %s', (error, message) => {
    expect(failureReply(error)).toEqual({ status: 'Failure', message })
  })

  it('has no stack', () => {
    expect(JSON.stringify(failureReply(new Error('x')))).not.toContain('.ts:')
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
    expect(replyLine(reply)).toBe(line)
    expect(JSON.parse(line)).toEqual(reply)
  })
})
