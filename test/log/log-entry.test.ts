import { describe, expect, it } from 'vitest'
import { parseLogEntry } from '../../src/log/log-entry.ts'

describe('a line of the log', () => {
  it('is parsed to its facts', () => {
    expect(parseLogEntry('{"verb":"mount","inodes":{"visited":1}}')).toEqual({ verb: 'mount', inodes: { visited: 1 } })
  })

  it.each(['', 'text', '[1]', 'null', '1', '{"verb":"mou'])('is not parsed if it is not a JSON object: %j', (line) => {
    expect(parseLogEntry(line)).toBeUndefined()
  })
})
