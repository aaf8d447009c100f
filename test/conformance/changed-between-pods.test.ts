import { afterEach, beforeEach, expect, it } from 'vitest'
import { applyGroupToNodeDirectory, restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

onEveryStage('a volume whose root others changed between two pods', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['file a 0640 7', 'dir d 0750 8', 'file d/b 0640 9'])
  })
  afterEach(() => stage.close())

  const mount = (pod: string, group = '2000', more: Record<string, string> = {}) =>
    stage.mount(pod, { source, ownership: 'walk', 'kubernetes.io/fsGroup': group, ...more })
  const now = () => groups(listTree(stage.fs, source))
  const state = async (pod: string) => (await stage.heal()).find(({ directory }) => directory.includes(`/${pod}/`))

  /** As `chown -R`. */
  function give(uid: number, gid: number): void {
    for (const name of Object.keys(now())) stage.fs.chownSync(`${source}/${name}`, uid, gid)
    stage.fs.chownSync(source, uid, gid)
  }

  async function useOnce(pod: string): Promise<Record<string, number>> {
    const before = now()
    await mount(pod)
    await stage.unmount(pod)
    return before
  }

  it("is refused if the pod's group has no access, and one command restores it", async () => {
    stage.fs.chmodSync(source, 0o770)
    const before = await useOnce('a')
    give(0, 0)
    const why = `the root of ${source} was changed since modekeep applied the pod's group: it is 0:0 2770 now`
    const way = `"modekeep apply DIR --fsgroup 2000 --force", DIR being ${source}`
    for (let call = 0; call < 2; call++) {
      await expect(mount('b')).rejects.toThrow(why)
      await expect(mount('b')).rejects.toThrow(way)
      expect(new Set(Object.values(now()))).toEqual(new Set([0]))
      expect(stage.layers('b')).toEqual([])
    }
    const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch' } as const
    const unforced = await stage.byHand(source, (session, opened) =>
      applyGroupToNodeDirectory(session, opened, fsGroup),
    )
    expect(unforced?.left['changed since by its user']?.count).toBeGreaterThan(1)
    const forced = { ...fsGroup, isForced: true }
    const report = await stage.byHand(source, (session, opened) => applyGroupToNodeDirectory(session, opened, forced))
    expect(report?.left['changed since by its user']).toBeUndefined()
    await mount('b')
    expect(new Set(Object.values(now()))).toEqual(new Set([2000]))
    expect(await state('b')).toMatchObject({ state: 'healthy', reason: '' })
    await stage.unmount('b')
    await stage.byHand(source, (session, opened) => restoreNodeDirectory(session, opened))
    expect(now()).toEqual(before)
  })

  it('gets another group by a walk, and the restore returns the first state', async () => {
    stage.fs.chmodSync(source, 0o770)
    await useOnce('a')
    give(0, 0)
    await expect(mount('b')).rejects.toThrow('was changed since modekeep applied')
    stage.fs.chmodSync(source, 0o770)
    await mount('c', '3000')
    expect(stage.fs.statSync(source).gid).toBe(3000)
  })

  it('is mounted again after the group of its root was changed back by hand', async () => {
    stage.fs.chmodSync(source, 0o770)
    await useOnce('a')
    give(0, 0)
    await expect(mount('b')).rejects.toThrow('was changed since modekeep applied')
    give(0, 2000)
    await mount('b')
    expect(await state('b')).toMatchObject({ state: 'healthy', reason: '' })
  })

  it.each([
    ['another user', 0o777, 999, 999],
    ['another group', 0o777, 0, 999],
    ['root', 0o777, 0, 0],
  ])(
    'keeps the mount and makes its state "changed" if others may use the root that now belongs to %s',
    async (_, mode, uid, gid) => {
      stage.fs.chmodSync(source, mode)
      await useOnce('a')
      give(uid, gid)
      await mount('b')
      expect(new Set(Object.values(now()))).toEqual(new Set([gid]))
      expect(await state('b')).toMatchObject({
        state: 'changed',
        action: 'none',
        reason: expect.stringContaining('changed its root, among 4 of its files and directories'),
      })
    },
  )

  it.each([
    ['another user', 0o770, 999, 999],
    ['another group', 0o770, 0, 999],
    ['root', 0o755, 0, 0],
  ])("refuses a new mount if the pod's group cannot use the root that now belongs to %s", async (_, mode, uid, gid) => {
    stage.fs.chmodSync(source, mode)
    await useOnce('a')
    give(uid, gid)
    await expect(mount('b')).rejects.toThrow(
      'cannot read, write and search it (group 2000 was applied to 0 of 4, changed',
    )
    expect(stage.layers('b')).toEqual([])
  })

  it('a mount is healthy if few of its files were changed since, and "changed" if many were', async () => {
    const many = Array.from({ length: 12 }, (_, n) => `file f${n} 0640 9`)
    makeTree(stage.fs, source, many)
    await useOnce('a')
    for (const [pod, changed, expected] of [
      ['b', ['f0', 'f1'], 'healthy'],
      ['c', many.map((spec) => spec.split(' ')[1] as string), 'changed'],
    ] as const) {
      for (const name of changed) stage.fs.chownSync(`${source}/${name}`, 999, 999)
      await mount(pod, '2000', { fsGroupChangePolicy: 'Always' })
      expect((await state(pod))?.state).toBe(expected)
    }
  })
})
