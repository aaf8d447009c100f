import * as fs from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AnyVolume } from '../../bench/any-volume/results.ts'
import { type FirstMounts, WAYS } from '../../bench/first-mount/results.ts'
import { drawAnyVolume } from '../../bench/plot/any-volume.ts'
import { chart } from '../../bench/plot/chart.ts'
import { drawFirstMounts } from '../../bench/plot/first-mount.ts'
import { drawOwnership } from '../../bench/plot/ownership.ts'
import { logScale } from '../../bench/plot/scale.ts'
import { addCost, type Results } from '../../bench/results.ts'
import { usual } from '../../bench/trees.ts'

describe('a logarithmic scale', () => {
  it('has the same width for every decade', () => {
    const scale = logScale([20, 90_000], 0, 400)
    expect(scale.ticks).toEqual([10, 100, 1000, 10_000, 100_000])
    expect(scale.ticks.map((tick) => Math.round(scale(tick)))).toEqual([0, 100, 200, 300, 400])
  })

  it('has two ends for a single value', () => {
    expect(logScale([1000], 0, 100).ticks).toEqual([1000, 10_000])
  })
})

describe('a chart', () => {
  const lines = [
    { name: 'slow & <old>', points: [[1000, 10] as const, [100_000, 1000] as const] },
    { name: 'quick', points: [[1000, 10] as const, [100_000, 900] as const] },
  ]
  const svg = chart({ title: 'times', x: 'files (number)', y: 'time (seconds)' }, lines)

  it('has a line for each peer with a marker for each size, and the time axis points upwards', () => {
    const points = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map((match) => match[1]?.split(' ').map(pair))
    expect(points.map((line) => line?.length)).toEqual([2, 2])
    const [from, to] = points[0] ?? []
    expect(to?.[0]).toBeGreaterThan(from?.[0] ?? Number.NaN)
    expect(to?.[1]).toBeLessThan(from?.[1] ?? Number.NaN)
    // Of each line one more in the legend.
    expect(svg.match(/class="marker"/g)).toHaveLength(4 + 2)
  })

  it('has axis titles with units', () => {
    expect(svg).toContain('>files (number)</text>')
    expect(svg).toMatch(/rotate\(-90[^>]*><text[^>]*>time \(seconds\)<\/text>/)
  })

  it('distinguishes lines by colour and marker, and refuses more lines than it can distinguish', () => {
    const five = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, points: [[10, 10] as const] }))
    const drawn = chart({ title: '', x: '', y: '' }, five)
    const marks = [...drawn.matchAll(/class="marker" d="M[\d.,]+([^"]+)" fill="([^"]+)"/g)]
    expect(new Set(marks.map((match) => match[2])).size).toBe(5)
    expect(new Set(marks.slice(0, 5).map((match) => match[1]?.replaceAll(/[\d.]+/g, ''))).size).toBeGreaterThan(1)
    expect(() => chart({ title: '', x: '', y: '' }, [...five, ...five])).toThrow('more than 5 lines')
  })

  it('labels the lines in their order without overlaps, and the first line is the widest', () => {
    const names = [...svg.matchAll(/y="([\d.]+)" text-anchor="start">(slow|quick)/g)]
    expect(names.map((match) => match[2])).toEqual(['slow', 'quick'])
    expect(Number(names[1]?.[1]) - Number(names[0]?.[1])).toBeGreaterThanOrEqual(32)
    const widths = [...svg.matchAll(/<line x1[^>]*stroke-width="(\d+)"/g)].map((match) => Number(match[1]))
    expect(widths[0]).toBeGreaterThan(widths[1] ?? Number.NaN)
  })

  it('is one well-formed SVG document that is readable on a dark page', () => {
    expect(svg).toContain('slow &amp; &lt;old&gt;')
    expect(svg).toContain('prefers-color-scheme:dark')
    const open = [...svg.matchAll(/<([a-z]+)(?:\s[^>]*[^/])?>/g)].map((match) => match[1])
    const closed = [...svg.matchAll(/<\/([a-z]+)>/g)].map((match) => match[1])
    expect(open.sort()).toEqual(closed.sort())
  })
})

it('the chart of walks on ext4 shows idmap first, and omits missing measurements', () => {
  const results: Results = { machine: {}, files: 1000, most: 1000, trees: [], measurements: [], absent: [], node: [] }
  expect(drawOwnership(results)).toBeUndefined()
  for (const peer of ['kubelet', 'C, one thread', 'modekeep keep', 'modekeep idmap']) {
    for (const tree of [usual('ext4', 1000), usual('xfs', 10)]) {
      if (!results.trees.includes(tree)) results.trees.push(tree)
      addCost(results.measurements, tree, 'first walk', peer, { wall: 1500, user: 0, system: 0, memory: 0 })
    }
  }
  const names = [...(drawOwnership(results) ?? '').matchAll(/>((?:modekeep|kubelet|C,)[^<]*)<\/text>/g)]
  expect(names.map((match) => match[1])).toEqual(['modekeep idmap', 'modekeep keep', 'kubelet'])
  expect(drawOwnership(results)).toContain('1.50 s at 1,000 files')
})

it("the committed chart of other drivers' volumes shows the committed measurements", () => {
  const docs = resolve(import.meta.dirname, '../../docs')
  const measured: AnyVolume = JSON.parse(fs.readFileSync(`${docs}/results/bench/any-volume.json`, 'utf8'))
  expect(fs.readFileSync(`${docs}/any-volume.svg`, 'utf8')).toBe(drawAnyVolume(measured))
  const names = [...drawAnyVolume(measured).matchAll(/>(modekeep nri|kubelet|no group)[^<]*<\/text>/g)]
  expect(names.map((match) => match[1])).toEqual(['modekeep nri', 'kubelet', 'no group'])
})

it('the committed chart of first mounts shows the committed measurements', () => {
  const docs = resolve(import.meta.dirname, '../../docs')
  const measured: FirstMounts = JSON.parse(fs.readFileSync(`${docs}/results/bench/first-mount.json`, 'utf8'))
  expect(fs.readFileSync(`${docs}/first-mount.svg`, 'utf8')).toBe(drawFirstMounts(measured))
  for (const way of WAYS) expect(measured.times.filter((one) => one.way === way).map(({ files }) => files)).toContain(1)
})

const pair = (text: string) => text.split(',').map(Number)
