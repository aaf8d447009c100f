import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  composeIdMaps,
  createGroupSwapMap,
  describeIdMapFault,
  formatIdRanges,
  HIGHEST_UID_OR_GID,
  IDENTITY_ID_RANGES,
  type IdMap,
  type IdRange,
  mapToShownId,
} from '../../src/kernel/id-map.ts'
import { mapToStoredId } from '../memory-host/inodes.ts'

const PAIRS: [number, number][] = [
  [0, 2000],
  [2000, 0],
  [5, 6],
  [0, 1],
  [0, HIGHEST_UID_OR_GID],
  [HIGHEST_UID_OR_GID - 1, HIGHEST_UID_OR_GID],
  [1_000_000, 3_000_000_000],
]

describe('the mapping that swaps two groups', () => {
  it.each(PAIRS)('of %i and %i shows each as the other, and every other as itself', (one, other) => {
    const { uids, gids } = createGroupSwapMap(one, other)
    expect([mapToShownId(gids, one), mapToShownId(gids, other)]).toEqual([other, one])
    const near = [one, other].flatMap((id) => [id - 1, id + 1])
    for (const id of [0, 1, 1999, 2001, HIGHEST_UID_OR_GID, ...near]) {
      if (id >= 0 && id <= HIGHEST_UID_OR_GID && id !== one && id !== other) expect(mapToShownId(gids, id)).toBe(id)
    }
    expect(uids).toEqual(IDENTITY_ID_RANGES)
  })

  it.each(PAIRS)('of %i and %i leaves no id unmapped on either side, as such an id would be unusable', (one, other) => {
    for (const side of ['disk', 'shown'] as const) {
      let next = 0
      for (const range of [...createGroupSwapMap(one, other).gids].sort((a, b) => a[side] - b[side])) {
        expect(range[side]).toBe(next)
        // The kernel rejects empty ranges.
        expect(range.count).toBeGreaterThan(0)
        next += range.count
      }
      // (gid_t)-1 names no group.
      expect(next).toBe(HIGHEST_UID_OR_GID + 1)
    }
  })

  it.each([
    [7, 7],
    [-1, 5],
    [5, HIGHEST_UID_OR_GID + 1],
  ])('of %i and %i is refused, as they are not two groups', (one, other) => {
    expect(() => createGroupSwapMap(one, other)).toThrow(`no two groups to swap: ${one} and ${other}`)
  })

  it('is formatted as the kernel parses it', () => {
    expect(formatIdRanges(createGroupSwapMap(5, 2000).gids)).toBe(
      '0 0 5\n5 2000 1\n6 6 1994\n2000 5 1\n2001 2001 4294965294\n',
    )
  })
})

/** Ranges without overlap on either side, in any order, as the kernel accepts them. */
const ranges: fc.Arbitrary<IdRange[]> = fc
  .tuple(
    fc.array(fc.record({ gap: fc.nat(50), count: fc.integer({ min: 1, max: 60 }) }), { minLength: 1, maxLength: 12 }),
    fc.infiniteStream(fc.nat(50)),
    fc.infiniteStream(fc.nat()),
  )
  .map(([sizes, gaps, order]) => {
    let disk = 0
    const found = sizes.map(({ gap, count }) => {
      const range = { disk: disk + gap, shown: 0, count, at: order.next().value }
      disk += gap + count
      return range
    })
    let shown = 0
    for (const range of [...found].sort((a, b) => a.at - b.at)) {
      range.shown = shown + gaps.next().value
      shown = range.shown + range.count
    }
    return found.map(({ disk, shown, count }) => ({ disk, shown, count }))
  })

const of = (gids: readonly IdRange[]): IdMap => ({ uids: IDENTITY_ID_RANGES, gids })

