import { describe, expect, it } from 'vitest'
import {
  areLocationsNested,
  arePathsNested,
  createLocationFinder,
  findPathsToSameLocation,
} from '../../../src/kernel/mount-table/tree-location.ts'

const row = (id: number, parent: number, device: string, root: string, mountPoint: string) =>
  `${id} ${parent} ${device} ${root} ${mountPoint} rw,relatime shared:${id} - ext4 /dev/x rw\n`

const TABLE = [
  row(20, 1, '8:1', '/', '/'),
  row(21, 20, '8:2', '/', '/srv'),
  row(22, 21, '8:2', '/data', '/srv/alias'),
  row(23, 21, '8:3', '/@home/old', '/srv/disk'),
  row(24, 20, '8:4', '/', '/srv2'),
  // Hidden by what was mounted on /mnt after it.
  row(25, 20, '8:5', '/', '/mnt/inner'),
  row(26, 20, '8:6', '/', '/mnt'),
  row(27, 26, '8:7', '/seven', '/mnt/inner/deep'),
  // Two layers, the upper one listed first as after a mount beneath.
  row(31, 30, '8:9', '/upper', '/two'),
  row(30, 20, '8:8', '/lower', '/two'),
  row(40, 20, '8:1', '/a\\040b', '/bl\\134ank'),
].join('')

describe('the location of a directory', () => {
  const locationOf = createLocationFinder(TABLE)

  it.each([
    ['on the root file system', '/etc/x', '8:1', '/etc/x'],
    ['that is the root', '/', '8:1', ''],
    ['that is the root of a mount', '/srv', '8:2', ''],
    ['below a mount', '/srv/data/sub', '8:2', '/data/sub'],
    ['through a bind mount of it', '/srv/alias/sub', '8:2', '/data/sub'],
    ['in a subvolume', '/srv/disk/a', '8:3', '/@home/old/a'],
    ['next to one with a longer name', '/srv2/data', '8:4', '/data'],
    ['next to one with a shorter name', '/srv22', '8:1', '/srv22'],
    ['over a hidden mount', '/mnt/inner/x', '8:6', '/inner/x'],
    ['in a mount that is not hidden', '/mnt/inner/deep/x', '8:7', '/seven/x'],
    ['on two layers', '/two/x', '8:9', '/upper/x'],
    ['with spaces', '/bl\\ank/x', '8:1', '/a b/x'],
  ])('%s: %s', (_what, path, device, place) => {
    expect(locationOf(path)).toEqual({ device, path: place })
  })

  it.each([
    ['an empty table', ''],
    ['a root that is no mount, as after chroot', row(21, 20, '8:2', '/', '/srv')],
  ])('is unknown from %s', (_what, table) => {
    expect(createLocationFinder(table)('/srv/data')).toBeUndefined()
  })

  it('is found in a mount table whose root mount is its own parent', () => {
    expect(createLocationFinder(row(20, 20, '8:1', '/', '/'))('/a')).toEqual({ device: '8:1', path: '/a' })
  })
})

it.each([
  ['/a', '/a', true],
  ['/a', '/a/b', true],
  ['/a/b/c', '/a', true],
  ['', '/a', true],
  ['/a', '/ab', false],
  ['/a/b', '/a/c', false],
])('%j and %j are nested: %s', (one, other, are) => {
  expect(arePathsNested(one, other)).toBe(are)
  expect(areLocationsNested({ device: '8:1', path: one }, { device: '8:1', path: other })).toBe(are)
  expect(areLocationsNested({ device: '8:1', path: one }, { device: '8:2', path: other })).toBe(false)
})

it.each([
  ['/srv/data/x', ['/srv/data/x', '/srv/alias/x']],
  ['/srv/alias/x', ['/srv/data/x', '/srv/alias/x']],
  ['/srv/data', ['/srv/data', '/srv/alias']],
  ['/srv/database', ['/srv/database']],
  ['/bl\\ank/x', ['/a b/x', '/bl\\ank/x']],
])('the directory at %s is also at %j', (path, expected) => {
  expect(findPathsToSameLocation(TABLE, path)).toEqual(expected)
})
