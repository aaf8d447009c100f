import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../src/errors/refusal.ts'
import { hashEntryName } from '../../../src/ownership/walk/entry.ts'
import { FirstLinkFilter, HardLinkCounter, type HardLinkVisit } from '../../../src/ownership/walk/hard-links.ts'
import { holds } from '../../property/holds.ts'

const numberOf = (name: string) => hashEntryName({ inode: 1n, born: 1n }, Buffer.from(name))

/** Inode, its links, its ctime, the name it is seen under. */
type Sight = [inode: bigint, links: number, changed: number, name: string]

function sighting([inode, links, changed, name]: Sight, over: Partial<HardLinkVisit> = {}): HardLinkVisit {
  return {
    inode,
    born: 1n,
    links,
    changed,
    statTimeMs: changed + 1000,
    name: numberOf(name),
    path: Buffer.from(name),
    ...over,
  }
}

function walk(sights: Sight[]): { completed: string[]; outside: (string | undefined)[] } {
  const links = new HardLinkCounter()
  const completed = sights.filter((sight) => links.addName(sighting(sight)))
  const outside = [...links.listOutside()].map((path) => path && Buffer.from(path).toString())
  return { completed: completed.map(([, , , name]) => name), outside }
}

describe('names of an inode', () => {
  it.each<[string, Sight[], string[], string[]]>([
    ['none', [], [], []],
    ['the only name of an inode is complete', [[1n, 1, 7, 'a']], ['a'], []],
    [
      'both',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 7, 'b'],
      ],
      ['b'],
      [],
    ],
    ['one of two names is incomplete', [[1n, 2, 7, 'a']], [], ['a']],
    [
      'two of three names are reported under one path',
      [
        [1n, 3, 7, 'a'],
        [1n, 3, 7, 'b'],
      ],
      [],
      ['b'],
    ],
    [
      'all three names are complete',
      [
        [1n, 3, 7, 'a'],
        [1n, 3, 7, 'b'],
        [1n, 3, 7, 'c'],
      ],
      ['c'],
      [],
    ],
    [
      'names of two inodes are counted separately',
      [
        [1n, 2, 7, 'a'],
        [2n, 2, 7, 'x'],
        [1n, 2, 7, 'b'],
        [3n, 2, 7, 'alone'],
        [2n, 2, 7, 'y'],
      ],
      ['b', 'y'],
      ['alone'],
    ],
    [
      'a name that is seen again after a rename counts anew, as ctime has changed',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 8, 'renamed'],
      ],
      [],
      ['renamed'],
    ],
    [
      'a name that is renamed before each visit never completes',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 8, 'b'],
        [1n, 2, 9, 'c'],
        [1n, 2, 10, 'd'],
      ],
      [],
      ['d'],
    ],
    [
      'both names are complete after a new count',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 8, 'b'],
        [1n, 2, 8, 'c'],
      ],
      ['c'],
      [],
    ],
    [
      'an earlier ctime begins a new count as well',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 6, 'b'],
      ],
      [],
      ['b'],
    ],
    [
      'a link that is created meanwhile changes ctime and begins a new count',
      [
        [1n, 2, 7, 'a'],
        [1n, 3, 8, 'b'],
        [1n, 3, 8, 'c'],
      ],
      [],
      ['c'],
    ],
    [
      'a complete inode that is visited again begins a new count',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 7, 'b'],
        [1n, 2, 8, 'c'],
      ],
      ['b'],
      ['c'],
    ],
  ])('hard links of an inode are counted: %s', (_what, sights, completed, outside) => {
    expect(walk(sights)).toEqual({ completed, outside })
  })

  it('the hard links of inodes are counted by all 64 bits of the inode number', () => {
    expect(
      walk([
        [2n ** 63n, 2, 7, 'a'],
        [2n ** 63n + 1n, 2, 7, 'b'],
      ]),
    ).toEqual({ completed: [], outside: ['a', 'b'] })
  })
})

it('a hard link that is visited twice counts once', () => {
  const links = new HardLinkCounter()
  expect(links.addName(sighting([1n, 2, 7, 'a']))).toBe(false)
  expect(links.addName(sighting([1n, 2, 7, 'a']))).toBe(false)
  expect(links.addName(sighting([1n, 2, 7, 'b']))).toBe(true)
})

