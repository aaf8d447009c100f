import { dirname } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { locateMountRecords, RECORD_FILE } from '../../src/state/record-directories.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

onEveryStage('a mount of a running pod whose record is lost', (open) => {
  let stage: Stage
  let source: string
  beforeEach(async () => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file a 0640 7', 'dir d 0750 8', 'file d/b 0640 9'])
    await mount('first', '2000')
    lose('first')
  })
  afterEach(() => stage.close())

  const mount = (pod: string, group: string, more: Record<string, string> = {}) =>
    stage.mount(pod, { source, ownership: 'walk', 'kubernetes.io/fsGroup': group, ...more })
  const lose = (pod: string) =>
    stage.fs.rmSync(`${locateMountRecords(stage.session(), stage.podDirectory(pod)).path}/${RECORD_FILE}`)
  const all = () => new Set(Object.values(groups(listTree(stage.fs, source))))
  const LOST = /record of its mount is lost.*delete that pod/

  it('keeps the volume and its parts from a second group', async () => {
    await expect(mount('second', '3000')).rejects.toThrow(LOST)
    expect(stage.noted.heldBy).toEqual({ directory: stage.podDirectory('first'), group: 2000 })
    await expect(mount('second', '3000', { subPath: 'd' })).rejects.toThrow(LOST)
    await expect(stage.byHand(source, (session, opened) => restoreNodeDirectory(session, opened))).rejects.toThrow(
      'the record of that mount is lost',
    )
    expect(all()).toEqual(new Set([2000]))
    await stage.unmount('first')
    await mount('second', '3000')
    expect(all()).toEqual(new Set([3000]))
  })

  it('permits a second pod with the same group', async () => {
    await mount('second', '2000')
    expect(stage.layers('second')).toHaveLength(1)
  })

  it('is reported by heal, and the next mount call records the mount again', async () => {
    const directory = stage.podDirectory('first')
    expect(await stage.heal()).toEqual([
      {
        directory,
        pod: '',
        state: 'unknown',
        action: 'none',
        reason: expect.stringContaining('mounted without a record'),
        code: 'mount-unrecorded',
      },
    ])
    await mount('first', '2000')
    expect(await stage.heal()).toMatchObject([{ directory, state: 'healthy', action: 'none' }])
    expect(stage.layers('first')).toHaveLength(1)
  })

  it("is reported once if a bind mount shows kubelet's directory a second time", async () => {
    await mount('first', '2000')
    const { inodes, mounts } = stage.host
    const copy = `${stage.top}/copy/pods/first/volumes/modekeep~fs/v`
    stage.fs.mkdirSync(copy, { recursive: true })
    const [shown, target] = [inodes.openTrusted(stage.podDirectory('first')), inodes.openTrusted(copy)]
    const tree = mounts.cloneTree(shown)
    mounts.attach(tree, target)
    try {
      expect(await stage.heal()).toHaveLength(1)
      await expect(mount('second', '3000')).rejects.toThrow('the volume belongs to group 2000')
    } finally {
      for (const handle of [shown, target, tree]) inodes.close(handle)
      const above = inodes.openTrusted(dirname(copy))
      mounts.detach(above, Buffer.from('v'))
      inodes.close(above)
    }
  })

  it("does not affect other volumes, or mounts outside of kubelet's directories", async () => {
    const other = `${stage.top}/volumes/other`
    makeTree(stage.fs, other, ['file a 0640 7'])
    await stage.mount('second', { source: other, ownership: 'walk', 'kubernetes.io/fsGroup': '3000' })
    expect(stage.layers('second')).toHaveLength(1)
  })
})
