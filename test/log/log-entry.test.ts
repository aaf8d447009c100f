import { describe, expect, it } from 'vitest'
import { parseLogEntry } from '../../src/log/log-entry.ts'

describe('a line of the log', () => {
  it('is the facts it has', () => {
    expect(parseLogEntry('{"verb":"mount","inodes":{"visited":1}}')).toEqual({ verb: 'mount', inodes: { visited: 1 } })
  })

  it.each(['', 'text', '[1]', 'null', '1', '{"verb":"mou'])('is nothing where it is no object: %j', (line) => {
    expect(parseLogEntry(line)).toBeUndefined()
  })
})
