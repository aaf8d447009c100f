import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { makeImage } from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const NAMESPACE = 'kubernetes.io/pod.namespace'
const UID = '8c03f2a2-6d7e-4b5a-9f58-0c6a3c1f7b11'

describe.skipIf(!isRoot)(`a pod's author who requests another namespace's data${suiteTitle}`, () => {
  let stage: Stage
  let volumes: string
  beforeEach(() => {
    stage = kernelStage('ext4')
    volumes = `${stage.top}/volumes`
    stage.allow({ sources: [`${volumes}/{namespace}/*`], fsTypes: ['bind', 'ext4'] })
    makeTree(fs, `${volumes}/shop/data`, ['file secret 0640'])
    fs.chownSync(`${volumes}/shop/data/secret`, 0, 4242)
    makeTree(fs, `${volumes}/evil/data`, [])
  })
  afterEach(() => stage.close())

  const ask = (source: string, more: Record<string, string> = {}) =>
    stage.mount('a', { [NAMESPACE]: 'evil', source, ...more })
  const refused = async (source: string, more: Record<string, string>, words: RegExp | string) => {
    await expect(ask(source, more)).rejects.toThrow(words)
    expect(stage.layers('a')).toEqual([])
  }

  it("cannot mount another namespace's volume, or a directory that contains several volumes", async () => {
    for (const source of [`${volumes}/shop/data`, `${volumes}/shop`, volumes, '/etc', `${volumes}/evil`]) {
      await refused(source, {}, /^namespace "evil" may not have bind ".*does not have its source/)
    }
    await ask(`${volumes}/evil/data`)
    expect(stage.layers('a')).toHaveLength(1)
    await stage.unmount('a')
  })

  it('is refused a path with "..", a link of the pod, and a namespace that is a path', async () => {
    const own = `${volumes}/evil/data`
    fs.symlinkSync('../../shop/data', `${own}/link`)
    await refused(`${own}/../../shop/data`, {}, 'write an absolute path without ".."')
    await refused(`${own}/link`, {}, 'has a symbolic link in its path')
    await refused(`${own}`, { subPath: 'link' }, /link/)
    for (const namespace of ['../volumes/shop', 'shop/data', '..', '.', '', '{namespace}', '*']) {
      const path = `${volumes}/${namespace}/data`
      await expect(ask(path, { [NAMESPACE]: namespace })).rejects.toThrow(/does not have its source|write an absolute/)
    }
  })

  it('gets the same refusal for existing and missing paths of the node', async () => {
    const said: string[] = []
    for (const source of ['/etc/shadow', '/etc/no-such-file', `${volumes}/shop/data`, `${volumes}/shop/none`]) {
      const error = await ask(source).catch((cause: Error) => cause)
      said.push(String((error as Error).message).replaceAll(source, 'X'))
    }
    expect(new Set(said).size).toBe(1)
  })

  it('cannot map the group of another namespace', async () => {
    const options = { ownership: 'idmap', 'kubernetes.io/fsGroup': '2000' }
    await refused(`${volumes}/evil/data`, { ...options, idmapFrom: '4242' }, 'idmapFrom 4242')
    stage.allow({ idmapFrom: ['100-200'] })
    await refused(`${volumes}/evil/data`, { ...options, idmapFrom: '4242' }, 'idmapFrom 4242')
    await ask(`${volumes}/evil/data`, { ...options, idmapFrom: '150' })
    await stage.unmount('a')
  })

  it("cannot write kubelet's keys to pass for another pod", async () => {
    const directory = stage.podDirectory(UID)
    fs.mkdirSync(directory, { recursive: true })
    const options = { [NAMESPACE]: 'evil', source: `${volumes}/evil/data` }
    const other = { ...options, 'kubernetes.io/pod.uid': '00000000-6d7e-4b5a-9f58-0c6a3c1f7b11' }
    await expect(stage.mount(UID, other)).rejects.toThrow(`the mount directory is that of pod ${UID}`)
    await expect(stage.mount(UID, options)).rejects.toThrow(`the mount directory is that of pod ${UID}`)
    await stage.mount(UID, { ...options, 'kubernetes.io/pod.uid': UID })
    await stage.unmount(UID)
  })

  it('cannot mount an image that the pod can write, under any name', async () => {
    const ext4 = { 'kubernetes.io/fsType': 'ext4' }
    const own = `${volumes}/evil/data`
    makeImage(`${own}/image`, 'ext4')
    await refused(`${own}/image`, ext4, 'may be written by pods')
    // Beside the directories that pods may mount; then with a name in one.
    fs.renameSync(`${own}/image`, `${volumes}/evil/image`)
    fs.linkSync(`${volumes}/evil/image`, `${own}/image`)
    await refused(`${volumes}/evil/image`, ext4, 'has 2 names (hard links)')
    fs.rmSync(`${own}/image`)
    await ask(`${volumes}/evil/image`, ext4)
    await stage.unmount('a')
    // Where no rule lets pods write, but by a mount that shows the same elsewhere.
    fs.renameSync(`${volumes}/evil/image`, `${own}/image`)
    const elsewhere = `${stage.top}/images`
    fs.mkdirSync(elsewhere)
    execFileSync('mount', ['--bind', own, elsewhere])
    stage.config = {
      ...stage.config,
      allow: [...stage.config.allow, { sources: [`${elsewhere}/*`], fsTypes: ['ext4'] }],
    }
    await refused(`${elsewhere}/image`, ext4, 'may be written by pods')
    execFileSync('umount', [elsewhere])
    fs.renameSync(`${own}/image`, `${volumes}/evil/image`)
    // No rule lets it any more, but an existing mount does.
    fs.mkdirSync(`${volumes}/evil/data/deep`)
    fs.renameSync(`${volumes}/evil/image`, `${own}/deep/image`)
    await stage.mount('b', { [NAMESPACE]: 'evil', source: own })
    stage.config = { ...stage.config, allow: [{ sources: [`${own}/deep/*`], fsTypes: ['ext4'] }] }
    await refused(`${own}/deep/image`, ext4, 'may be written by pod evil')
    // Nor where the node has lost it: the pod's containers have not, and a repair mounts it again.
    execFileSync('umount', [stage.podDirectory('b')])
    await refused(`${own}/deep/image`, ext4, 'may be written by pod evil')
    await stage.unmount('b')
    await ask(`${own}/deep/image`, ext4)
    await stage.unmount('a')
  })

  it('gets no set-gid directories from a walk or from heal if the rule forbids them', async () => {
    const source = `${volumes}/evil/data`
    makeTree(fs, `${source}/sub`, [])
    const walk = { ownership: 'walk', groupAccess: 'grant', 'kubernetes.io/fsGroup': '2000' }
    stage.allow({ setGid: false })
    await ask(source, walk)
    const setGid = () => [source, `${source}/sub`].map((path) => (fs.statSync(path).mode & 0o2000) !== 0)
    expect(fs.statSync(`${source}/sub`).gid).toBe(2000)
    expect(setGid()).toEqual([false, false])
    await ask(source, walk)
    expect(stage.noted.decision).toBe('ready')
    stage.allow({ setGid: true })
    execFileSync('umount', [stage.podDirectory('a')])
    expect((await stage.heal()).map(({ action }) => action)).toEqual(['mounted'])
    expect(setGid()).toEqual([false, false])
    await stage.unmount('a')
    await ask(source, { ...walk, fsGroupChangePolicy: 'Always' })
    expect(setGid()).toEqual([true, true])
    await stage.unmount('a')
  })

  it('keeps the mount when its rule is withdrawn, and gets no new mount', async () => {
    const source = `${volumes}/evil/data`
    await ask(source)
    stage.config = { ...stage.config, allow: [] }
    await ask(source)
    expect(stage.noted.decision).toBe('ready')
    expect((await stage.heal()).map(({ state }) => state)).toEqual(['healthy'])
    await expect(ask(source, { mountOptions: 'noatime' })).rejects.toThrow('it has no rule')
    expect(stage.layers('a')).toHaveLength(1)
    await stage.unmount('a')
    await refused(source, {}, 'it has no rule')
  })
})

it("a node without a configuration allows a pod only volumes below its namespace's directory", () => {
  expect(DEFAULT_CONFIG.allow).toEqual([{ sources: ['/var/lib/modekeep/volumes/{namespace}/*'] }])
})
