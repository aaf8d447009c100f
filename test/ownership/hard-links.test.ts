import { describe, expect, it } from 'vitest'
import type { Stat } from '../../src/host/host.ts'
import { HardLinks } from '../../src/ownership/hard-links.ts'

/** Inode, its links, its ctime, the name it is seen under. */
type Sight = [inode: bigint, links: number, changed: bigint, name: string]

function walk(sights: Sight[]): { completed: string[]; outside: string[] } {
  const links = new HardLinks()
  const completed = sights.filter(([inode, count, changed, name]) =>
    links.completes({ inode, links: count, changed } as Stat, Buffer.from(name)),
  )
  const outside = links.outside().map((path) => Buffer.from(path).toString())
  return { completed: completed.map(([, , , name]) => name), outside }
}

describe('the names of an inode', () => {
  it.each<[string, Sight[], string[], string[]]>([
    ['none', [], [], []],
    ['the only one', [[1n, 1, 7n, 'a']], ['a'], []],
    [
      'both',
      [
        [1n, 2, 7n, 'a'],
        [1n, 2, 7n, 'b'],
      ],
      ['b'],
      [],
    ],
    ['one of two', [[1n, 2, 7n, 'a']], [], ['a']],
    [
      'two of three, told under one',
      [
        [1n, 3, 7n, 'a'],
        [1n, 3, 7n, 'b'],
      ],
      [],
      ['b'],
    ],
    [
      'all three',
      [
        [1n, 3, 7n, 'a'],
        [1n, 3, 7n, 'b'],
        [1n, 3, 7n, 'c'],
      ],
      ['c'],
      [],
    ],
    [
      'those of two inodes, mixed',
      [
        [1n, 2, 7n, 'a'],
        [2n, 2, 7n, 'x'],
        [1n, 2, 7n, 'b'],
        [3n, 2, 7n, 'alone'],
        [2n, 2, 7n, 'y'],
      ],
      ['b', 'y'],
      ['alone'],
    ],
    [
      'one, seen again under its new name: a rename moves ctime',
      [
        [1n, 2, 7n, 'a'],
        [1n, 2, 8n, 'renamed'],
      ],
      [],
      ['renamed'],
    ],
    [
      'one, renamed at every sight',
      [
        [1n, 2, 7n, 'a'],
        [1n, 2, 8n, 'b'],
        [1n, 2, 9n, 'c'],
        [1n, 2, 10n, 'd'],
      ],
      [],
      ['d'],
    ],
    [
      'both, after a count that started anew',
      [
        [1n, 2, 7n, 'a'],
        [1n, 2, 8n, 'b'],
        [1n, 2, 8n, 'c'],
      ],
      ['c'],
      [],
    ],
    [
      'a ctime set back counts anew as well',
      [
        [1n, 2, 7n, 'a'],
        [1n, 2, 6n, 'b'],
      ],
      [],
      ['b'],
    ],
    [
      'a link made meanwhile, which moves ctime',
      [
        [1n, 2, 7n, 'a'],
        [1n, 3, 8n, 'b'],
        [1n, 3, 8n, 'c'],
      ],
      [],
      ['c'],
    ],
    [
      'complete, and met again: a new count',
      [
        [1n, 2, 7n, 'a'],
        [1n, 2, 7n, 'b'],
        [1n, 2, 8n, 'c'],
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
        [2n ** 63n, 2, 7n, 'a'],
        [2n ** 63n + 1n, 2, 7n, 'b'],
      ]),
    ).toEqual({ completed: [], outside: ['a', 'b'] })
  })
})
