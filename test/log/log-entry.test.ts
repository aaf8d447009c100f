import { describe, expect, it } from 'vitest'
import { logEntry } from '../../src/log/log-entry.ts'

describe('a line of the log', () => {
  it('is the facts it has', () => {
    expect(logEntry('{"verb":"mount","inodes":{"visited":1}}')).toEqual({ verb: 'mount', inodes: { visited: 1 } })
  })

  it.each(['', 'text', '[1]', 'null', '1', '{"verb":"mou'])('is nothing where it is no object: %j', (line) => {
    expect(logEntry(line)).toBeUndefined()
  })
})
