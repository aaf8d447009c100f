import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runGarbageCollection } from '../../src/cli/commands/gc.ts'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { checkRootSetGidBits } from '../../src/cli/doctor/records.ts'
import { attachContainerClones } from '../../src/container/attach-clones.ts'
import type { CloneRequest } from '../../src/container/clone-request.ts'
import { releaseContainerClones } from '../../src/container/container-task.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { listRootSetGidVolumes } from '../../src/state/volume-record.ts'
import { UID } from '../container/node.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const title = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const POD_GROUP = 2000
const PLAIN = 'its root has no set-gid bit, so what root creates there does not get the group'

describe.skipIf(!isRoot)(`the group of new files in a volume${title}`, () => {
  let stage: Stage
  let source: string
  const clones = new Set<string>()

  beforeEach(() => {
    stage = kernelStage('ext4')
    source = `${stage.top}/volumes/data`
    fs.mkdirSync(source)
    fs.mkdirSync(`${stage.top}/kubelet/pods/${UID}`, { recursive: true })
    stage.allow({ setGid: 'root' })
  })
  afterEach(async () => {
    for (const container of clones) await releaseContainerClones(stage.session(), container, 'gone')
    clones.clear()
    const stagingMount = `${stage.config.stateDir}/nri/mounts`
    if (fs.existsSync(stagingMount)) execFileSync('umount', [stagingMount])
    stage.close()
  })

  const bit = (path = source) => (fs.statSync(path).mode & 0o2000) !== 0
  const options = (more: Record<string, string> = {}) => ({
    source,
    ownership: 'idmap',
    'kubernetes.io/fsGroup': String(POD_GROUP),
    ...more,
  })
  async function mountFor(pod: string, more: Record<string, string> = {}): Promise<string> {
    await stage.mount(pod, options(more))
    return stage.podDirectory(pod)
  }
  async function clone(over: Partial<CloneRequest> = {}, container = 'c1'): Promise<string> {
    const one: CloneRequest = {
      volume: 'data',
      destination: '/data',
      source,
      options: ['rbind', 'rw'],
      group: POD_GROUP,
      requestedBy: '',
      isOwn: false,
      grants: [{ fsTypes: ['ext4'], setGid: 'root', systemGroups: true }],
      ...over,
    }
    clones.add(container)
    const { mounts } = await attachContainerClones(stage.session(), {
      container,
      containerName: 'app',
      sandbox: '5a',
      pod: { namespace: 'default', name: 'web', uid: UID },
      hasUserNamespace: false,
      kubeletDir: `${stage.top}/kubelet`,
      clones: [one],
      isOptional: false,
    })
    const [outcome] = mounts
    if (outcome?.do !== 'replace') throw new Error(JSON.stringify(outcome))
    return outcome.source
  }
  function emptyDir(): string {
    const path = `${stage.top}/kubelet/pods/${UID}/volumes/kubernetes.io~empty-dir/scratch`
    fs.mkdirSync(path, { recursive: true })
    fs.chmodSync(path, 0o777)
    return path
  }

  /** Returns the groups, as the pod sees them, of files and directories that root and the pod's user create. */
  function create(directory: string): string {
    const users = { root: ['--reuid=0', '--regid=0'], user: ['--reuid=1000', '--regid=1000'] }
    return Object.entries(users)
      .map(([name, ids]) => {
        const script = `cd "$0" && touch ${name}-file && mkdir ${name}-dir && stat -c %g ${name}-file ${name}-dir`
        // Only root may search the directory of clones, so a container gets a mount of its own.
        const seen = `${stage.top}/container`
        fs.mkdirSync(seen, { recursive: true })
        execFileSync('mount', ['--bind', directory, seen])
        try {
          const args = [...ids, `--groups=${POD_GROUP}`, 'sh', '-c', script, seen]
          return `${name} ${execFileSync('setpriv', args, { encoding: 'utf8' }).trim().split('\n').join(',')}`
        } finally {
          execFileSync('umount', [seen])
        }
      })
      .join('; ')
  }
  const INHERITED = 'root 2000,2000; user 2000,2000'
  const NOT_INHERITED = 'root 0,0; user 1000,1000'

  const TABLE: [string, number, number, () => Promise<string>, string][] = [
    ['a walk', 1500, 0o770, () => mountFor('a', { ownership: 'walk' }), INHERITED],
    ['idmap, no set-gid', 1500, 0o770, () => mountFor('a'), NOT_INHERITED],
    ['idmap of group 0, no set-gid', 0, 0o770, () => mountFor('a'), NOT_INHERITED],
    ['idmap, set-gid on the root before', 1500, 0o2770, () => mountFor('a'), INHERITED],
    ['idmap, option setGid', 1500, 0o770, () => mountFor('a', { setGid: 'root' }), INHERITED],
    ['idmap of group 0, option setGid', 0, 0o770, () => mountFor('a', { setGid: 'root' }), INHERITED],
    ['idmap of a tmpfs', 0, 0o770, () => mountFor('a', { source: '', 'kubernetes.io/fsType': 'tmpfs' }), INHERITED],
    ['NRI, no set-gid', 1500, 0o770, () => clone(), NOT_INHERITED],
    ['NRI, set-gid on the root before', 1500, 0o2770, () => clone(), INHERITED],
    ['NRI, annotation set-gid', 1500, 0o770, () => clone({ setGid: 'requested' }), INHERITED],
    ['NRI, an emptyDir', 0, 0o770, () => clone({ source: emptyDir(), setGid: 'emptyDir' }), INHERITED],
  ]
  it.each(TABLE)('%s: group %i, mode %o', async (_title, group, mode, make, groups) => {
    fs.chownSync(source, 0, group)
    fs.chmodSync(source, mode)
    expect(create(await make())).toBe(groups)
  })

  it.each([
    ['of an emptyDir', INHERITED],
    ['of a volume with setGid', INHERITED],
  ])('is inherited in a directory that kubelet makes for a subPath: %s', async (what, groups) => {
    if (what === 'of an emptyDir') {
      const directory = emptyDir()
      const part = `${stage.top}/kubelet/pods/${UID}/volume-subpaths/scratch/app/0`
      fs.mkdirSync(`${directory}/part`, 0o777)
      fs.chmodSync(`${directory}/part`, 0o777)
      fs.mkdirSync(part, { recursive: true })
      execFileSync('mount', ['--bind', `${directory}/part`, part])
      try {
        expect(create(await clone({ source: part, setGid: 'emptyDir' }))).toBe(groups)
      } finally {
        await releaseContainerClones(stage.session(), 'c1', 'gone')
        execFileSync('umount', [part])
      }
      return
    }
    fs.chmodSync(source, 0o777)
    const directory = await mountFor('a', { setGid: 'root' })
    // kubelet runs as root and makes the directory through the volume's mount.
    fs.mkdirSync(`${directory}/part`)
    // The directory gets the mode of the root (kubernetes pkg/volume/util/subpath, doSafeMakeDir).
    fs.chmodSync(`${directory}/part`, fs.statSync(directory).mode & 0o7777)
    expect(fs.statSync(`${directory}/part`).gid).toBe(POD_GROUP)
    expect(fs.statSync(`${source}/part`).gid).toBe(0)
    expect(create(`${directory}/part`)).toBe(groups)
  })

  it('is no longer inherited after the last mapped mount and clone end, in any order', async () => {
    fs.chmodSync(source, 0o1770)
    await mountFor('a', { setGid: 'root' })
    await mountFor('b')
    await clone()
    expect([bit(), listRootSetGidVolumes(stage).length]).toEqual([true, 1])
    await stage.unmount('a')
    expect(bit()).toBe(true)
    await stage.unmount('b')
    expect(bit()).toBe(true)
    await releaseContainerClones(stage.session(), 'c1', 'gone')
    expect((fs.statSync(source).mode & 0o7777).toString(8)).toBe('1770')
    expect(listRootSetGidVolumes(stage)).toEqual([])
    await clone({ setGid: 'requested' }, 'c2')
    await mountFor('a')
    await releaseContainerClones(stage.session(), 'c2', 'gone')
    expect(bit()).toBe(true)
    await stage.unmount('a')
    expect([bit(), listRootSetGidVolumes(stage)]).toEqual([false, []])
  })

  it('is still inherited if the root had the set-gid bit before', async () => {
    fs.chmodSync(source, 0o2770)
    await mountFor('a', { setGid: 'root' })
    await stage.unmount('a')
    expect(bit()).toBe(true)
  })

  it('the set-gid bit of the root is not set through a read-only mount or clone', async () => {
    await mountFor('a', { setGid: 'root', 'kubernetes.io/readwrite': 'ro' })
    await clone({ setGid: 'requested', options: ['rbind', 'ro'] })
    expect([bit(), listRootSetGidVolumes(stage)]).toEqual([false, []])
  })

  it('the set-gid bit of the root is recorded before the change: after a crash between both, the next unmount removes the record', async () => {
    const { inodes } = stage.host
    const host = {
      ...stage.host,
      inodes: {
        ...inodes,
        chmod: () => {
          expect(listRootSetGidVolumes(stage)).toHaveLength(1)
          throw new Error('crashed')
        },
      },
    }
    const whole = stage.host
    stage.host = host
    await expect(mountFor('a', { setGid: 'root' })).rejects.toThrow('crashed')
    stage.host = whole
    expect([bit(), listRootSetGidVolumes(stage).length]).toEqual([false, 1])
    await mountFor('a')
    await stage.unmount('a')
    expect(listRootSetGidVolumes(stage)).toEqual([])
  })

  it('after a reboot gc restores the set-gid bit of a root, and doctor names the volume until then', async () => {
    await mountFor('a', { setGid: 'root' })
    stage.reboot()
    fs.rmSync(`${stage.config.stateDir}/mounts`, { recursive: true })
    expect([...checkRootSetGidBits(stage.session())]).toMatchObject([
      { text: expect.stringContaining('not removed yet') },
    ])
    await runGarbageCollection(stage.session(), { verb: 'gc', isDry: false, forget: undefined })
    expect([bit(), listRootSetGidVolumes(stage), [...checkRootSetGidBits(stage.session())]]).toEqual([false, [], []])
  })

  it('the set-gid option and annotation are refused without a rule that permits the set-gid bit', async () => {
    stage.allow({ setGid: true })
    await expect(mountFor('a', { setGid: 'root' })).rejects.toThrow('does not have setGid "root"')
    const grants = [{ fsTypes: ['ext4'], systemGroups: true }]
    await expect(clone({ setGid: 'requested', grants })).rejects.toThrow('may not have the set-gid bit on its root')
    expect(bit()).toBe(false)
  })

  it('if new files do not inherit the group, then reply, status and doctor name the remedy', async () => {
    fs.chmodSync(source, 0o775)
    await mountFor('a')
    await clone()
    expect(listReadableMountRecords(stage)).toMatchObject([
      { given: { by: 'idmap', why: expect.stringContaining(PLAIN) } },
    ])
    const { mounts, containers } = await readSelectedStatus(stage.session())
    expect(mounts).toMatchObject([{ why: expect.stringContaining('set option "setGid" to "root"') }])
    expect(containers).toMatchObject([{ reason: expect.stringContaining('annotation modekeep/set-gid "root"') }])
    expect([...checkRootSetGidBits(stage.session())]).toMatchObject([
      { level: 'warning', text: expect.stringContaining('mapped volumes whose root has no set-gid bit: 2') },
    ])
  })
})
