import { describe, expect, it } from 'vitest'
import { formatLogEntry } from '../../../src/cli/commands/logs.ts'
import { splitLine } from '../../helpers/line.ts'

const DIRECTORY = '/var/lib/kubelet/pods/11-22/volumes/modekeep~fs/v'
const mount = JSON.stringify({
  time: '2026-01-02T03:04:05.678Z',
  level: 'info',
  pid: 1,
  verb: 'mount',
  directory: DIRECTORY,
  pod: 'shop/cart',
  source: '/srv/data',
  decision: 'fresh',
  reason: 'nothing is mounted',
  given: 'walk',
  why: 'asked for',
  inodes: { visited: 7, changed: 6, alreadyRight: 1, left: { symlink: { count: 1, examples: [] } } },
  outcome: 'Success',
  durationMs: 12.3,
})
const unmount = JSON.stringify({ level: 'error', verb: 'unmount', directory: DIRECTORY, error: 'no', stack: 'at x' })

describe('a line of the log', () => {
  it('has time, verb, pod, outcome and reason', () => {
    expect(splitLine(formatLogEntry(mount))).toEqual({
      text:
        '2026-01-02T03:04:05.678Z info  mount    Success    12.3 ms  shop/cart  fresh: nothing is mounted; ' +
        'ownership walk: asked for; 7 looked at, 6 changed, left alone: symlink',
    })
  })

  it('has the number of removed records', () => {
    expect(splitLine(formatLogEntry('{"verb":"gc","removed":["volume 1.2-3-4"]}')).text).toMatch(/gc .* {2}1 removed$/)
  })

  it('shows a failure in red and without its stack', () => {
    const { text, style } = splitLine(formatLogEntry(unmount))
    expect(style).toBe('fault')
    expect(text).toMatch(/unmount .*\/volumes\/modekeep~fs\/v {2}no$/)
  })

  it.each([['no JSON'], ['[1]'], ['null'], ['']])('that is no JSON object is shown unchanged: %j', (raw) => {
    expect(formatLogEntry(raw)).toBe(raw)
  })
})