describe('two combined mappings', () => {
  it('show each id as the second shows the result of the first, and no other', () => {
    fc.assert(
      fc.property(ranges, ranges, (first, second) => {
        const { gids, uids } = composeIdMaps(of(first), of(second))
        expect(uids).toEqual(IDENTITY_ID_RANGES)
        for (let id = 0; id < 1400; id++) {
          const between = mapToShownId(first, id)
          expect(mapToShownId(gids, id)).toBe(between === undefined ? undefined : mapToShownId(second, between))
        }
      }),
    )
  })

  it('overlap on neither side, and have the fewest possible ranges', () => {
    fc.assert(
      fc.property(ranges, ranges, (first, second) => {
        const { gids } = composeIdMaps(of(first), of(second))
        for (const side of ['disk', 'shown'] as const) {
          const sorted = [...gids].sort((a, b) => a[side] - b[side])
          for (const [at, range] of sorted.entries()) {
            const before = sorted[at - 1]
            expect(range.count).toBeGreaterThan(0)
            if (before !== undefined) expect(range[side]).toBeGreaterThanOrEqual(before[side] + before.count)
          }
        }
        for (const [at, { disk, shown }] of gids.entries()) {
          const before = gids[at - 1]
          const goesOn = before && before.disk + before.count === disk && before.shown + before.count === shown
          expect(goesOn ?? false).toBe(false)
        }
      }),
    )
  })

  it('store each shown id as the id that the mappings show it for', () => {
    fc.assert(
      fc.property(ranges, fc.nat(1400), (some, id) => {
        const shown = mapToShownId(some, id)
        if (shown !== undefined) expect(mapToStoredId(some, shown)).toBe(id)
      }),
    )
  })

  it('of a group and of a pod with its own ids show ids outside of the pod as the overflow id', () => {
    const pod: IdMap = {
      uids: [{ disk: 0, shown: 700_000, count: 65_536 }],
      gids: [{ disk: 0, shown: 700_000, count: 65_536 }],
    }
    const { uids, gids } = composeIdMaps(createGroupSwapMap(500, 3000), pod)
    expect(uids).toEqual(pod.uids)
    expect([500, 3000, 7, 65_535, 65_536].map((id) => mapToShownId(gids, id))).toEqual([
      703_000,
      700_500,
      700_007,
      765_535,
      undefined,
    ])
    // The group on disk has no id in the pod.
    expect(mapToShownId(composeIdMaps(createGroupSwapMap(900_000, 3000), pod).gids, 900_000)).toBe(703_000)
    expect(mapToShownId(composeIdMaps(createGroupSwapMap(900_000, 3000), pod).gids, 3000)).toBeUndefined()
  })
})

describe('a mapping that the kernel would reject', () => {
  const many = (count: number, start = 0) =>
    Array.from({ length: count }, (_, at) => ({ disk: start + at * 2, shown: start + at * 2, count: 1 }))

  it.each([
    [of(many(340)), undefined],
    [of(many(341)), 'its groups would need 341 ranges of ids, Linux takes 340'],
    [{ uids: many(341), gids: IDENTITY_ID_RANGES }, 'its users would need 341 ranges of ids, Linux takes 340'],
    [of(many(300, 1_000_000)), 'the ranges of its groups would need 5400 bytes, Linux takes 4095'],
    [of([]), 'its groups would have no id at all'],
    [of(IDENTITY_ID_RANGES), undefined],
  ])('is described by its fault', (map, fault) => {
    expect(describeIdMapFault(map)).toBe(fault)
  })
})

describe('the ranges of a mapping', () => {
  const overlapping = [
    { disk: 0, shown: 65536, count: 65536 },
    { disk: 65535, shown: 200000, count: 65536 },
  ]

  it('have a fault that names both if they overlap on either side', () => {
    const swapped = overlapping.map(({ disk, shown, count }) => ({ disk: shown, shown: disk, count }))
    expect(describeIdMapFault({ uids: IDENTITY_ID_RANGES, gids: overlapping })).toBe(
      'the ranges 0 to 65535 and 65535 to 131070 of its groups overlap',
    )
    expect(describeIdMapFault({ uids: swapped, gids: IDENTITY_ID_RANGES })).toBe(
      'the ranges 0 to 65535 and 65535 to 131070 of its users overlap',
    )
  })

  it('have no fault if they only touch', () => {
    const touching = [
      { disk: 65536, shown: 0, count: 65536 },
      { disk: 0, shown: 65536, count: 65536 },
    ]
    expect(describeIdMapFault({ uids: touching, gids: touching })).toBeUndefined()
  })
})
