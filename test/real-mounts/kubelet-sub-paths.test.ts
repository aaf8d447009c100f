import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import type { Handle, Host, MountOperations } from '../../src/kernel/host.ts'
import { linuxHost } from '../../src/kernel/linux/index.ts'
import { readMountLayers } from '../../src/kernel/mount-table/mountinfo.ts'
import { healSubPaths, listSubPathDirectories, type SubPathFinding } from '../../src/repair/sub-paths.ts'
import { write } from '../helpers/atomic-writer.ts'
import { createKubeletPod, type KubeletPod, unmountBelow } from '../helpers/kubelet-pod.ts'
import { readInLoop } from '../helpers/reader.ts'
import { createRuntimeBind } from '../helpers/runtime-bind.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'

const ONE = { config: 'one', 'dir/config': 'one' }
const TWO = { config: 'two', 'dir/config': 'two' }
const VOLUMES = [
  ['a ConfigMap on disk', 'configmap', 'disk'],
  ['a Secret in a tmpfs', 'secret', 'tmpfs'],
  ['a projected volume in a tmpfs', 'projected', 'tmpfs'],
  ['a downward API volume on disk', 'downward-api', 'disk'],
] as const

onKernelStages("kubelet's subPath binds after an atomic update", (open) => {
  let stage: Stage
  let pod: KubeletPod
  beforeEach(() => {
    stage = open()
    pod = createKubeletPod(stage.top)
    onTestFinished(() => {
      unmountBelow(stage.top)
      stage.close()
    })
  })

  const heal = (options = { dryRun: false }, host: Host = linuxHost): SubPathFinding[] =>
    healSubPaths({ host, config: stage.config, note: () => {}, warn: () => {} }, pod.kubeletDir, options)
  const layers = (path: string) => readMountLayers(linuxHost, path)
  const read = (path: string) => fs.readFileSync(path, 'utf8')

  /** A volume of one configuration, and binds of it; then the other configuration. */
  function flipped(plugin: string, on: 'disk' | 'tmpfs', subPaths: readonly string[], options?: string) {
    const volume = pod.volume(plugin, 'settings', on)
    write(volume, ONE)
    const binds = subPaths.map((subPath) => pod.bind(volume, subPath, options))
    write(volume, TWO)
    return { volume, binds, bind: binds[0] ?? '' }
  }

  it.each(VOLUMES)(
    'are healed to show the current file and directory, and can be bound again: %s',
    (_what, plugin, on) => {
      const { volume, binds } = flipped(plugin, on, ['config', 'dir', 'dir/config', '..data'])
      const [file = '', directory = '', inner = '', whole = ''] = binds
      expect([read(file), fs.readdirSync(directory), read(inner)]).toEqual(['one', [], 'one'])
      expect(heal()).toEqual(
        [
          [file, 'config'],
          [directory, 'dir'],
          [inner, 'dir/config'],
          [whole, '..data'],
        ].map(([mountPoint, subPath]) => ({
          mountPoint,
          source: `${volume}/${subPath}`,
          action: 'replaced',
          reason: 'its source was deleted when the volume changed',
        })),
      )
      expect([read(file), read(`${directory}/config`), read(inner), read(`${whole}/config`)]).toEqual(
        Array(4).fill('two'),
      )
      for (const mountPoint of binds) expect(layers(mountPoint)).toHaveLength(1)
      const bind = createRuntimeBind()
      fs.writeFileSync(`${stage.top}/file`, '')
      fs.mkdirSync(`${stage.top}/directory`)
      expect(bind(file, `${stage.top}/file`)).toBe('ok')
      expect(bind(directory, `${stage.top}/directory`, true)).toBe('ok')
      expect([read(`${stage.top}/file`), read(`${stage.top}/directory/config`)]).toEqual(['two', 'two'])
      expect(heal()).toEqual([])
    },
  )

  it('are healed after every update, and their volumes are watched', () => {
    const { volume, bind } = flipped('configmap', 'disk', ['config'])
    for (const content of ['three', 'four', 'five']) {
      expect(heal()).toMatchObject([{ action: 'replaced' }])
      write(volume, { config: content })
    }
    expect(heal()).toMatchObject([{ action: 'replaced' }])
    expect(read(bind)).toBe('five')
    const session = { host: linuxHost, config: stage.config, note: () => {}, warn: () => {} }
    expect(listSubPathDirectories(session, pod.kubeletDir)).toEqual([volume])
  })

  it('keep the mount flags', () => {
    const options = 'ro,nosuid,nodev,noexec,noatime,nodiratime,nosymfollow'
    const { bind } = flipped('configmap', 'disk', ['config'], options)
    const before = layers(bind)[0]?.options
    expect(before).toEqual(expect.arrayContaining(options.split(',')))
    expect(heal()).toMatchObject([{ action: 'replaced' }])
    expect(layers(bind)[0]?.options.toSorted()).toEqual(before?.toSorted())
  })

  it('are not changed by a dry run', () => {
    const { bind } = flipped('secret', 'tmpfs', ['config'])
    const before = linuxHost.mounts.table()
    expect(heal({ dryRun: true })).toMatchObject([{ mountPoint: bind, action: 'replaced' }])
    expect(linuxHost.mounts.table()).toBe(before)
    expect(fs.existsSync(stage.config.stateDir)).toBe(false)
  })

  it('keep showing the old file to a process that has it open', () => {
    const { bind } = flipped('configmap', 'disk', ['config'])
    const held = fs.openSync(bind, 'r')
    onTestFinished(() => fs.closeSync(held))
    expect(heal()).toMatchObject([{ action: 'replaced' }])
    expect([fs.readFileSync(held, 'utf8'), read(bind)]).toEqual(['one', 'two'])
  })

  it.each([
    ['that a link leads out of the volume', 'config', '../../../../../../outside'],
    ['that an absolute link leads out of the volume', 'config', '/etc/hostname'],
    ['that is no longer in the volume', 'config', undefined],
  ])('are not healed for a subPath %s', (_what, subPath, link) => {
    fs.writeFileSync(`${stage.top}/outside`, 'secret')
    const { volume, bind } = flipped('configmap', 'disk', [subPath])
    fs.unlinkSync(`${volume}/${subPath}`)
    if (link) fs.symlinkSync(link, `${volume}/${subPath}`)
    const before = linuxHost.mounts.table()
    expect(heal()).toMatchObject([{ mountPoint: bind, action: 'none', reason: expect.any(String) }])
    expect(linuxHost.mounts.table()).toBe(before)
  })

  it('are not healed if a file has become a directory, or a directory a file', () => {
    const { volume, binds } = flipped('configmap', 'disk', ['config', 'dir'])
    write(volume, { 'config/inner': 'three', dir: 'three' })
    const before = linuxHost.mounts.table()
    expect(heal()).toMatchObject(binds.map((mountPoint) => ({ mountPoint, action: 'none' })))
    expect(linuxHost.mounts.table()).toBe(before)
  })

  it('are the only mounts that heal changes', () => {
    const volume = pod.volume('configmap', 'settings', 'disk')
    const mine = pod.volume('empty-dir', 'settings', 'disk')
    write(volume, ONE)
    write(mine, ONE)
    const ofEmptyDir = pod.bind(mine, 'config')
    const elsewhere = `${stage.top}/elsewhere`
    fs.writeFileSync(elsewhere, '')
    execFileSync('mount', ['--bind', fs.realpathSync(`${volume}/config`), elsewhere])
    const plain = `${volume}/plain`
    fs.writeFileSync(plain, 'plain')
    const undated = pod.bind(volume, 'plain')
    fs.unlinkSync(plain)
    write(volume, TWO)
    write(mine, TWO)
    const before = linuxHost.mounts.table()
    for (const path of [ofEmptyDir, elsewhere, undated]) expect(layers(path)[0]?.root).toMatch(/\/\/deleted$/)
    expect(heal()).toEqual([])
    expect(linuxHost.mounts.table()).toBe(before)
  })

  it('are left to a running heal', () => {
    const { bind } = flipped('configmap', 'disk', ['config'])
    let inner: SubPathFinding[] = []
    const mounts = {
      ...linuxHost.mounts,
      cloneTree(source: Handle) {
        inner = heal()
        return linuxHost.mounts.cloneTree(source)
      },
    }
    expect(heal({ dryRun: false }, { ...linuxHost, mounts })).toMatchObject([{ action: 'replaced' }])
    expect(inner).toMatchObject([{ mountPoint: bind, action: 'none', reason: 'another heal is at work' }])
    expect([read(bind), layers(bind).length]).toEqual(['two', 1])
  })

  it.each([
    ['before', 'table'],
    ['after', 'attachBeneath'],
  ] as const)('are left to kubelet if it unmounts one meanwhile, %s something was put there', (_when, call) => {
    const { bind } = flipped('configmap', 'disk', ['config'])
    const mounts = { ...linuxHost.mounts }
    mounts[call] = (...args: never[]) => {
      const result = (linuxHost.mounts[call] as (...args: never[]) => never)(...args)
      execFileSync('umount', ['-l', bind])
      return result
    }
    expect(heal({ dryRun: false }, { ...linuxHost, mounts })).toMatchObject([
      { action: 'none', reason: 'it has changed meanwhile' },
    ])
    expect(layers(bind)).toEqual([])
  })

  it('are healed on a kernel that cannot mount beneath', () => {
    const { bind } = flipped('configmap', 'disk', ['config'])
    const mounts = { ...linuxHost.mounts, attachBeneath: () => false }
    expect(heal({ dryRun: false }, { ...linuxHost, mounts })).toMatchObject([{ action: 'replaced' }])
    expect([read(bind), layers(bind).length]).toEqual(['two', 1])
  })

  it('show a reader old or new content at every moment', async () => {
    const { volume, bind } = flipped('secret', 'tmpfs', ['config'])
    const contents = ['one', ...Array.from({ length: 20 }, (_, turn) => `turn ${turn}`)]
    const reader = readInLoop(bind)
    await reader.more()
    for (const content of contents.slice(1)) {
      write(volume, { config: content })
      expect(heal()).toMatchObject([{ action: 'replaced' }])
      await reader.more()
    }
    expect((await reader.end()).sort()).toEqual(contents.sort())
  })

  it("are replaced without a gap on a shared mount, as kubelet's directory is one", () => {
    execFileSync('mount', ['--make-rshared', stage.top])
    const { bind } = flipped('configmap', 'disk', ['config'])
    const beneath: boolean[] = []
    const mounts: MountOperations = {
      ...linuxHost.mounts,
      attachBeneath: (tree, target) => {
        const done = linuxHost.mounts.attachBeneath(tree, target)
        beneath.push(done)
        return done
      },
    }
    expect(heal({ dryRun: false }, { ...linuxHost, mounts })).toMatchObject([{ action: 'replaced' }])
    expect([read(bind), layers(bind).length, beneath]).toEqual(['two', 1, [true]])
  })

  it("are found if kubelet's directory is behind a link, and none if it does not exist", () => {
    const { bind } = flipped('configmap', 'disk', ['config'])
    fs.symlinkSync(pod.kubeletDir, `${stage.top}/link`)
    const session = { host: linuxHost, config: stage.config, note: () => {}, warn: () => {} }
    expect(healSubPaths(session, `${stage.top}/nowhere`, { dryRun: false })).toEqual([])
    expect(healSubPaths(session, `${stage.top}/link`, { dryRun: false })).toMatchObject([
      { mountPoint: bind, action: 'replaced' },
    ])
  })
})