it('a hard link is not counted while the next rename might not show in ctime', () => {
  const links = new HardLinkCounter()
  expect(links.addName(sighting([1n, 2, 7, 'a'], { statTimeMs: 10 }))).toBe(false)
  expect(links.addName(sighting([1n, 2, 7, 'b']))).toBe(false)
  expect([...links.listOutside()]).toEqual([Buffer.from('b')])
})

it('the count of hard links equals the size of a set of names for each inode and ctime, for any sequence of visits', () => {
  const sights = fc.array(
    fc.tuple(
      fc.bigInt({ min: 1n, max: 40n }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 7, max: 8 }),
      fc.integer({ min: 0, max: 200 }).map(String),
    ),
    { maxLength: 600, size: 'max' },
  )
  holds(
    sights,
    (all) => {
      const links = new HardLinkCounter()
      const model = new Map<bigint, { changed: number; names: Set<string> }>()
      for (const sight of all) {
        const [inode, most, changed, name] = sight
        const known = model.get(inode)
        const seen = known?.changed === changed ? known : { changed, names: new Set<string>() }
        seen.names.add(name)
        const isWhole = seen.names.size >= most
        if (isWhole) model.delete(inode)
        else model.set(inode, seen)
        expect(links.addName(sighting(sight))).toBe(isWhole)
      }
      expect([...links.listOutside()].length).toBe(model.size)
    },
    200,
  )
})

describe('more names than the limit', () => {
  const LITTLE = 2000
  const refusalOf = (work: () => void) => {
    try {
      work()
    } catch (error) {
      expect(error).toBeInstanceOf(Refusal)
      return (error as Refusal).message
    }
    throw new Error('nothing was refused')
  }

  it('too many names of one inode end the walk, and the message has their number and a path', () => {
    const links = new HardLinkCounter(LITTLE)
    const message = refusalOf(() => {
      for (let at = 0; at < 1000; at++) links.addName(sighting([1n, 5_000_000, 7, `many/${at}`]))
    })
    expect(message).toBe(
      'the volume has more hard links than a walk can remember: 121 names were met whose inodes (1) have others, the last one is ' +
        '"many/120", of an inode with 5000000 names: remove hard links, or have the group given without a walk ("ownership": "idmap")',
    )
  })

  it('too many inodes with names outside the volume end the walk', () => {
    const links = new HardLinkCounter(LITTLE)
    const message = refusalOf(() => {
      for (let at = 0; at < 1000; at++) links.addName(sighting([BigInt(at), 2, 7, `many/${at}`]))
    })
    expect(message).toContain(
      '24 names were met whose inodes (24) have others, the last one is "many/23", of an inode with 2 ',
    )
  })

  it('hard links of completely visited inodes, and those visited before a change, do not count for the limit', () => {
    const links = new HardLinkCounter(LITTLE)
    for (let at = 0; at < 20_000; at++) {
      expect(links.addName(sighting([BigInt(at), 3, 7, `a${at}`]))).toBe(false)
      expect(links.addName(sighting([BigInt(at), 3, 7, `b${at}`]))).toBe(false)
      expect(links.addName(sighting([BigInt(at), 3, 7, `c${at}`]))).toBe(true)
      expect(links.addName(sighting([-1n, 1_000_000, at, `d${at}`]))).toBe(false)
    }
    expect([...links.listOutside()].map((path) => path && Buffer.from(path).toString())).toEqual(['d19999'])
  })

  it('remembered paths of hard links beyond the limit are dropped, and their number is still right', () => {
    const links = new HardLinkCounter()
    const MANY = 50_000
    for (let at = 0; at < MANY; at++) links.addName(sighting([BigInt(at), 2, 7, `many/${at}`]))
    const outside = [...links.listOutside()]
    expect(outside.length).toBe(MANY)
    expect(outside[0]).toBeDefined()
    expect(outside.at(-1)).toBeUndefined()
  })

  it('inodes with several names beyond the limit are forgotten, and may be visited again, but not indefinitely', () => {
    const names = new FirstLinkFilter(2)
    const add = (inode: bigint) => names.addName({ inode, born: 1n })
    expect([add(1n), add(1n), add(2n), add(2n)]).toEqual([true, false, true, false])
    expect([add(1n), add(3n), add(3n), add(1n)]).toEqual([false, true, false, true])
  })
})
