import { describe, expect, it } from 'vitest'
import { parseSource } from '../../src/config/source.ts'
import { refuseOtherVolumeUsers } from '../../src/fsgroup/apply-to-volume.ts'
import { findOtherVolumeUsers, listVolumeUsers } from '../../src/fsgroup/holders.ts'
import { openMountPoint } from '../../src/kernel/mount-table/mount-point.ts'
import { attachTreeAtPoint } from '../../src/mount/attach.ts'
import { listReadableMountRecords, mountRecords } from '../../src/state/mount-record.ts'
import { computeTextVolumeId, resolveVolumeIdentity } from '../../src/state/volume-identity.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const TREE = ['dir data 0755', 'dir data/part 0755', 'dir data/part/deep 0755', 'dir database 0755']

function arrange(): Stage {
  const stage = memoryStage()
  makeTree(stage.fs, `${stage.top}/volumes`, TREE)
  return stage
}

/** Lists the pods whose mounts show `path`, a part of it, or a tree that contains it. */
function found(stage: Stage, path: string, except = ''): string[] {
  const source = `${stage.top}/volumes/${path}`
  const handle = stage.host.inodes.openTrusted(source)
  const volume = resolveVolumeIdentity(stage, handle, stage.host.inodes.stat(handle))
  const others = findOtherVolumeUsers(stage.session(), { volume, source }, except)
  return listVolumeUsers(others).flatMap(({ directory }) => /\/pods\/([^/]+)\//.exec(directory ?? '')?.[1] ?? [])
}

const mount = (stage: Stage, pod: string, path: string, more = {}) =>
  stage.mount(pod, { source: `${stage.top}/volumes/${path}`, ...more })

describe('the users of a volume', () => {
  it('are its mounts, and those of its parts and of volumes that contain it', async () => {
    const stage = arrange()
    await mount(stage, 'whole', 'data')
    await mount(stage, 'part', 'data/part')
    await mount(stage, 'other', 'database')
    expect(found(stage, 'data').sort()).toEqual(['part', 'whole'])
    expect(found(stage, 'data/part').sort()).toEqual(['part', 'whole'])
    expect(found(stage, 'data/part/deep').sort()).toEqual(['part', 'whole'])
    expect(found(stage, 'database')).toEqual(['other'])
  })

  it('are found by the resolved subPath, not by its text', async () => {
    const stage = arrange()
    await mount(stage, 'deep', 'data', { subPath: 'part/deep' })
    expect(found(stage, 'data/part')).toEqual(['deep'])
    expect(found(stage, 'database')).toEqual([])
  })

  it('do not include the requesting mount', async () => {
    const stage = arrange()
    await mount(stage, 'a', 'data')
    await mount(stage, 'b', 'data')
    expect(found(stage, 'data', stage.podDirectory('a'))).toEqual(['b'])
  })

  it('do not include mounts that were unmounted by hand or by a reboot', async () => {
    const stage = arrange()
    await mount(stage, 'a', 'data')
    const parent = stage.host.inodes.openTrusted(stage.podDirectory('a').replace(/\/v$/, ''))
    stage.host.mounts.detach(parent, Buffer.from('v'))
    expect(found(stage, 'data')).toEqual([])
    await mount(stage, 'b', 'data')
    stage.reboot()
    expect(found(stage, 'data')).toEqual([])
  })

  describe('on a server', () => {
    const textOf = (source: string, fsType = 'nfs') => computeTextVolumeId({ fsType, source: parseSource(source) })
    const foundOn = (stage: Stage, source: string, fsType = 'nfs') =>
      listVolumeUsers(findOtherVolumeUsers(stage.session(), { volume: textOf(source, fsType), source }, '')).length > 0

    /** Creates a node where a pod has mounted the source, which was walked for group 2000. */
    async function exported(source: string): Promise<Stage> {
      const stage = arrange()
      await mount(stage, 'a', 'data')
      const [record] = listReadableMountRecords(stage)
      if (!record) throw new Error('no record')
      const request = { ...record.request, fsType: 'nfs', source: parseSource(source) }
      const given = { by: 'walk', group: 2000, why: 'asked for' } as const
      mountRecords.write(stage, { ...record, request, source, volume: textOf(source), given })
      return stage
    }

    it.each([
      ['srv:/exp', 'srv:/exp', true],
      ['srv:/exp', 'srv:/exp/sub', true],
      ['srv:/exp/sub/deep', 'srv:/exp', true],
      ['srv:/', 'srv:/exp', true],
      ['srv:/exp', 'SRV:/exp/sub', true],
      ['srv:/exp', 'srv:/export', false],
      ['srv:/exp/one', 'srv:/exp/two', false],
      ['srv:/exp', 'other:/exp/sub', false],
    ])('include mounts of export %s for a volume at export %s: %s', async (held, asked, isHeld) => {
      const stage = await exported(held)
      expect(foundOn(stage, asked)).toBe(isHeld)
      expect(foundOn(stage, asked, 'nfs4')).toBe(isHeld)
    })

    it('keep a mount with another group from the volume', async () => {
      const stage = await exported('srv:/exp')
      const source = 'srv:/exp/sub'
      const target = { volume: textOf(source), source, restoreOnUnmount: false }
      expect(() => refuseOtherVolumeUsers(stage.session(), 3000, target, 7)).toThrow(/belongs to group 2000/)
      expect(() => refuseOtherVolumeUsers(stage.session(), 2000, target, 7)).not.toThrow()
    })

    it("include mounts of the node's directory on the server", async () => {
      const stage = await exported('srv:/exp/sub')
      const { mounts, inodes } = stage.host
      makeTree(stage.fs, '/mnt/share', [])
      const share = openMountPoint(stage.host, '/mnt/share') ?? expect.unreachable()
      attachTreeAtPoint(stage.host, share, mounts.createTree('nfs', []))
      inodes.close(share.parent)
      const table = () => mounts.table().replaceAll(/( \/mnt\/share .*) - memory [^ ]+/g, '$1 - nfs4 srv:/exp')
      stage.host.mounts = { ...mounts, table }
      const foundAt = (source: string) =>
        listVolumeUsers(findOtherVolumeUsers(stage.session(), { volume: 'fs-1-2', source }, '')).length > 0
      expect(['/mnt/share', '/mnt/share/sub/deep', '/mnt/share/other', '/mnt'].map(foundAt)).toEqual([
        true,
        true,
        false,
        false,
      ])
    })
  })
})
