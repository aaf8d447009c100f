import { describe, expect, it } from 'vitest'
import { chart } from '../../bench/plot/chart.ts'
import { logScale } from '../../bench/plot/scale.ts'

describe('a logarithmic scale', () => {
  it('gives every decade the same room', () => {
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
  const svg = chart('times', lines)

  it('has a line for each peer with a dot for each size, and time grows upwards', () => {
    const points = [...svg.matchAll(/<polyline points="([^"]+)"/g)].map((match) => match[1]?.split(' ').map(pair))
    expect(points.map((line) => line?.length)).toEqual([2, 2])
    const [from, to] = points[0] ?? []
    expect(to?.[0]).toBeGreaterThan(from?.[0] ?? Number.NaN)
    expect(to?.[1]).toBeLessThan(from?.[1] ?? Number.NaN)
    expect(svg.match(/<circle/g)).toHaveLength(4)
  })

  it('names the slowest first and never one name over another', () => {
    const names = [...svg.matchAll(/y="([\d.]+)" text-anchor="start">(slow|quick)/g)]
    expect(names.map((match) => match[2])).toEqual(['slow', 'quick'])
    expect(Number(names[1]?.[1]) - Number(names[0]?.[1])).toBeGreaterThanOrEqual(16)
  })

  it('is one well-formed document that dark pages can show', () => {
    expect(svg).toContain('slow &amp; &lt;old&gt;')
    expect(svg).toContain('prefers-color-scheme:dark')
    const open = [...svg.matchAll(/<([a-z]+)(?:\s[^>]*[^/])?>/g)].map((match) => match[1])
    const closed = [...svg.matchAll(/<\/([a-z]+)>/g)].map((match) => match[1])
    expect(open.sort()).toEqual(closed.sort())
  })
})

const pair = (text: string) => text.split(',').map(Number)
