import { describe, expect, it } from 'vitest'
import { parseKubeletSubPaths } from '../../../src/kernel/mount-table/kubelet-volume.ts'
import { findContradictingMountOptions } from '../../../src/kernel/mount-table/mount-flags.ts'
import { parseMountinfo, selectMountLayers } from '../../../src/kernel/mount-table/mountinfo.ts'
import { findShownPaths } from '../../../src/kernel/mount-table/submounts.ts'
import {
  createLocationFinder,
  createMountFinder,
  findPathsToSameLocation,
} from '../../../src/kernel/mount-table/tree-location.ts'
import { checkSubPath } from '../../../src/kernel/path/open-sub-path.ts'
import { LINEAR, measureGrowth } from '../../helpers/work.ts'

const row = (id: number, parent: number, mountPoint: string, root = '/') =>
  `${id} ${parent} 8:1 ${root} ${mountPoint} rw,relatime - ext4 /dev/x rw\n`

const repeat = (count: number, make: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => make(at)).join('')

const ROOT = row(20, 1, '/')

describe('linear time for a path', () => {
  const table = ROOT + row(21, 20, '/a') + row(22, 21, '/a/a')

  it.each<[string, (path: string) => void]>([
    ['the mounts that it leads through', (path) => createMountFinder(parseMountinfo(table))(path)],
    ['its location', (path) => createLocationFinder(table)(path)],
    ['all paths to the same place', (path) => findPathsToSameLocation(table, path)],
    ['the faults of a subPath', (path) => checkSubPath(path.slice(1))],
  ])('the time to find %s is linear in the length of the path', (_what, use) => {
    expect(measureGrowth(8000, (names) => () => use('/a'.repeat(names)))).toBeLessThan(LINEAR)
  })

  it('the time to find contradicting mountOptions is linear in their number', () => {
    const options = (count: number) => `${'x,'.repeat(count)}${'noatime,'.repeat(count)}`.split(',')
    expect(measureGrowth(4000, (count) => () => findContradictingMountOptions(options(count)))).toBeLessThan(LINEAR)
  })
})

describe('linear time for a mount table', () => {
  const DATED = '/k/pods/u/volumes/kubernetes.io~configmap/v/..2024_01_01_00_00_00.1/f//deleted'

  it.each<[string, (count: number) => string, (table: string) => void]>([
    ['adjacent mounts', (count) => ROOT + repeat(count, (at) => row(at + 21, 20, `/m${at}`)), paths('/m7/x')],
    ['nested mounts', (count) => ROOT + repeat(count, (at) => row(at + 21, at + 20, '/a')), paths('/a/x')],
    [
      'many layers at one directory',
      (count) => ROOT + repeat(count, (at) => row(at + 21, at + 20, '/a')),
      (table) => selectMountLayers(parseMountinfo(table), '/a'),
    ],
    [
      'mounts that show a directory or its parts at other paths',
      (count) =>
        ROOT +
        row(10, 20, '/d', '/data') +
        repeat(count, (at) => row(at + 21, 20, `/m${at}`, '/data') + row(at + 500_000, 20, `/p${at}`, `/data/${at}`)),
      (table) => findShownPaths(table, { device: '8:1', path: '/data' }, () => true),
    ],
    [
      'stale subPath binds',
      (count) =>
        `${ROOT}${row(10, 20, '/k/pods/u/volumes/kubernetes.io~configmap/v', '/k/pods/u/volumes/kubernetes.io~configmap/v')}` +
        repeat(count, (at) => row(at + 21, 20, `/k/pods/u/volume-subpaths/v/c/${at}`, DATED)),
      (table) => parseKubeletSubPaths(table, '/k'),
    ],
  ])('the time to search a table with %s is linear in its size', (_what, make, use) => {
    const measured = measureGrowth(2000, (count) => {
      const table = make(count)
      return () => use(table)
    })
    expect(measured).toBeLessThan(LINEAR)
  })

  it('a table with 100,000 rows is parsed', () => {
    const table = ROOT + repeat(100_000, (at) => row(at + 21, at + 20, '/a'))
    const rows = parseMountinfo(table)
    expect(selectMountLayers(rows, '/a')).toHaveLength(100_000)
    expect(createMountFinder(rows)('/a')).toHaveLength(100_001)
  })

  function paths(path: string) {
    return (table: string) => void createMountFinder(table)(path)
  }
})
