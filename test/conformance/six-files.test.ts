import { afterEach, beforeEach, expect, it } from 'vitest'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'

onEveryStage('the six files of the example volume', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, SIX_FILES)
  })
  afterEach(() => stage.close())

  const asked = () => ({
    'kubernetes.io/mounterArgs.FsGroup': '2000',
    'kubernetes.io/readwrite': 'rw',
    ownership: 'walk',
    source,
  })

  it('keep their modes and get the group; a restart, a second pod and a reboot change nothing', async () => {
    const before = listTree(stage.fs, source)
    await stage.mount('a', asked())
    const mounted = stage.shown('a')
    expect(modes(mounted)).toEqual({ ...modes(before), '.': '2755' })
    expect(new Set(Object.values(groups(mounted)))).toEqual(new Set([2000]))

    // A kubelet restart calls mount again while the pod runs.
    await stage.mount('a', asked())
    expect(stage.noted.decision).toBe('ready')
    await stage.mount('b', asked())
    expect(listTree(stage.fs, source)).toEqual(mounted)

    stage.reboot()
    expect(stage.layers('a')).toEqual([])
    await stage.mount('a', asked())
    expect(stage.noted.decision).toBe('fresh')
    expect(stage.shown('a')).toEqual(mounted)
  })

  it('are not changed without ownership, for any fsGroup of the pod', async () => {
    const before = listTree(stage.fs, source)
    const { ownership: _, ...plain } = asked()
    await stage.mount('a', plain)
    expect(stage.shown('a')).toEqual(before)
  })

  it('are not changed if the volume is read-only, and cannot be written through the mount', async () => {
    const before = listTree(stage.fs, source)
    await stage.mount('a', { ...asked(), 'kubernetes.io/readwrite': 'ro' })
    expect(stage.shown('a')).toEqual(before)
    if (!stage.world) {
      expect(() => stage.fs.writeFileSync(`${stage.podDirectory('a')}/test6`, 'x')).toThrow(/EROFS/)
    }
  })

  it("have their first state after the last pod's unmount with restoreOnUnmount", async () => {
    const before = listTree(stage.fs, source)
    const restoring = { ...asked(), restoreOnUnmount: 'true' }
    await stage.mount('a', restoring)
    await stage.mount('b', restoring)
    await stage.unmount('a')
    expect(groups(listTree(stage.fs, source)).test1).toBe(2000)
    await stage.unmount('b')
    expect(groups(listTree(stage.fs, source))).toEqual(groups(before))
    expect(modes(listTree(stage.fs, source))).toEqual(modes(before))
    expect(stage.warnings).toEqual([])
  })
})
