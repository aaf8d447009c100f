import { describe, expect, it } from 'vitest'
import { aligned, duration } from '../../bench/columns.ts'
import { addTime, type Measurement, ratioOf, timeOf } from '../../bench/results.ts'
import { inOrder, median } from '../../bench/statistics.ts'
import { targetLines } from '../../bench/targets.ts'

describe('a median', () => {
  it('is the middle value, whatever the order, and one outlier does not move it', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([900, 1, 5])).toBe(5)
    expect(median([10, 9])).toBe(9.5)
    expect(median([100, 20, 3, 1000])).toBe(60)
  })

  it('of nothing is an error, not a number', () => {
    expect(() => median([])).toThrow('no values')
  })
})

it('every second round runs backwards', () => {
  expect([0, 1, 2].map((round) => inOrder(['a', 'b', 'c'], round).join(''))).toEqual(['abc', 'cba', 'abc'])
})

const of = { fileSystem: 'ext4', files: 200_000, case: 'first walk' } as const

function measured(times: Record<string, number[]>): Measurement[] {
  const all: Measurement[] = []
  for (const [peer, rounds] of Object.entries(times)) for (const time of rounds) addTime(all, { ...of, peer }, time)
  return all
}

describe('a ratio', () => {
  it('is of medians, on the same tree', () => {
    const all = measured({ kubelet: [100, 300, 200], 'modekeep keep': [90, 100, 5000] })
    expect(timeOf(all, { ...of, peer: 'kubelet' })).toBe(200)
    expect(ratioOf(all, { ...of, peer: 'modekeep keep' })).toBe(0.5)
    expect(ratioOf(all, { ...of, files: 1000, peer: 'modekeep keep' })).toBeUndefined()
  })

  it('is not invented where kubelet is absent', () => {
    expect(ratioOf(measured({ 'modekeep keep': [1] }), { ...of, peer: 'modekeep keep' })).toBeUndefined()
  })
})

it('a target is met, not met or not measured', () => {
  const lines = targetLines(measured({ kubelet: [100], 'modekeep keep': [60], 'modekeep grant': [81] }))
  expect(lines.map((line) => line.replace(/ {2,}/g, '  '))).toEqual([
    'modekeep keep, first walk  at most 0.60 of kubelet  0.60  met',
    'modekeep grant, first walk  at most 0.80 of kubelet  0.81  not met',
    'modekeep keep, nothing to do  at most 0.25 of kubelet  not measured',
    'modekeep grant, nothing to do  at most 0.25 of kubelet  not measured',
    'modekeep, repeated mount  at most 0.75 of bash+jq driver  not measured',
  ])
})

it('durations have a unit and about three digits', () => {
  expect([0.5, 42.14, 999, 1000, 12_340].map(duration)).toEqual(['0.50 ms', '42.1 ms', '999 ms', '1.00 s', '12.3 s'])
})

it('columns are aligned', () => {
  const [head, ...rows] = aligned([
    ['files', '10', '1,000'],
    ['a name', '1.00 s', '2'],
  ])
  expect(head).toBe('files       10  1,000')
  expect(rows).toEqual(['a name  1.00 s      2'])
})
