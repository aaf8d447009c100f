import { expect, it } from 'vitest'
import type { NodeMeasurement } from '../../bench/node/calls.ts'
import { nodeTable } from '../../bench/node/table.ts'

const measured = (call: NodeMeasurement['call'], few: number[], many: number[]): NodeMeasurement[] => [
  { call, mounts: 1, milliseconds: few },
  { call, mounts: 5000, milliseconds: many },
]

it('the benchmark table compares medians of a full and a small node, and only promised values are "met" or "not met"', () => {
  const lines = nodeTable([
    ...measured('repeated mount', [40, 50, 60], [1, 65, 9000]),
    ...measured('unmount', [40], [60]),
    ...measured('first mount', [40], [400]),
  ])
  expect(lines.map((line) => line.trim().replace(/ {2,}/g, '  '))).toEqual([
    'mounts  1  5,000  ratio',
    'repeated mount  50.0 ms  65.0 ms  1.30  at most 1.30  met',
    'unmount  40.0 ms  60.0 ms  1.50  at most 1.30  not met',
    'first mount  40.0 ms  400 ms  10.00',
    'first mount with a walk  –  –  –',
  ])
})
