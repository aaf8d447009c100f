import { afterEach, beforeEach, expect, it } from 'vitest'
import { SystemError } from '../../src/kernel/host.ts'
import { refuseOtherMountNamespace } from '../../src/repair/state.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { listReadableMountRecords, mountRecords } from '../../src/state/mount-record.ts'
import { locateMountRecords } from '../../src/state/record-directories.ts'
import { onEveryStage, onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

onEveryStage('heal', (open) => {
  let stage: Stage
  let volumes: string
  beforeEach(() => {
    stage = open()
    volumes = `${stage.top}/volumes`
    makeTree(stage.fs, `${volumes}/one`, ['file first 0644'])
    makeTree(stage.fs, `${volumes}/two`, ['file second 0644'])
  })
  afterEach(() => stage.close())

  const names = (pod: string) => Object.keys(stage.shown(pod)).sort()
  const records = () => listReadableMountRecords(stage)
  const outcomes = async (isDry = false) => (await stage.heal(isDry)).map(({ state, action }) => `${state}, ${action}`)

  /** As heal sees it before, with what it then does, which is done once. */
  async function heals(outcome: string): Promise<void> {
    const before = stage.layers('a')
    expect(await outcomes(true)).toEqual([outcome])
    expect(stage.layers('a')).toEqual(before)
    expect(await outcomes()).toEqual([outcome])
  }

  it('finds a healthy mount, and changes nothing', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    const [layer] = stage.layers('a')
    await heals('healthy, none')
    expect(stage.layers('a')).toEqual([layer])
  })

  it('remounts a volume whose rule was withdrawn, and a new mount is refused', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    unmountByHand('a')
    stage.allow({ sources: ['/elsewhere/*'] })
    await heals('missing, mounted')
    expect(stage.layers('a')).toHaveLength(1)
    await stage.mount('a', { source: `${volumes}/one` })
    await expect(stage.mount('b', { source: `${volumes}/one` })).rejects.toThrow('does not have its source')
    await stage.unmount('a')
    await expect(stage.mount('a', { source: `${volumes}/one` })).rejects.toThrow('does not have its source')
  })

  it('remounts a volume that was unmounted by hand', async () => {
    await stage.mount('a', { source: `${volumes}/one`, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    unmountByHand('a')
    await heals('missing, mounted')
    expect(groups(stage.shown('a'))).toEqual({ '.': 2000, first: 2000 })
    await heals('healthy, none')
  })

  it('reduces a source that was mounted twice to one layer', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    mountOver('a', 'one')
    mountOver('a', 'one')
    await heals('stale, replaced')
    expect(stage.layers('a')).toHaveLength(1)
    await heals('healthy, none')
  })

  it('does not change a mount of another source that covers the recorded mount', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    mountOver('a', 'two')
    await heals('unknown, none')
    expect(names('a')).toEqual(['.', 'second'])
    expect(stage.layers('a')).toHaveLength(2)
  })

  it('completes a call that was interrupted before its mount', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    const [record] = records()
    unmountByHand('a')
    if (record) mountRecords.write(stage, { ...record, mounted: undefined })
    await heals('interrupted, mounted')
    expect(names('a')).toEqual(['.', 'first'])
    await heals('healthy, none')
  })

  it.each([1, 2])('completes a replacement that was interrupted with %i mounts at the directory', async (layers) => {
    await stage.mount('a', { source: `${volumes}/one` })
    await stage.mount('a', { source: `${volumes}/two` })
    const [record] = records()
    if (!record?.mounted) throw new Error('no record')
    // The record of the new mount is written before it comes beneath the old one.
    if (layers === 2) mountOver('a', 'one')
    const replaces = topMountId('a')
    const mounted = { ...record.mounted, mountId: 'of the new one' }
    mountRecords.write(stage, { ...record, mounted, replaces: { mountId: replaces } })
    await heals('interrupted, replaced')
    expect(names('a')).toEqual(['.', 'second'])
    expect(stage.layers('a')).toHaveLength(1)
    await heals('healthy, none')
  })

  it("removes the record of a deleted pod without an unmount, and runs the volume's pending restore", async () => {
    const asked = { ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    await stage.mount('a', { source: `${volumes}/one`, ...asked })
    unmountByHand('a')
    stage.fs.rmSync(`${stage.top}/pods/a`, { recursive: true })
    expect(await outcomes(true)).toEqual(['orphaned, forgotten'])
    expect(groups(listTree(stage.fs, `${volumes}/one`))).toEqual({ '.': 2000, first: 2000 })
    expect(await outcomes()).toEqual(['orphaned, forgotten'])
    expect(groups(listTree(stage.fs, `${volumes}/one`))).toEqual({ '.': 0, first: 0 })
    expect(records()).toEqual([])
  })

  it('removes the records of an earlier boot', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    stage.reboot()
    await heals('missing, forgotten')
    expect(records()).toEqual([])
  })

  it('keeps the record of a mount whose repair failed', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    unmountByHand('a')
    const { mounts } = stage.host
    stage.host.mounts = {
      ...mounts,
      attach() {
        throw new Error('not today')
      },
    }
    expect(await stage.heal()).toMatchObject([{ state: 'missing', action: 'failed', reason: 'not today' }])
    stage.host.mounts = mounts
    expect(records()).toMatchObject([{ mounted: {} }])
    await heals('missing, mounted')
  })

  it('releases its lock after any error', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    unmountByHand('a')
    const { inodes } = stage.host
    let opened = 0
    stage.host.inodes = {
      ...inodes,
      openTrusted(path) {
        // The first look is without the lock.
        if (++opened > 1) throw new SystemError('openat', 'ELOOP', path)
        return inodes.openTrusted(path)
      },
    }
    expect(await outcomes()).toEqual(['missing, failed'])
    stage.host.inodes = inodes
    await stage.mount('a', { source: `${volumes}/one` })
    expect(names('a')).toEqual(['.', 'first'])
  })

  it('does not wait for the lock of a healthy mount', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, stage.podDirectory('a')))
    expect(await outcomes()).toEqual(['healthy, none'])
    lock?.release()
  })

  it('is refused in a mount namespace that does not show the mounts', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    refuseOtherMountNamespace(stage.session())
    stage.host.mountNamespace = () => 'mnt:[7]'
    expect(() => refuseOtherMountNamespace(stage.session())).toThrow(
      /this is mnt:\[7\]\): run it in kubelet's.*nsenter/,
    )
  })

  it('restores nothing after a reboot, as the pods return', async () => {
    const asked = { ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }
    await stage.mount('a', { source: `${volumes}/one`, ...asked })
    stage.reboot()
    await heals('missing, none')
    expect(groups(listTree(stage.fs, `${volumes}/one`))).toEqual({ '.': 2000, first: 2000 })
    await stage.mount('a', { source: `${volumes}/one`, ...asked })
    await stage.unmount('a')
    expect(groups(listTree(stage.fs, `${volumes}/one`))).toEqual({ '.': 0, first: 0 })
  })

  it('removes records after a reboot if nothing can be restored', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    stage.reboot()
    await heals('missing, forgotten')
    expect(records()).toEqual([])
  })

  it('skips a mount that a running call has locked', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    const lock = tryLockRecordDirectory(stage, locateMountRecords(stage, stage.podDirectory('a')))
    unmountByHand('a')
    await heals('in progress, none')
    lock?.release()
    await heals('missing, mounted')
  })

  function topMountId(pod: string): string {
    const { inodes } = stage.host
    const parent = inodes.openTrusted(stage.podDirectory(pod).replace(/\/v$/, ''))
    const { mountId } = inodes.statEntry(parent, Buffer.from('v'))
    inodes.close(parent)
    return String(mountId)
  }

  function unmountByHand(pod: string): void {
    const { inodes, mounts } = stage.host
    const parent = inodes.openTrusted(stage.podDirectory(pod).replace(/\/v$/, ''))
    mounts.detach(parent, Buffer.from('v'))
    inodes.close(parent)
  }

  function mountOver(pod: string, name: string): void {
    const { inodes, mounts } = stage.host
    const source = inodes.openLinkFree(`${volumes}/${name}`)
    const tree = mounts.cloneTree(source)
    const parent = inodes.openTrusted(stage.podDirectory(pod).replace(/\/v$/, ''))
    const target = inodes.openEntry(parent, Buffer.from('v'))
    mounts.attach(tree, target)
    for (const handle of [source, tree, parent, target]) inodes.close(handle)
  }
})

