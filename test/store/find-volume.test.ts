import { beforeEach, describe, expect, it } from 'vitest'
import { attachAt } from '../../src/mount/attach.ts'
import { openMountPoint } from '../../src/mount-table/mount-point.ts'
import { parseSource } from '../../src/request/source.ts'
import { findVolume, placeOfVolume } from '../../src/store/find-volume.ts'
import { mountRecords } from '../../src/store/mount-record.ts'
import { textIdentity, volumeIdentity, volumeRecords } from '../../src/store/volume-record.ts'
import { READY } from '../helpers/mount-records.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const SOURCE = '/node/volumes/data'

let stage: Stage
let volume: string
beforeEach(() => {
  stage = memoryStage()
  makeTree(stage.fs, SOURCE, ['file a 0640'])
  const { inodes } = stage.host
  const handle = inodes.openLinkFree(SOURCE)
  volume = volumeIdentity(stage.host, handle, inodes.stat(handle))
  inodes.close(handle)
})

const walked = (source = SOURCE) =>
  volumeRecords.write(stage, {
    volume,
    source,
    group: 2000,
    groupAccess: 'keep',
    complete: true,
    restorePending: false,
  })
const place = () => {
  const handles = stage.world?.handles.size
  const found = placeOfVolume(stage.session(), volume)
  expect(stage.world?.handles.size).toBe(handles)
  return found
}

/** Mounts the source, or something new, at a path. */
function mountAt(path: string, { isNew = false, mapped = false } = {}): void {
  makeTree(stage.fs, path, [])
  const { inodes, mounts } = stage.host
  const opened = inodes.openLinkFree(SOURCE)
  const tree = isNew ? mounts.createTree('tmpfs', []) : mounts.cloneTree(opened)
  if (mapped) mounts.swapGroups(tree, 0, 2000)
  const point = openMountPoint(stage.host, path) ?? expect.unreachable()
  attachAt(stage.host, point, tree)
  for (const handle of [opened, tree, point.parent]) inodes.close(handle)
}

/** What the mount table says of mounts, by their paths. */
function tell(rows: Record<string, (row: string) => string>): void {
  const { table } = stage.host.mounts
  stage.host.mounts.table = () =>
    table()
      .split('\n')
      .map((row) =>
        Object.entries(rows).reduce((told, [path, change]) => (told.includes(` ${path} `) ? change(told) : told), row),
      )
      .join('\n')
}

describe('a volume of a file system is found', () => {
  it('where it was last, as long as it is that very directory', () => {
    walked()
    expect(place()).toBe(SOURCE)
    stage.fs.renameSync(SOURCE, `${SOURCE}.moved`)
    expect(place()).toBeUndefined()
    makeTree(stage.fs, SOURCE, [])
    expect(place()).toBeUndefined()
  })

  it('not on another file system, though all its numbers are the same', () => {
    walked()
    stage.host.inodes.fileSystemId = () => 'another'
    expect(place()).toBeUndefined()
  })

  it('by the record of a mount where its own is gone', () => {
    mountRecords.write(stage, { ...READY, source: SOURCE, volume })
    expect(place()).toBe(SOURCE)
  })

  it('not through a link that somebody has put in its place', () => {
    walked()
    stage.fs.renameSync(SOURCE, `${SOURCE}.moved`)
    stage.fs.symlinkSync(`${SOURCE}.moved`, SOURCE)
    expect(place()).toBeUndefined()
  })

  it('at a mount that shows it, one that can be written to first, and none that shows other groups', () => {
    walked('/gone')
    for (const path of ['/mapped', '/read-only', '/writable', '/other']) {
      mountAt(path, { isNew: path === '/other', mapped: path === '/mapped' })
    }
    tell({ '/read-only': (row) => row.replace(' rw ', ' ro ') })
    expect(place()).toBe('/writable')
    tell({ '/writable': () => '' })
    expect(place()).toBe('/read-only')
    tell({ '/read-only': () => '' })
    expect(place()).toBeUndefined()
  })
})

describe("a server's volume is found", () => {
  beforeEach(() => {
    volume = textIdentity({ fsType: 'nfs', source: parseSource('host:/a') })
    mountAt('/share', { isNew: true })
  })
  const told = (fsType: string, source: string) =>
    tell({ '/share': (row) => row.replace(/ - .*/, ` - ${fsType} ${source} rw`) })

  it.each([
    ['nfs', 'host:/a', true],
    // The kernel may call either version the other.
    ['nfs4', 'host:/a', true],
    ['nfs4', 'host:/b', false],
    ['fuse.sshfs', 'host:/a', false],
    ['tmpfs', 'host:/a', false],
  ])('at a mount of %s from %s: %s', (fsType, source, isFound) => {
    told(fsType, source)
    expect(place()).toBe(isFound ? '/share' : undefined)
  })

  it('not where a part of it is mounted', () => {
    told('nfs', 'host:/a')
    tell({ '/share': (row) => row.replace(' / /share', ' /part /share') })
    expect(place()).toBeUndefined()
  })

  it('not where something else is mounted over it', () => {
    const { table } = stage.host.mounts
    told('nfs', 'host:/a')
    const before = stage.host.mounts.table()
    stage.host.mounts.table = table
    mountAt('/share', { isNew: true })
    stage.host.mounts.table = () => before
    expect(place()).toBeUndefined()
  })

  it('by no path that has its name', () => {
    stage.host.mounts.table = () => ''
    walked()
    expect(place()).toBeUndefined()
  })
})

it.each<[string, () => void, RegExp]>([
  ['was where it is no more', () => walked('/gone'), /was \/gone.*put it back or mount it/],
  [
    'has a record that cannot be read',
    () => {
      walked()
      stage.fs.writeFileSync(`${stage.config.stateDir}/ownership/${volume}/record.json`, '{')
    },
    /give its directory instead, "modekeep restore DIR"/,
  ],
  ['was never recorded', () => {}, /nothing is recorded of volume .*: "modekeep status" names/],
])('a volume that %s is refused with its way out', (_what, arrange, message) => {
  arrange()
  expect(() => findVolume(stage.session(), volume)).toThrow(message)
})
