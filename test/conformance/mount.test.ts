import { afterEach, beforeEach, expect, it } from 'vitest'
import { addPathToErrors } from '../../src/kernel/system-error.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { onEveryStage, type Stage } from '../helpers/stage.ts'
import { makeTree, modes } from '../helpers/tree.ts'

onEveryStage('the mount transaction', (open) => {
  let stage: Stage
  beforeEach(() => {
    stage = open()
    makeTree(stage.fs, `${stage.top}/volumes/one`, ['file first 0644'])
    makeTree(stage.fs, `${stage.top}/volumes/two`, ['file second 0644'])
  })
  afterEach(() => stage.close())

  const bind = (name: string, more: Record<string, string> = {}) => ({
    source: `${stage.top}/volumes/${name}`,
    ...more,
  })
  const names = (pod: string) => Object.keys(stage.shown(pod)).sort()
  const records = () => listReadableMountRecords(stage)
  const stateLeft = () => stage.fs.readdirSync(`${stage.config.stateDir}/mounts`)

  it('shows the source with one layer for any number of calls', async () => {
    for (let call = 0; call < 4; call++) await stage.mount('a', bind('one'))
    expect(names('a')).toEqual(['.', 'first'])
    expect(stage.layers('a')).toHaveLength(1)
    expect(records()).toHaveLength(1)
  })

  it('leaves no record after an unmount, and a second unmount succeeds', async () => {
    await stage.mount('a', bind('one'))
    await stage.unmount('a')
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
    expect(names('a')).toEqual(['.'])
    expect(stateLeft()).toEqual([])
    stage.fs.rmdirSync(stage.podDirectory('a'))
    await stage.unmount('a')
    stage.fs.rmSync(`${stage.top}/pods`, { recursive: true })
    await stage.unmount('a')
    expect(stateLeft()).toEqual([])
  })

  it('replaces a mount whose source or options changed', async () => {
    await stage.mount('a', bind('one'))
    await stage.mount('a', bind('two'))
    expect(stage.noted).toMatchObject({ decision: 'replace', reason: 'the options changed' })
    expect(names('a')).toEqual(['.', 'second'])
    await stage.mount('a', bind('two', { mountOptions: 'noexec' }))
    expect(stage.noted.decision).toBe('replace')
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('replaces layers that others stacked by one correct mount', async () => {
    await stage.mount('a', bind('one'))
    stack('two')
    stack('two')
    expect(stage.layers('a')).toHaveLength(3)
    await stage.mount('a', bind('one'))
    expect(names('a')).toEqual(['.', 'first'])
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('removes all layers at unmount', async () => {
    await stage.mount('a', bind('one'))
    stack('two')
    stack('two')
    await stage.unmount('a')
    expect(stage.layers('a')).toEqual([])
  })

  it('mounts again after a reboot, and removes the records of pods that did not return', async () => {
    await stage.mount('a', bind('one'))
    await stage.mount('b', bind('one'))
    stage.reboot()
    await stage.mount('a', bind('one'))
    expect(stage.noted).toMatchObject({ decision: 'fresh', sweptRecords: 2 })
    expect(records().map(({ directory }) => directory)).toEqual([stage.podDirectory('a')])
    expect(stateLeft()).toHaveLength(1)
  })

  it('mounts a tmpfs with its size, mode and group, and never replaces it by an empty one', async () => {
    const options = { 'kubernetes.io/fsType': 'tmpfs', mountOptions: 'size=1m,mode=0770,gid=3000' }
    await stage.mount('a', { ...options, ownership: 'walk', 'kubernetes.io/fsGroup': '2000' })
    const shown = stage.shown('a')
    if (!stage.world) expect(modes(shown)['.']).toBe('2770')
    expect(shown['.']?.gid).toBe(2000)
    await expect(stage.mount('a', options)).rejects.toThrow(/would lose its files: delete the pod/)
    expect(stage.layers('a')).toHaveLength(1)
    await stage.unmount('a')
    expect(stage.fs.existsSync(`${stage.config.stateDir}/ownership`)).toBe(false)
  })

  it.each([
    ['a missing source', (top: string) => `${top}/volumes/none`, /does not exist on this node: create the directory/],
    ['a file', (top: string) => `${top}/volumes/one/first`, /is not a directory: name one/],
    ['a symbolic link', (top: string) => `${top}/volumes/link`, /has a symbolic link in its path/],
    ['a path through a link', (top: string) => `${top}/volumes/link/x`, /has a symbolic link in its path/],
    [
      'a directory outside the rules',
      (top: string) => `${top}/secret`,
      /does not have its source; its administrator can add a rule/,
    ],
    [
      'a name that only begins with an allowed directory',
      (top: string) => `${top}/volumes2`,
      /does not have its source; its administrator can add a rule/,
    ],
  ])('refuses %s as a source, and leaves no mount and no record', async (_, source, message) => {
    stage.fs.symlinkSync('/', `${stage.top}/volumes/link`)
    await expect(stage.mount('a', { source: source(stage.top) })).rejects.toThrow(message)
    expect(stage.layers('a')).toEqual([])
    expect(names('a')).toEqual(['.'])
    if (stage.fs.existsSync(`${stage.config.stateDir}/mounts`)) expect(stateLeft()).toEqual([])
  })

  it('undoes every step if the mount fails half-way', async () => {
    const { mounts } = stage.host
    stage.host.mounts = {
      ...mounts,
      attach: () => {
        throw new Error('no attach today')
      },
    }
    await expect(stage.mount('a', bind('one'))).rejects.toThrow('no attach today')
    stage.host.mounts = mounts
    expect(stage.layers('a')).toEqual([])
    expect(stateLeft()).toEqual([])
  })

  it('keeps the old mount and its record if a replacement fails', async () => {
    await stage.mount('a', bind('one'))
    const [before] = records()
    const { mounts } = stage.host
    stage.host.mounts = {
      ...mounts,
      attachBeneath: () => {
        throw new Error('not today')
      },
    }
    await expect(stage.mount('a', bind('two'))).rejects.toThrow('not today')
    stage.host.mounts = mounts
    expect(names('a')).toEqual(['.', 'first'])
    expect(records()).toEqual([before])
    await stage.mount('a', bind('one'))
    expect(stage.noted.decision).toBe('ready')
  })

  it('replaces a mount with a short gap on a kernel that cannot mount beneath', async () => {
    await stage.mount('a', bind('one'))
    stage.host.mounts = { ...stage.host.mounts, attachBeneath: () => false }
    await stage.mount('a', bind('two'))
    expect(names('a')).toEqual(['.', 'second'])
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('attaches the old mount again if a replacement with a gap fails', async () => {
    await stage.mount('a', bind('one'))
    const { mounts } = stage.host
    let attached = 0
    stage.host.mounts = {
      ...mounts,
      attachBeneath: () => false,
      attach(tree, target) {
        attached++
        if (attached === 1) throw new Error('not today')
        mounts.attach(tree, target)
      },
    }
    await expect(stage.mount('a', bind('two'))).rejects.toThrow('not today')
    stage.host.mounts = mounts
    expect(names('a')).toEqual(['.', 'first'])
    expect(stage.layers('a')).toHaveLength(1)
    await stage.mount('a', bind('two'))
    expect(names('a')).toEqual(['.', 'second'])
  })

  it('keeps the old mount if a replacement with a gap cannot detach it', async () => {
    await stage.mount('a', bind('one'))
    const { mounts } = stage.host
    stage.host.mounts = {
      ...mounts,
      attachBeneath: () => false,
      detach() {
        throw new Error('not today')
      },
    }
    await expect(stage.mount('a', bind('two'))).rejects.toThrow('not today')
    stage.host.mounts = mounts
    expect(names('a')).toEqual(['.', 'first'])
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('runs concurrent calls for one directory one after another: the first mounts, the others find the mount', async () => {
    await Promise.all(Array.from({ length: 8 }, () => stage.mount('a', bind('one'))))
    expect(stage.layers('a')).toHaveLength(1)
  })

  it.each(['EROFS', 'ENOSPC', 'EDQUOT', 'EIO'])(
    'unmounts despite %s from the state directory, with a warning',
    async (code) => {
      const { files, tryLock } = stage.host
      const fail = (path: string) =>
        addPathToErrors('use', path, () => {
          throw Object.assign(new Error(code), { code })
        })
      const broken: Partial<typeof files>[] = [
        { read: fail },
        { remove: fail },
        { makeDirectory: fail },
        { read: fail, replace: fail, remove: fail, makeDirectory: fail, list: fail },
      ]
      for (const calls of [{}, ...broken]) {
        await stage.mount('a', bind('one'))
        stage.host.files = { ...files, ...calls }
        if (calls === broken[0] || Object.keys(calls).length === 0) stage.host.tryLock = fail
        stage.warnings = []
        await stage.unmount('a')
        expect(stage.layers('a')).toEqual([])
        expect(stage.warnings).not.toEqual([])
        for (const warning of stage.warnings) expect(warning).toMatch('unmounting anyway: cannot use')
        Object.assign(stage.host, { files, tryLock })
      }
      await stage.mount('a', bind('two'))
      expect(names('a')).toEqual(['.', 'second'])
      await stage.unmount('a')
      expect(stateLeft()).toEqual([])
    },
  )

  it('does not unmount after an error of modekeep itself, which no disk returns', async () => {
    await stage.mount('a', bind('one'))
    stage.host.tryLock = () => {
      throw new Error('a fault of modekeep')
    }
    await expect(stage.unmount('a')).rejects.toThrow('a fault of modekeep')
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('closes every handle that it opened', async () => {
    if (!stage.world) return
    await stage.mount('a', bind('one'))
    await stage.mount('a', bind('two'))
    await stage.mount('a', bind('none')).catch(() => {})
    await stage.unmount('a')
    expect([...stage.world.handles.values()]).toEqual([])
  })

  function stack(name: string): void {
    const { inodes, mounts } = stage.host
    const source = inodes.openLinkFree(`${stage.top}/volumes/${name}`)
    const tree = mounts.cloneTree(source)
    const parent = inodes.openTrusted(stage.podDirectory('a').replace(/\/v$/, ''))
    const target = inodes.openEntry(parent, Buffer.from('v'))
    mounts.attach(tree, target)
    for (const handle of [source, tree, parent, target]) inodes.close(handle)
  }
})
