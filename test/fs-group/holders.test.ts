import { describe, expect, it } from 'vitest'
import { holders, othersWith } from '../../src/fs-group/holders.ts'
import { volumeIdentity } from '../../src/store/volume-record.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const TREE = ['dir data 0755', 'dir data/part 0755', 'dir data/part/deep 0755', 'dir database 0755']

function arrange(): Stage {
  const stage = memoryStage()
  makeTree(stage.fs, `${stage.top}/volumes`, TREE)
  return stage
}

/** The pods whose mounts hold what `path` names, a part of it, or what it is a part of. */
function found(stage: Stage, path: string, except = ''): string[] {
  const source = `${stage.top}/volumes/${path}`
  const handle = stage.host.inodes.openTrusted(source)
  const volume = volumeIdentity(stage.host, handle, stage.host.inodes.stat(handle))
  const others = othersWith(stage.session(), { volume, source }, except)
  return holders(others).flatMap(({ directory }) => /\/pods\/([^/]+)\//.exec(directory ?? '')?.[1] ?? [])
}

const mount = (stage: Stage, pod: string, path: string, more = {}) =>
  stage.mount(pod, { source: `${stage.top}/volumes/${path}`, ...more })

describe('the holders of a volume', () => {
  it('are mounts of it, of a part of it and of what it is a part of', async () => {
    const stage = arrange()
    await mount(stage, 'whole', 'data')
    await mount(stage, 'part', 'data/part')
    await mount(stage, 'other', 'database')
    expect(found(stage, 'data').sort()).toEqual(['part', 'whole'])
    expect(found(stage, 'data/part').sort()).toEqual(['part', 'whole'])
    expect(found(stage, 'data/part/deep').sort()).toEqual(['part', 'whole'])
    expect(found(stage, 'database')).toEqual(['other'])
  })

  it('are found by where a subPath led, not by how it was written', async () => {
    const stage = arrange()
    await mount(stage, 'deep', 'data', { subPath: 'part/deep' })
    expect(found(stage, 'data/part')).toEqual(['deep'])
    expect(found(stage, 'database')).toEqual([])
  })

  it('leave out the mount that is asked for', async () => {
    const stage = arrange()
    await mount(stage, 'a', 'data')
    await mount(stage, 'b', 'data')
    expect(found(stage, 'data', stage.podDirectory('a'))).toEqual(['b'])
  })

  it('are not those whose mounts are gone: unmounted by somebody else, or by a reboot', async () => {
    const stage = arrange()
    await mount(stage, 'a', 'data')
    const parent = stage.host.inodes.openTrusted(stage.podDirectory('a').replace(/\/v$/, ''))
    stage.host.mounts.detach(parent, Buffer.from('v'))
    expect(found(stage, 'data')).toEqual([])
    await mount(stage, 'b', 'data')
    stage.reboot()
    expect(found(stage, 'data')).toEqual([])
  })
})
