import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { restoreNodeDirectory } from '../../src/fsgroup/volume-by-hand.ts'
import { listWatchedSourceDirectories } from '../../src/repair/watch.ts'
import { containerRecords } from '../../src/state/container-record.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { nriPluginRecord } from '../../src/state/process-records.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree } from '../helpers/tree.ts'

onKernelStages('a mapped mount', (open) => {
  let stage: Stage
  let source: string
  beforeEach(() => {
    stage = open()
    source = `${stage.top}/volumes/data`
    makeTree(stage.fs, source, ['dir . 2775 100', 'file one 0664 100', 'file other 0640 7', 'dir sub 2775 100'])
  })
  afterEach(() => stage.close())

  const idmap = (group: number, more: Record<string, string> = {}) => ({
    source,
    ownership: 'idmap',
    'kubernetes.io/fsGroup': String(group),
    ...more,
  })
  const walk = (group: number, more: Record<string, string> = {}) => ({ ...idmap(group, more), ownership: 'walk' })
  const shown = (pod: string) => groups(stage.shown(pod))
  const given = () => listReadableMountRecords(stage).map(({ given: { by, why } }) => ({ by, why }))

  /** Writes as a container of the pod would: another user, its group among the supplementary ones. */
  function writeAs(group: number, path: string): void {
    const program = 'require("node:fs").writeFileSync(process.argv[1], "x")'
    execFileSync('setpriv', [
      '--reuid=1234',
      '--regid=1234',
      `--groups=${group}`,
      process.execPath,
      '-e',
      program,
      path,
    ])
  }

  describe('of a pod whose user namespace kubelet reports after its first call', () => {
    const tellNamespace = (pod: string) => stage.fs.writeFileSync(`${stage.top}/pods/${pod}/userns`, '{}')
    const states = async (isDry = false) =>
      (await stage.heal(isDry)).map(({ state, action, reason }) => ({ state, action, reason }))
    const NAMESPACE = expect.stringContaining('user namespace')

    it('is replaced by a walk with auto, by heal or by the next mount', async () => {
      await stage.mount('a', { ...idmap(2000), ownership: 'auto', restoreOnUnmount: 'true' })
      expect(given()).toMatchObject([{ by: 'idmap' }])
      expect(listWatchedSourceDirectories(stage.session())).toContain(`${stage.top}/pods/a`)
      expect(await states()).toMatchObject([{ state: 'healthy' }])
      tellNamespace('a')
      expect(await states(true)).toEqual([{ state: 'stale', action: 'replaced', reason: NAMESPACE }])
      expect(await states()).toEqual([{ state: 'stale', action: 'replaced', reason: NAMESPACE }])
      expect(given()).toMatchObject([{ by: 'walk' }])
      expect(groups(listTree(stage.fs, source))).toEqual({ '.': 2000, one: 2000, other: 2000, sub: 2000 })
      expect(await states()).toMatchObject([{ state: 'healthy', action: 'none' }])
      await stage.mount('a', { ...idmap(2000), ownership: 'auto', restoreOnUnmount: 'true' })
      expect(given()).toMatchObject([{ by: 'walk' }])
      await stage.unmount('a')
      expect(groups(listTree(stage.fs, source))).toEqual({ '.': 100, one: 100, other: 7, sub: 100 })
    })

    it('is not replaced while another pod has the volume mapped, and heal reports why', async () => {
      await stage.mount('a', { ...idmap(2000), ownership: 'auto' })
      await stage.mount('b', idmap(3000))
      tellNamespace('a')
      const [first, second] = await states()
      expect(first).toEqual({
        state: 'stale',
        action: 'failed',
        reason: expect.stringContaining('belongs to group 100'),
      })
      expect(second).toMatchObject({ state: 'healthy' })
      expect(shown('b')).toMatchObject({ one: 3000 })
    })

    it('is refused with idmap and stays unchanged, and the message names the remedy', async () => {
      await stage.mount('a', idmap(2000))
      tellNamespace('a')
      const wayOut = expect.stringMatching(/hostUsers: false.*use "walk", or "auto"/)
      for (const isDry of [true, false])
        expect(await states(isDry)).toEqual([{ state: 'stale', action: 'failed', reason: wayOut }])
      await expect(stage.mount('a', idmap(2000))).rejects.toThrow(/hostUsers: false/)
      expect(stage.layers('a')).toHaveLength(1)
      await stage.mount('a', walk(2000))
      expect(await states()).toMatchObject([{ state: 'healthy' }])
    })

    it('stays if the NRI plugin replaces it by a clone, also while the plugin is down, until the container has ended', async () => {
      await stage.mount('a', { ...idmap(2000), ownership: 'auto' })
      tellNamespace('a')
      const plugin = stage.host.tryLock(`${stage.config.stateDir}/nri.lock`)
      const record = { isRegistered: true, runtime: 'containerd v2.1.9', since: 0, socket: '/run/nri.sock' }
      nriPluginRecord.write(stage, record)
      await stage.mount('b', idmap(3000))
      tellNamespace('b')
      expect(await states()).toMatchObject([{ state: 'healthy' }, { state: 'healthy' }])
      await stage.mount('b', idmap(3000))
      expect(given()).toMatchObject([{ by: 'idmap' }, { by: 'idmap' }])
      await stage.unmount('b')
      const pod = { namespace: 'shop', name: 'web', uid: 'a' }
      const about = { container: 'c', containerName: 'app', sandbox: 's', pod, kubeletDir: stage.top, at: 0 } as const
      const volume = { volume: 'v', destination: '/v', source: stage.podDirectory('a'), isOwn: true }
      containerRecords.write(stage, { ...about, boot: stage.host.bootId(), state: 'started', volumes: [volume] })
      plugin?.release()
      expect(await states()).toMatchObject([{ state: 'healthy' }])
      containerRecords.remove(stage, 'c')
      expect(await states()).toEqual([{ state: 'stale', action: 'replaced', reason: NAMESPACE }])
      expect(given()).toMatchObject([{ by: 'walk' }])
    })

    it("stays if nothing is mapped, as the group on disk is the pod's", async () => {
      await stage.mount('a', idmap(100))
      tellNamespace('a')
      expect(await states()).toMatchObject([{ state: 'healthy', action: 'none' }])
    })
  })

  it('shows one volume to two pods with two groups', async () => {
    await stage.mount('a', idmap(2000))
    await stage.mount('b', idmap(3000))
    for (const [pod, group] of [
      ['a', 2000],
      ['b', 3000],
    ] as const) {
      expect(shown(pod)).toMatchObject({ '.': group, one: group, other: 7, sub: group })
      writeAs(group, `${stage.podDirectory(pod)}/of-${pod}`)
      writeAs(group, `${stage.podDirectory(pod)}/sub/of-${pod}`)
      writeAs(group, `${stage.podDirectory(pod)}/one`)
    }
    const onDisk = groups(listTree(stage.fs, source))
    expect(onDisk).toEqual({
      '.': 100,
      one: 100,
      other: 7,
      sub: 100,
      'of-a': 100,
      'of-b': 100,
      'sub/of-a': 100,
      'sub/of-b': 100,
    })
    for (const call of ['a', 'b'] as const) await stage.mount(call, idmap(call === 'a' ? 2000 : 3000))
    expect(stage.noted.decision).toBe('ready')
    expect(shown('a')['sub/of-b']).toBe(2000)
    expect(shown('b')['sub/of-a']).toBe(3000)
  })

  it('changes nothing on disk', async () => {
    const before = listTree(stage.fs, source)
    await stage.mount('a', idmap(2000))
    await stage.unmount('a')
    expect(listTree(stage.fs, source)).toEqual(before)
  })

  it('has no mapping if the group is the one on disk, or root', async () => {
    await stage.mount('a', idmap(100))
    expect(shown('a')).toMatchObject({ '.': 100, other: 7 })
    await stage.mount('b', idmap(0))
    expect(shown('b')).toMatchObject({ '.': 100, other: 7 })
    const rows = [...stage.layers('a'), ...stage.layers('b')]
    expect(rows.flatMap(({ options }) => options)).not.toContain('idmapped')
  })

  it('maps the group that idmapFrom names', async () => {
    stage.allow({ idmapFrom: ['7'] })
    await stage.mount('a', idmap(2000, { idmapFrom: '7' }))
    expect(shown('a')).toEqual({ '.': 100, one: 100, other: 2000, sub: 100 })
  })

  it("is replaced if the volume's group on disk changes", async () => {
    await stage.mount('a', idmap(2000))
    execFileSync('chgrp', ['-R', '101', source])
    expect(shown('a')['.']).toBe(101)
    await stage.mount('a', idmap(2000))
    expect(stage.noted).toMatchObject({ decision: 'replace', reason: 'the volume has another group on disk now' })
    expect(shown('a')['.']).toBe(2000)
    expect(stage.layers('a')).toHaveLength(1)
  })

  it('keeps other groups from walking the volume', async () => {
    await stage.mount('a', idmap(2000))
    await expect(stage.mount('b', walk(3000))).rejects.toThrow(/belongs to group 100 .*use ownership "idmap"/)
    await stage.mount('b', walk(100))
    await stage.unmount('a')
    await stage.mount('b', walk(3000))
  })

  it('is made next to a walk, and the restore waits for it', async () => {
    await stage.mount('a', walk(2000, { restoreOnUnmount: 'true' }))
    await stage.mount('b', idmap(3000))
    expect(shown('b')['.']).toBe(3000)
    await stage.unmount('a')
    expect(shown('b')['.']).toBe(3000)
    expect(groups(listTree(stage.fs, source))['.']).toBe(2000)
    await stage.unmount('b')
    expect(groups(listTree(stage.fs, source))).toEqual({ '.': 100, one: 100, other: 7, sub: 100 })
  })

  it('keeps a manual restore from running', async () => {
    await stage.mount('a', walk(2000))
    await stage.unmount('a')
    await stage.mount('b', idmap(3000))
    const restore = () => stage.byHand(source, restoreNodeDirectory)
    await expect(restore()).rejects.toThrow(/uses .* with group 2000 on disk.*delete that pod first/)
    expect(shown('b')['.']).toBe(3000)
    await stage.unmount('b')
    expect(await restore()).toMatchObject({ outcome: 'restored' })
    expect(groups(listTree(stage.fs, source))['.']).toBe(100)
  })

  it('is refused for a volume with an incomplete walk, and auto completes the walk', async () => {
    await stage.mount('a', walk(2000))
    await stage.unmount('a')
    for (const volume of stage.fs.readdirSync(`${stage.config.stateDir}/ownership`)) {
      const record = volumeRecords.read(stage, volume)
      if (record) volumeRecords.write(stage, { ...record, complete: false })
    }
    stage.fs.chownSync(source, 0, 100)
    await expect(stage.mount('a', idmap(3000))).rejects.toThrow(/a walk or a restore of it was not finished/)
    await stage.mount('a', { ...idmap(3000), ownership: 'auto' })
    expect(new Set(Object.values(groups(listTree(stage.fs, source))))).toEqual(new Set([3000]))
    expect(given()).toMatchObject([{ by: 'walk', why: expect.stringMatching(/not finished/) }])
  })

  it('cannot add permission bits, so auto walks for groupAccess "grant"', async () => {
    await stage.mount('a', { ...idmap(2000), ownership: 'auto', groupAccess: 'grant' })
    expect(given()).toMatchObject([{ by: 'walk' }])
    expect(shown('a')['.']).toBe(2000)
  })

  it('is the choice of auto if it is possible', async () => {
    await stage.mount('a', { ...idmap(2000), ownership: 'auto' })
    expect(shown('a')['.']).toBe(2000)
    expect(groups(listTree(stage.fs, source))['.']).toBe(100)
    expect(given()).toEqual([{ by: 'idmap', why: 'the file system maps groups' }])
  })

  it('is refused for an overlay, which is named, and auto walks it instead', async () => {
    const merged = overlay('merged')
    await expect(stage.mount('a', { ...idmap(2000), source: merged })).rejects.toThrow(/overlay/)
    expect(stage.layers('a')).toEqual([])
    await stage.mount('a', { ...idmap(2000), source: merged, ownership: 'auto' })
    expect(shown('a')).toEqual({ '.': 2000, one: 2000, other: 2000, sub: 2000 })
    expect(given()).toMatchObject([{ by: 'walk', why: expect.stringMatching(/overlay/) }])
    await stage.mount('a', { ...idmap(2000), source: merged, ownership: 'auto' })
    expect(stage.noted.decision).toBe('ready')
    await stage.unmount('a')
    execFileSync('umount', [merged])
  })

  it('leaves a read-only overlay without the group with auto, and reports why', async () => {
    const merged = overlay('merged')
    const asked = { ...idmap(2000), source: merged, ownership: 'auto', 'kubernetes.io/readwrite': 'ro' }
    await stage.mount('a', asked)
    expect(shown('a')['.']).toBe(100)
    expect(given()).toMatchObject([{ by: 'none', why: expect.stringMatching(/overlay/) }])
    await stage.unmount('a')
    execFileSync('umount', [merged])
  })

  it('of a tmpfs has the group', async () => {
    await stage.mount('a', { ownership: 'idmap', 'kubernetes.io/fsType': 'tmpfs', 'kubernetes.io/fsGroup': '2000' })
    expect(shown('a')).toEqual({ '.': 2000 })
  })

  function overlay(name: string): string {
    const at = (part: string) => `${stage.top}/volumes/${part}`
    for (const part of ['upper', 'work', name]) stage.fs.mkdirSync(at(part))
    stage.fs.chownSync(at('upper'), 0, 100)
    const options = `lowerdir=${source},upperdir=${at('upper')},workdir=${at('work')}`
    execFileSync('mount', ['-t', 'overlay', '-o', options, 'overlay', at(name)])
    return at(name)
  }
})
