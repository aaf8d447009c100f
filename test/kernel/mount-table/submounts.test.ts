import { describe, expect, it } from 'vitest'
import { parseMountinfo } from '../../../src/kernel/mount-table/mountinfo.ts'
import { findSubmounts, formatMountList } from '../../../src/kernel/mount-table/submounts.ts'
import { LINEAR, measureGrowth } from '../../helpers/work.ts'

const row = (id: number, parent: number, mountPoint: string) =>
  `${id} ${parent} 8:1 / ${mountPoint} rw,relatime shared:1 - ext4 /dev/x rw\n`

const find = (table: string, path: string, mountId?: number) =>
  (findSubmounts(parseMountinfo(table), [{ path, ...(mountId !== undefined && { mountId }) }]).get(path) ?? []).map(
    ({ id }) => id,
  )

describe('the mounts inside a directory', () => {
  const table = [
    row(20, 1, '/'),
    row(21, 20, '/srv/data/disk'),
    row(22, 21, '/srv/data/disk/deep'),
    row(23, 20, '/srv/database'),
    row(24, 20, '/srv/data'),
    row(25, 24, '/srv/data/inner'),
  ].join('')

  it('are children of the mount that shows it, or of one another', () => {
    expect(find(table, '/srv/data', 20)).toEqual([21, 22])
    expect(find(table, '/srv/data', 24)).toEqual([25])
    expect(find(table, '/srv/data/disk', 21)).toEqual([22])
    expect(find(table, '/srv/other', 20)).toEqual([])
  })

  it('are those of the mount that its path leads to if no mount is named', () => {
    expect(find(table, '/srv/data')).toEqual([25])
    expect(find(table, '/')).toEqual([21, 23, 24, 22, 25])
  })

  it('are finite in a table with a circle', () => {
    expect(find(row(20, 20, '/') + row(21, 22, '/a/b') + row(22, 21, '/a/b'), '/a', 20)).toEqual([])
    expect(find(row(20, 20, '/') + row(21, 20, '/a/b') + row(21, 21, '/a/b'), '/a', 20)).toEqual([21, 21])
  })

  it('are formatted with the first three and their number', () => {
    const rows = Array.from({ length: 5 }, (_, at) => ({ mountPoint: `/m${at}`, fsType: 'ext4' }))
    expect(formatMountList(rows)).toBe('"/m0" (ext4), "/m1" (ext4), "/m2" (ext4) and 2 more')
    expect(formatMountList(rows.slice(0, 1))).toBe('"/m0" (ext4)')
  })
})

describe('linear time for submounts', () => {
  const repeat = (count: number, make: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => make(at)).join('')
  it.each<[string, (count: number) => () => void]>([
    [
      'the size of a table with adjacent mounts',
      (count) => search(repeat(count, (at) => row(at + 21, 20, `/a/m${at}`))),
    ],
    ['the size of a table with nested mounts', (count) => search(repeat(count, (at) => row(at + 21, at + 20, '/a/b')))],
    ['the size of a table with other mounts', (count) => search(repeat(count, (at) => row(at + 21, 20, `/m${at}`)))],
    ['the length of a mount point', (count) => search(row(21, 20, '/a'.repeat(count)))],
    [
      'the number of directories',
      (count) =>
        search(
          repeat(count, (at) => row(at + 21, 20, `/v/${at}/m`)),
          count,
          (at) => `/v/${at}`,
        ),
    ],
  ])('the time to find submounts is linear in %s', (_what, make) => {
    expect(measureGrowth(2000, make)).toBeLessThan(LINEAR)
  })

  function search(below: string, paths = 1, make: (at: number) => string = () => '/a'): () => void {
    const queries = Array.from({ length: paths }, (_, at) => ({ path: make(at) }))
    return () => void findSubmounts(parseMountinfo(row(20, 1, '/') + below), queries)
  }
})
