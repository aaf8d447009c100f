import { expect, it } from 'vitest'
import { findShownPaths } from '../../../src/kernel/mount-table/submounts.ts'

const table = (...rows: string[]) => rows.map((row) => `${row} - ext4 /dev/a rw\n`).join('')

const TABLE = table(
  '20 1 8:1 / / rw',
  '21 20 8:1 /srv/a /bound rw',
  '22 20 8:1 /srv/a/part /part rw',
  '23 20 8:2 / /other-disk rw',
  '24 20 8:1 /srv /covered rw',
  '25 24 8:3 / /covered rw',
  '26 20 8:1 /srv/b /beside rw',
)

const pathsOf = (path: string) => findShownPaths(TABLE, { device: '8:1', path }, () => true).map(({ path }) => path)

it('the paths at which mounts show a directory or a part of it are found, without covered mounts', () => {
  expect(pathsOf('/srv/a')).toEqual(['/srv/a', '/bound', '/part'])
  expect(pathsOf('/srv/a/part/x')).toEqual(['/srv/a/part/x', '/bound/part/x', '/part/x'])
  expect(pathsOf('')).toEqual(['/', '/bound', '/part', '/beside'])
})

it('another mount of a part of an NFS export is found, although its root in the table is always "/"', () => {
  const nfs = [
    '20 1 8:1 / / rw - ext4 /dev/a rw',
    '21 20 0:9 / /export rw - nfs4 nas:/e rw',
    '22 20 0:9 / /part rw - nfs4 nas:/e/part rw',
  ].map((row) => `${row}\n`)
  const found = findShownPaths(nfs.join(''), { device: '0:9', path: 'nas:/e/part/x' }, () => true)
  expect(found.map(({ path }) => path)).toEqual(['/export/part/x', '/part/x'])
})
