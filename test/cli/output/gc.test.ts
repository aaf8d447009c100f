import { expect, it } from 'vitest'
import { type GcDocument, gcVerb } from '../../../src/cli/commands/gc.ts'
import { splitLine } from '../../helpers/line.ts'

const kept = (name: string) => ({ kind: 'volume', name, action: 'kept', reason: 'a pod uses it' }) as const
const items: GcDocument['items'] = [
  { kind: 'stage', name: 's', action: 'removed', reason: 'its call was interrupted' },
  { kind: 'lock', name: 'l', action: 'failed', reason: 'EIO' },
  ...['a', 'b', 'c', 'd', 'e'].map(kept),
  { kind: 'lock', name: 'm', action: 'kept', reason: 'a call is at work' },
]

it('gc prints removed items line by line, and kept items by reason', () => {
  expect(gcVerb.lines({ verb: 'gc', isDry: false, items })).toEqual([
    { text: '1 removed, 6 kept', style: 'strong' },
    'removed  stage  s  its call was interrupted',
    { text: 'failed   lock   l  EIO', style: 'fault' },
    'kept  5 volumes: a pod uses it',
    '      a',
    '      b',
    '      c',
    '      and 2 more',
    'kept  lock m: a call is at work',
  ])
})

it('gc --dry-run prints that nothing was changed', () => {
  expect(splitLine(gcVerb.lines({ verb: 'gc', isDry: true, items })[0]).text).toBe(
    '1 would be removed, 6 kept. Nothing was changed.',
  )
})
