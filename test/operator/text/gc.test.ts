import { expect, it } from 'vitest'
import type { GcDocument } from '../../../src/operator/actions/gc.ts'
import { gcLines } from '../../../src/operator/text/gc.ts'

const kept = (name: string) => ({ kind: 'volume', name, action: 'kept', reason: 'a pod uses it' }) as const
const items: GcDocument['items'] = [
  { kind: 'stage', name: 's', action: 'removed', reason: 'its call was interrupted' },
  { kind: 'lock', name: 'l', action: 'failed', reason: 'EIO' },
  ...['a', 'b', 'c', 'd', 'e'].map(kept),
  { kind: 'lock', name: 'm', action: 'kept', reason: 'a call is at work' },
]

it('gc for people has what went line by line, and what stays by reason', () => {
  expect(gcLines({ verb: 'gc', isDry: false, items })).toEqual([
    { text: '1 removed, 6 kept', style: 'strong' },
    { text: 'removed  stage  s  its call was interrupted' },
    { text: 'failed   lock   l  EIO', style: 'fault' },
    { text: 'kept  5 volumes: a pod uses it' },
    { text: '      a' },
    { text: '      b' },
    { text: '      c' },
    { text: '      and 2 more' },
    { text: 'kept  lock m: a call is at work' },
  ])
})

it('gc for people says of a dry run that nothing was changed', () => {
  expect(gcLines({ verb: 'gc', isDry: true, items })[0]?.text).toBe('1 would be removed, 6 kept. Nothing was changed.')
})
