import { describe, expect, it } from 'vitest'
import {
  applyGroupToNodeDirectory,
  refuseNodeDirectoryRestore,
  restoreNodeDirectory,
} from '../../src/fsgroup/volume-by-hand.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'

function arrange(): { stage: Stage; source: string } {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, ['file test 0640 7', 'dir sub 0750 8', 'file sub/deep 0600 9'])
  return { stage, source }
}

const FS_GROUP = { groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch' } as const

describe('a manual apply', () => {
  it('returns the report of the walk, or nothing if the root has the group already', async () => {
    const { stage, source } = arrange()
    const apply = () => stage.byHand(source, (session, opened) => applyGroupToNodeDirectory(session, opened, FS_GROUP))
    expect(await apply()).toMatchObject({ visited: 4, changed: 4 })
    expect(groups(listTree(stage.fs, source))).toEqual({ '.': 2000, test: 2000, sub: 2000, 'sub/deep': 2000 })
    expect(await apply()).toBeUndefined()
  })

  it('is refused while a pod uses the volume with another group', async () => {
    const { stage, source } = arrange()
    await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '3000' })
    const apply = stage.byHand(source, (session, opened) => applyGroupToNodeDirectory(session, opened, FS_GROUP))
    await expect(apply).rejects.toThrow(/belongs to group 3000 .* so group 2000 cannot have it/)
    expect(groups(listTree(stage.fs, source)).test).toBe(3000)
  })
})

describe('a manual restore', () => {
  it('reports that nothing is recorded, and creates no files', async () => {
    const { stage, source } = arrange()
    expect(await stage.byHand(source, restoreNodeDirectory)).toEqual({ outcome: 'nothing recorded', report: undefined })
    expect(stage.fs.existsSync(`${stage.config.stateDir}/ownership`)).toBe(false)
  })

  it('restores every inode and returns the report of the walk', async () => {
    const { stage, source } = arrange()
    const before = listTree(stage.fs, source)
    await stage.byHand(source, (session, opened) => applyGroupToNodeDirectory(session, opened, FS_GROUP))
    expect(await stage.byHand(source, restoreNodeDirectory)).toMatchObject({
      outcome: 'restored',
      report: { changed: 4 },
    })
    const after = listTree(stage.fs, source)
    expect([groups(after), modes(after)]).toEqual([groups(before), modes(before)])
    expect(await stage.byHand(source, restoreNodeDirectory)).toMatchObject({ outcome: 'nothing recorded' })
  })

  it('skips inodes that users changed, unless the restore is forced', async () => {
    const { stage, source } = arrange()
    await stage.byHand(source, (session, opened) => applyGroupToNodeDirectory(session, opened, FS_GROUP))
    stage.fs.chmodSync(`${source}/test`, 0o604)
    const { report } = await stage.byHand(source, restoreNodeDirectory)
    expect(report?.left['changed since by its user']).toMatchObject({ count: 1 })
    expect(listTree(stage.fs, source).test).toMatchObject({ mode: '0604', gid: 2000 })
    const forced = await stage.byHand(source, (session, opened) => restoreNodeDirectory(session, opened, true))
    expect(forced.outcome).toBe('restored')
    expect(listTree(stage.fs, source).test).toMatchObject({ mode: '0640', gid: 7 })
  })

  it('is refused while a pod uses the group on disk', async () => {
    const { stage, source } = arrange()
    await stage.mount('a', { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    await expect(stage.byHand(source, restoreNodeDirectory)).rejects.toThrow(
      /with group 2000 on disk.*delete that pod first/,
    )
    const look = stage.byHand(source, async (session, opened) => refuseNodeDirectoryRestore(session, opened))
    await expect(look).rejects.toThrow(/delete that pod first/)
    expect(groups(listTree(stage.fs, source)).test).toBe(2000)
  })
})
