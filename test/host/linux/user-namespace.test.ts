import { expect, it } from 'vitest'
import { swapMap } from '../../../src/host/linux/user-namespace.ts'

const HIGHEST = 2 ** 32 - 2

type Extent = [inside: number, outside: number, count: number]

function extents(one: number, other: number): Extent[] {
  const lines = swapMap(one, other).split('\n')
  expect(lines.pop()).toBe('')
  return lines.map((line) => line.split(' ').map(Number) as Extent)
}

const PAIRS: [number, number][] = [
  [0, 2000],
  [2000, 0],
  [5, 6],
  [0, 1],
  [0, HIGHEST],
  [HIGHEST - 1, HIGHEST],
  [1_000_000, 3_000_000_000],
]

it.each(PAIRS)('groups %i and %i show as each other, and every other as itself', (one, other) => {
  const seen = (id: number) => {
    const found = extents(one, other).filter(([inside, , count]) => id >= inside && id < inside + count)
    return found.map(([inside, outside]) => outside + id - inside)
  }
  expect([seen(one), seen(other)]).toEqual([[other], [one]])
  const near = [one, other].flatMap((id) => [id - 1, id + 1])
  for (const id of [0, 1, 1999, 2001, HIGHEST, ...near]) {
    if (id >= 0 && id <= HIGHEST && id !== one && id !== other) expect(seen(id)).toEqual([id])
  }
})

it.each(PAIRS)(
  'the map of %i and %i has all ids once on both sides: an id without one could not be used',
  (one, other) => {
    for (const side of [0, 1] as const) {
      let next = 0
      for (const extent of extents(one, other).sort((a, b) => a[side] - b[side])) {
        expect(extent[side]).toBe(next)
        // The kernel takes no extent of no ids.
        expect(extent[2]).toBeGreaterThan(0)
        next += extent[2]
      }
      // (gid_t)-1 is no group.
      expect(next).toBe(HIGHEST + 1)
    }
  },
)

it.each([
  [7, 7],
  [-1, 5],
  [5, HIGHEST + 1],
])('%i and %i are no two groups', (one, other) => {
  expect(() => swapMap(one, other)).toThrow(`no two groups to swap: ${one} and ${other}`)
})