onKernelStages('heal, for deleted sources', (open) => {
  let stage: Stage
  let volumes: string
  beforeEach(() => {
    stage = open()
    volumes = `${stage.top}/volumes`
    makeTree(stage.fs, `${volumes}/one`, ['file first 0644'])
  })
  afterEach(() => stage.close())

  const names = (pod: string) => Object.keys(stage.shown(pod)).sort()
  const outcomes = async (isDry = false) => (await stage.heal(isDry)).map(({ state, action }) => `${state}, ${action}`)

  it('mounts a source that was deleted and created again', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    stage.fs.renameSync(`${volumes}/one`, `${volumes}/old`)
    makeTree(stage.fs, `${volumes}/one`, ['file anew 0644'])
    expect(await outcomes(true)).toEqual(['stale, replaced'])
    expect(names('a')).toEqual(['.', 'first'])
    expect(await outcomes()).toEqual(['stale, replaced'])
    expect(names('a')).toEqual(['.', 'anew'])
    expect(stage.layers('a')).toHaveLength(1)
    expect(await outcomes()).toEqual(['healthy, none'])
  })

  it('reports a missing source, and does not change the mount', async () => {
    await stage.mount('a', { source: `${volumes}/one` })
    stage.fs.renameSync(`${volumes}/one`, `${volumes}/old`)
    const [found] = await stage.heal()
    expect(found).toMatchObject({ state: 'stale', action: 'failed' })
    expect(found?.reason).toMatch(/does not exist on this node/)
    expect(names('a')).toEqual(['.', 'first'])
    expect(listReadableMountRecords(stage)).toHaveLength(1)
  })
})
