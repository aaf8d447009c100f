import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Cost } from '../../bench/command.ts'
import { addCost, type Case, medianOf, type Results, ratio } from '../../bench/results.ts'
import { TARGET_PEERS, TARGETS, targetRows } from '../../bench/targets.ts'
import { usual } from '../../bench/trees.ts'
import { ROOT } from '../docs/pages.ts'

const TREE = usual('ext4', 200_000)

/** A cost whose every number is this one. */
const cost = (value: number): Cost => ({ wall: value, user: value, system: value, memory: value })

function measured(times: readonly (readonly [Case, string, readonly number[]])[], files = TREE.files): Results {
  const results: Results = { machine: {}, files, most: files, trees: [], measurements: [], absent: [], node: [] }
  for (const [name, peer, rounds] of times) {
    for (const time of rounds) addCost(results.measurements, TREE, name, peer, cost(time))
  }
  return results
}

/** The row of the first target whose name has these words. */
function row(results: Results, words: string): string[] {
  const [, , , ...found] = targetRows(results).find(([name]) => name?.includes(words)) ?? []
  return found
}

it('the ratio of a target compares medians of the same tree', () => {
  const { measurements } = measured([
    ['first walk', 'kubelet', [100, 300, 200]],
    ['first walk', 'modekeep keep', [90, 100, 5000]],
  ])
  expect(medianOf(measurements, TREE, 'first walk', 'kubelet')).toBe(200)
  expect(medianOf(measurements, usual('ext4', 1000), 'first walk', 'kubelet')).toBeUndefined()
  expect(ratio(100, undefined)).toBeUndefined()
})

describe('a target', () => {
  const walks = (keep: number) =>
    measured([
      ['first walk', 'kubelet', [100]],
      ['first walk', 'modekeep keep', [keep]],
    ])

  it('is "goal met", "must met" or "missed"', () => {
    expect(row(walks(50), 'first walk `keep`')).toEqual(['0.50', 'goal met'])
    expect(row(walks(80), 'first walk `keep`')).toEqual(['0.80', 'must met'])
    expect(row(walks(81), 'first walk `keep`')).toEqual(['0.81', 'missed'])
  })

  it('is "not measured" if one side is missing', () => {
    expect(row(walks(50), 'grant')).toEqual(['not measured', ''])
    expect(row(measured([['first walk', 'modekeep keep', [1]]]), 'first walk `keep`')).toEqual(['not measured', ''])
  })

  it('of time per inode is in microseconds', () => {
    expect(row(walks(600), 'user time')).toEqual(['3.00 µs', 'must met'])
  })

  it('for memory states the number of files if the measured tree has less than a million', () => {
    const results = walks(140)
    addCost(results.measurements, usual('ext4', 10_000), 'first walk', 'modekeep keep', cost(100))
    expect(row(results, 'memory of a first walk')).toEqual(['1.40', 'must met; 200,000 files'])
  })

  it('of system calls names the calls that differ', () => {
    const results = walks(50)
    results.systemCalls = { few: { statx: 2 }, manyFiles: { statx: 2 }, manyMounts: { statx: 2, read: 1 } }
    expect(row(results, 'at 10 and')).toEqual(['equal', 'goal met; 2 calls, 200,000 files'])
    expect(row(results, '5,000 other')).toEqual(['not equal (read: 0, 1)', 'missed; 2 calls'])
  })

  it('needs no peer except those of --headline', () => {
    const needed: Results = measured([])
    for (const peer of TARGET_PEERS) {
      for (const files of [10_000, 200_000]) {
        for (const name of ['survey', 'first walk', 'nothing to do', 'restore'] as const) {
          addCost(needed.measurements, usual('ext4', files), name, peer, cost(1))
        }
      }
    }
    const missing = targetRows(needed).filter((cells) => cells[3] === 'not measured')
    expect(missing.map(([name]) => name)).toEqual(
      TARGETS.slice(7, 10)
        .concat(TARGETS.slice(-2))
        .map(({ name }) => name),
    )
  })
})

it('docs/performance.md has every target with its goal', () => {
  const page = fs.readFileSync(`${ROOT}/docs/performance.md`, 'utf8')
  for (const [name, goal, must] of targetRows(measured([]))) expect(page).toContain(`| ${name} | ${goal} | ${must} |`)
})
