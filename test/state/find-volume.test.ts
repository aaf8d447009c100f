import { beforeEach, describe, expect, it } from 'vitest'
import { parseSource } from '../../src/config/source.ts'
import { createGroupSwapMap } from '../../src/kernel/id-map.ts'
import { openMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { createPathLookups } from '../../src/kernel/mount-table/responsiveness.ts'
import { attachTreeAtPoint } from '../../src/mount/attach.ts'
import { findVolumePath, listVolumeIdentitiesAt, locateVolume } from '../../src/state/find-volume.ts'
import { mountRecords } from '../../src/state/mount-record.ts'
import { computeTextVolumeId, resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
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
  volume = resolveVolumeIdentity(stage, handle, inodes.stat(handle))
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
const place = async () => {
  const handles = stage.world?.handles.size
  const found = await locateVolume(stage.session(), volume, createPathLookups(stage))
  expect(stage.world?.handles.size).toBe(handles)
  return found?.isSilent ? `silent: ${found.path}` : found?.path
}

/** Returns whether the directory at a path is the volume. */
function isAt(path: string): boolean {
  const { inodes } = stage.host
  const handle = inodes.openLinkFree(path)
  const names = listVolumeIdentitiesAt(stage.session(), path, handle)
  inodes.close(handle)
  return names.includes(volume)
}

/** Mounts the source, or something new, at a path. */
function mountAt(path: string, { isNew = false, mapped = false } = {}): void {
  makeTree(stage.fs, path, [])
  const { inodes, mounts } = stage.host
  const opened = inodes.openLinkFree(SOURCE)
  const tree = isNew ? mounts.createTree('tmpfs', []) : mounts.cloneTree(opened)
  if (mapped) mounts.mapIds(tree, createGroupSwapMap(0, 2000))
  const point = openMountPoint(stage.host, path) ?? expect.unreachable()
  attachTreeAtPoint(stage.host, point, tree)
  for (const handle of [opened, tree, point.parent]) inodes.close(handle)
}

/** Changes the rows of mounts in the mount table, by mount point. */
function changeRows(rows: Record<string, (row: string) => string>): void {
  const { table } = stage.host.mounts
  stage.host.mounts.table = () =>
    table()
      .split('\n')
      .map((row) =>
        Object.entries(rows).reduce(
          (changed, [path, change]) => (changed.includes(` ${path} `) ? change(changed) : changed),
          row,
        ),
      )
      .join('\n')
}

describe('a volume is found', () => {
  it('at its recorded path if the same directory is still there', async () => {
    walked()
    expect(await place()).toBe(SOURCE)
    stage.fs.renameSync(SOURCE, `${SOURCE}.moved`)
    expect(await place()).toBeUndefined()
    makeTree(stage.fs, SOURCE, [])
    expect(await place()).toBeUndefined()
  })

  it('at a path that the caller names', async () => {
    const at = (source: string) => locateVolume(stage.session(), volume, createPathLookups(stage), false, source)
    expect(await place()).toBeUndefined()
    expect(await at(SOURCE)).toEqual({ path: SOURCE, isSilent: false })
    expect(await at('/node/volumes')).toBeUndefined()
    expect([isAt(SOURCE), isAt('/node/volumes')]).toEqual([true, false])
  })

  it('on no other file system whose root has the same inode number and birth time', async () => {
    walked()
    stage.host.inodes.fileSystemId = () => 'another'
    expect(await place()).toBeUndefined()
  })

  it("by the record of a mount if the volume's record is lost", async () => {
    mountRecords.write(stage, { ...READY, source: SOURCE, volume })
    expect(await place()).toBe(SOURCE)
  })

  it('through no symbolic link at its recorded path', async () => {
    walked()
    stage.fs.renameSync(SOURCE, `${SOURCE}.moved`)
    stage.fs.symlinkSync(`${SOURCE}.moved`, SOURCE)
    expect(await place()).toBeUndefined()
  })

  it('at a mount that shows it, a writable one first, and none that shows other groups', async () => {
    walked('/gone')
    for (const path of ['/mapped', '/read-only', '/writable', '/other']) {
      mountAt(path, { isNew: path === '/other', mapped: path === '/mapped' })
    }
    changeRows({ '/read-only': (row) => row.replace(' rw ', ' ro ') })
    expect(await place()).toBe('/writable')
    changeRows({ '/writable': () => '' })
    expect(await place()).toBe('/read-only')
    changeRows({ '/read-only': () => '' })
    expect(await place()).toBeUndefined()
  })
})

describe('a volume whose server may be unresponsive', () => {
  /** Paths whose responsiveness was checked. */
  let checkedPaths: string[]
  /** Paths that do not respond. */
  const unresponsive = new Set<string>()
  beforeEach(() => {
    checkedPaths = []
    unresponsive.clear()
    stage.host.daemons.answers = async (_parent, name) => {
      const path = `/${Buffer.from(name)}`
      checkedPaths.push(path)
      return ![...unresponsive].some((top) => path.startsWith(top))
    }
  })
  /** Makes mounts appear as mounts of an NFS server. */
  const isNfs = (...paths: string[]) => {
    const asNfs = (row: string) => row.replace(/ \d+:\d+ /, ' 0:99 ').replace(' - memory ', ' - nfs4 ')
    changeRows(Object.fromEntries(paths.map((path) => [path, asNfs])))
  }
  const refusal = (path: string) =>
    `directory "${path}" does not respond (the server or the daemon of its file system hangs, or a process keeps a directory of the path locked): repair that on the node, then call this again`

  it('is not searched on an unresponsive server, and the result names the unresponsive path', async () => {
    mountAt('/nfs', { isNew: true })
    isNfs('/nfs')
    walked('/nfs/data')
    unresponsive.add('/nfs')
    const opened: string[] = []
    const { openLinkFree } = stage.host.inodes
    stage.host.inodes.openLinkFree = (path) => {
      opened.push(path)
      return openLinkFree(path)
    }
    expect(await place()).toBe('silent: /nfs/data')
    expect(checkedPaths).toEqual(['/nfs/data'])
    expect(opened.filter((path) => path.startsWith('/nfs'))).toEqual([])
    await expect(findVolumePath(stage.session(), volume)).rejects.toThrow(refusal('/nfs/data'))
  })

  it('is found at another path that responds', async () => {
    mountAt('/nfs', { isNew: true })
    isNfs('/nfs')
    walked('/nfs/data')
    mountAt('/elsewhere')
    unresponsive.add('/nfs')
    expect(await place()).toBe('/elsewhere')
  })

  it("is found on a responsive server, without a request to the node's own and unrelated servers", async () => {
    walked('/share/gone')
    for (const path of ['/share', '/pod']) mountAt(path)
    mountAt('/other', { isNew: true })
    isNfs('/share', '/pod')
    changeRows({ '/other': (row) => row.replace(' - memory ', ' - fuse.x ') })
    unresponsive.add('/other')
    expect(await place()).toBe('/share')
    expect(checkedPaths).toEqual(['/share/gone'])
    walked('/gone')
    expect(await place()).toBeUndefined()
    expect(checkedPaths).toEqual(['/share/gone'])
  })
})

describe('a volume on a server is found', () => {
  beforeEach(() => {
    volume = computeTextVolumeId({ fsType: 'nfs', source: parseSource('host:/a') })
    mountAt('/share', { isNew: true })
  })
  const mountShareAs = (fsType: string, source: string) =>
    changeRows({ '/share': (row) => row.replace(/ - .*/, ` - ${fsType} ${source} rw`) })

  it.each([
    ['nfs', 'host:/a', true],
    // The mount table may show either type of NFS as the other.
    ['nfs4', 'host:/a', true],
    ['nfs4', 'host:/b', false],
    ['fuse.sshfs', 'host:/a', false],
    ['tmpfs', 'host:/a', false],
  ])('at a mount of %s from %s: %s', async (fsType, source, isFound) => {
    mountShareAs(fsType, source)
    expect(await place()).toBe(isFound ? '/share' : undefined)
    expect(isAt('/share')).toBe(isFound)
  })

  it('only while the server responds', async () => {
    mountShareAs('nfs', 'host:/a')
    stage.host.daemons.answers = async () => false
    expect(await place()).toBe('silent: /share')
  })

  it('at no mount of a part of the volume', async () => {
    mountShareAs('nfs', 'host:/a')
    changeRows({ '/share': (row) => row.replace(' / /share', ' /part /share') })
    expect(await place()).toBeUndefined()
    expect(isAt('/share')).toBe(false)
  })

  it('at no path that another mount covers', async () => {
    const { table } = stage.host.mounts
    mountShareAs('nfs', 'host:/a')
    const before = stage.host.mounts.table()
    stage.host.mounts.table = table
    mountAt('/share', { isNew: true })
    stage.host.mounts.table = () => before
    expect(await place()).toBeUndefined()
    expect(isAt('/share')).toBe(false)
  })

  it('at no recorded path where no mount of the server exists', async () => {
    stage.host.mounts.table = () => ''
    walked()
    expect(await place()).toBeUndefined()
  })
})

it.each<[string, () => void, RegExp]>([
  [
    'is no longer at its recorded path',
    () => walked('/gone'),
    /cannot be found: \/gone is missing: put it back or mount it/,
  ],
  [
    'has an unreadable record',
    () => {
      walked()
      stage.fs.writeFileSync(`${stage.config.stateDir}/ownership/${volume}/record.json`, '{')
    },
    /give its directory instead, "modekeep restore DIR"/,
  ],
  ['was never recorded', () => {}, /nothing is recorded of volume .*: "modekeep status" names/],
])('a volume that %s is refused with the remedy', async (_what, arrange, message) => {
  arrange()
  await expect(findVolumePath(stage.session(), volume)).rejects.toThrow(message)
})
