import { describe, expect, it } from 'vitest'
import { escapeUnprintable } from '../../src/errors/escape.ts'
import { createFault } from '../../src/errors/fault.ts'
import { quoteValue, Refusal } from '../../src/errors/refusal.ts'
import { createFailureReply, formatReplyLine } from '../../src/frontends/flexvolume/protocol.ts'
import { formatLogLine } from '../../src/log/call-log.ts'

/** C0, DEL, C1, marks and overrides of direction, isolates, and separators of lines. */
const UNSAFE = ['\u001b', '\u007f', '\u009b', '\u0085', '\u061c', '\u200e', '\u202e', '\u2066', '\u2028', '\ufeff']
const isSafe = (text: string) => !UNSAFE.some((character) => text.includes(character))

describe.each(UNSAFE)('the terminal control or bidirectional character %j is escaped', (character) => {
  const written = `/srv/${character}31m`

  it.each<[string, () => string]>([
    ['in a message', () => escapeUnprintable(`source ${written} is missing`)],
    ['in a quoted value', () => quoteValue(written)],
    ['in a quoted long value', () => quoteValue(written.repeat(100))],
    ['in a quoted list', () => quoteValue([written])],
    ['in a refusal', () => new Refusal(createFault('internal', `source ${written} is missing`)).message],
    [
      'in the reply of a refusal',
      () => JSON.parse(formatReplyLine(createFailureReply(new Refusal(createFault('internal', written))))).message,
    ],
    [
      'in the reply of another error',
      () => JSON.parse(formatReplyLine(createFailureReply(new Error(written)))).message,
    ],
    ['in a line of the log', () => formatLogLine({ source: written })],
    ['in a truncated line of the log', () => formatLogLine({ source: written.repeat(1000) })],
  ])('%s', (_what, show) => {
    expect(isSafe(show())).toBe(true)
    expect(show()).toMatch(/\\+u/)
  })

  it('in JSON so that a parser reads the original character', () => {
    expect(JSON.parse(formatLogLine({ source: written }))).toEqual({ source: written })
  })
})

it('letters of other languages are shown as they are', () => {
  expect(quoteValue('/srv/Größe/数据')).toBe('"/srv/Größe/数据"')
})
