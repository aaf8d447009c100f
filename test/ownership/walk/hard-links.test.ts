import { describe, expect, it } from 'vitest'
import { keyOf } from '../../../src/ownership/inode/record.ts'
import { HardLinks, type Sighting } from '../../../src/ownership/walk/hard-links.ts'
import { nameNumber } from '../../../src/ownership/walk/name-set.ts'

const numberOf = (name: string) => nameNumber({ inode: 1n, born: 1n }, Buffer.from(name))

/** Inode, its links, its ctime, the name it is seen under. */
type Sight = [inode: bigint, links: number, changed: number, name: string]

function sighting([inode, links, changed, name]: Sight, over: Partial<Sighting> = {}): Sighting {
  return {
    key: keyOf({ inode, born: 1n }),
    links,
    changed,
    at: changed + 1000,
    name: numberOf(name),
    path: Buffer.from(name),
    ...over,
  }
}

function walk(sights: Sight[]): { completed: string[]; outside: string[] } {
  const links = new HardLinks()
  const completed = sights.filter((sight) => links.addName(sighting(sight)))
  const outside = links.outside().map((path) => Buffer.from(path).toString())
  return { completed: completed.map(([, , , name]) => name), outside }
}

describe('the names of an inode', () => {
  it.each<[string, Sight[], string[], string[]]>([
    ['none', [], [], []],
    ['the only one', [[1n, 1, 7, 'a']], ['a'], []],
    [
      'both',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 7, 'b'],
      ],
      ['b'],
      [],
    ],
    ['one of two', [[1n, 2, 7, 'a']], [], ['a']],
    [
      'two of three, told under one',
      [
        [1n, 3, 7, 'a'],
        [1n, 3, 7, 'b'],
      ],
      [],
      ['b'],
    ],
    [
      'all three',
      [
        [1n, 3, 7, 'a'],
        [1n, 3, 7, 'b'],
        [1n, 3, 7, 'c'],
      ],
      ['c'],
      [],
    ],
    [
      'those of two inodes, mixed',
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
      'one, seen again under its new name: a rename moves ctime',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 8, 'renamed'],
      ],
      [],
      ['renamed'],
    ],
    [
      'one, renamed at every sight',
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
      'both, after a count that started anew',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 8, 'b'],
        [1n, 2, 8, 'c'],
      ],
      ['c'],
      [],
    ],
    [
      'a ctime set back counts anew as well',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 6, 'b'],
      ],
      [],
      ['b'],
    ],
    [
      'a link made meanwhile, which moves ctime',
      [
        [1n, 2, 7, 'a'],
        [1n, 3, 8, 'b'],
        [1n, 3, 8, 'c'],
      ],
      [],
      ['c'],
    ],
    [
      'complete, and met again: a new count',
      [
        [1n, 2, 7, 'a'],
        [1n, 2, 7, 'b'],
        [1n, 2, 8, 'c'],
      ],
      ['b'],
      ['c'],
    ],
  ])('%s', (_what, sights, completed, outside) => {
    expect(walk(sights)).toEqual({ completed, outside })
  })

  it('are told apart in all the 64 bits of an inode number', () => {
    expect(
      walk([
        [2n ** 63n, 2, 7, 'a'],
        [2n ** 63n + 1n, 2, 7, 'b'],
      ]),
    ).toEqual({ completed: [], outside: ['a', 'b'] })
  })
})

it('a name that is met twice is one name', () => {
  const links = new HardLinks()
  expect(links.addName(sighting([1n, 2, 7, 'a']))).toBe(false)
  expect(links.addName(sighting([1n, 2, 7, 'a']))).toBe(false)
  expect(links.addName(sighting([1n, 2, 7, 'b']))).toBe(true)
})

it('a name is not counted when the next rename might not show in ctime', () => {
  const links = new HardLinks()
  expect(links.addName(sighting([1n, 2, 7, 'a'], { at: 10 }))).toBe(false)
  expect(links.addName(sighting([1n, 2, 7, 'b']))).toBe(false)
  expect(links.outside()).toEqual([Buffer.from('b')])
})
