import { expect, it } from 'vitest'
import { findSkippedSandbox } from '../../../src/frontends/nri/registration-check.ts'

const SINCE = 1_000_000
const connection = { since: SINCE, sandboxes: new Set(['old']) }
const old = { id: 'old', createdAtMs: 0 }

it.each([
  [
    'a pod that the runtime created during the connection without sending it is skipped',
    [[old, { id: 'new', createdAtMs: SINCE + 2000 }]],
    'new',
  ],
  ['a pod from before the connection is none', [[old, { id: 'new', createdAtMs: SINCE - 1 }]], undefined],
  ['a pod whose call may still be on its way is none', [[old, { id: 'new', createdAtMs: SINCE + 6000 }]], undefined],
  ['a pod of another runtime is none', [[old], [{ id: 'new', createdAtMs: SINCE + 2000 }]], undefined],
] as const)('%s', (_title, runtimes, skipped) => {
  expect(findSkippedSandbox(runtimes, connection, SINCE + 5000)).toBe(skipped)
})

it('any runtime may be that of a plugin that received no pods', () => {
  const runtimes = [[{ id: 'first', createdAtMs: SINCE + 2000 }]]
  expect(findSkippedSandbox(runtimes, { since: SINCE, sandboxes: new Set() }, SINCE + 5000)).toBe('first')
})
