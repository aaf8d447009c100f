import { beforeEach, expect, it } from 'vitest'
import { SystemError } from '../../src/kernel/host.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

const GROUP_ON_DISK = 100
const ON_DISK = { '.': GROUP_ON_DISK, one: GROUP_ON_DISK, sub: GROUP_ON_DISK }
const WALKED = { '.': 2000, one: 2000, sub: 2000 }

onEveryStage('a mount that fails after its walk, with restoreOnUnmount', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, [`dir sub 0755 ${GROUP_ON_DISK}`, `file one 0640 ${GROUP_ON_DISK}`])
    stage.fs.chownSync(source, 0, GROUP_ON_DISK)
    return () => stage.close()
  })

  const onDisk = () => groups(listTree(stage.fs, source))
  const mount = () =>
    stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' })

  /** As at the limit fs.mount-max. @param meanwhile is called at the attempt to attach */
  async function mountWithoutRoom(meanwhile: () => void = () => {}): Promise<void> {
    const { mounts } = stage.host
    const attach = () => {
      expect(onDisk()).toEqual(WALKED)
      meanwhile()
      throw new SystemError('move_mount', 'ENOSPC', 'the mount directory')
    }
    stage.host.mounts = { ...mounts, attach }
    await expect(mount()).rejects.toThrow('ENOSPC')
    stage.host.mounts = mounts
    expect(stage.layers('a')).toEqual([])
    expect(listReadableMountRecords(stage).filter(({ directory }) => directory === stage.podDirectory('a'))).toEqual([])
  }

  it('is put back by the same call, and the next mount and its unmount are as ever', async () => {
    await mountWithoutRoom()
    expect(onDisk()).toEqual(ON_DISK)
    expect(stage.warnings).toEqual([])
    expect(await stage.heal()).toEqual([])
    await mount()
    expect(groups(stage.shown('a'))).toEqual(WALKED)
    await stage.unmount('a')
    expect(onDisk()).toEqual(ON_DISK)
  })

  it('stays as another pod uses it, whose unmount puts it back', async () => {
    await stage.mount('b', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    await mountWithoutRoom()
    expect(onDisk()).toEqual(WALKED)
    await stage.unmount('b')
    expect(onDisk()).toEqual(ON_DISK)
  })

  it('is put back by the next unmount of the volume if it cannot be put back now', async () => {
    await mountWithoutRoom(() => stage.fs.renameSync(source, `${source}-away`))
    expect(stage.warnings).toEqual([expect.stringContaining('volume not restored, tried again at its next unmount')])
    stage.fs.renameSync(`${source}-away`, source)
    expect(onDisk()).toEqual(WALKED)
    await mount()
    await stage.unmount('a')
    expect(onDisk()).toEqual(ON_DISK)
  })

  it('keeps its group if the mount was there before', async () => {
    await mount()
    const { mounts } = stage.host
    const fail = () => {
      throw new SystemError('move_mount', 'ENOSPC', 'the mount directory')
    }
    stage.host.mounts = { ...mounts, attach: fail, attachBeneath: fail }
    const readOnly = { 'kubernetes.io/readwrite': 'ro', restoreOnUnmount: 'true' }
    await expect(
      stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', ...readOnly }),
    ).rejects.toThrow('ENOSPC')
    stage.host.mounts = mounts
    expect(groups(stage.shown('a'))).toEqual(WALKED)
    await stage.unmount('a')
    expect(onDisk()).toEqual(ON_DISK)
  })
})
