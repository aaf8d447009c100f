import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { checkRecordedMounts } from '../../src/cli/doctor/records.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { SOCKET_TYPE } from '../../src/kernel/host.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { collectGarbage } from '../../src/repair/garbage.ts'
import { healMounts } from '../../src/repair/heal.ts'
import { KubeletPods } from '../../src/repair/kubelets.ts'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { listLeftLoopDevices, listLoopDevices, makeImage } from '../helpers/disks.ts'
import { unmountBelow } from '../helpers/kubelet-pod.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const UID = '11111111-1111-4111-8111-111111111111'
const PROXY = '22222222-2222-4222-8222-222222222222'

describe.skipIf(!isRoot)(`the subPath binds of a volume (${isRoot ? 'as root' : 'skipped: mounts need root'})`, () => {
  let stage: Stage
  let pod: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    const { top, host } = stage
    pod = `${top}/pods/${UID}`
    const socket = `${top}/pod-resources/kubelet.sock`
    const logs = `${top}/logs`
    fs.mkdirSync(dirname(socket), { mode: 0o750 })
    fs.mkdirSync(`${logs}/kube-system_proxy_${PROXY}`, { recursive: true })
    const { files } = host
    host.runningPods = () => new Set([PROXY])
    host.files = {
      ...files,
      stat: (path) =>
        path === socket ? { dev: 1, ino: 7, uid: 0, gid: 0, mode: SOCKET_TYPE | 0o755 } : files.stat(path),
      born: (path) => (path === socket ? Number.MAX_SAFE_INTEGER : files.born(path)),
    }
    fs.mkdirSync(`${top}/volumes/one/sub`, { recursive: true })
    fs.writeFileSync(`${top}/volumes/one/file`, 'data\n')
  })
  afterEach(() => {
    unmountBelow(stage.top)
    stage.close()
  })

  const kubelets = () =>
    new KubeletPods({
      list: async () => ['kube-system/proxy'],
      intervalMs: 0,
      logs: `${stage.top}/logs`,
      lifetimeMs: 0,
    })
  const heal = async (isDry = false) =>
    (await healMounts(stage.session(), isDry, undefined, kubelets())).map(({ state, action, reason }) => ({
      state,
      action,
      reason,
    }))

  async function mountAt(end: string, more: Record<string, string> = {}): Promise<string> {
    const directory = `${pod}/volumes/${end}`
    fs.mkdirSync(directory, { recursive: true })
    const options = {
      source: `${stage.top}/volumes/one`,
      'kubernetes.io/pod.name': 'web-0',
      'kubernetes.io/pod.namespace': 'default',
      'kubernetes.io/pod.uid': UID,
      ...more,
    }
    await mountPodVolume(
      stage.session(),
      parseFlexVolumeRequest(directory, JSON.stringify(options), stage.config, volumeKindLookup),
    )
    return directory
  }

  /** Binds a part of a volume for a container as kubelet does. */
  function bind(directory: string, subPath: string, index = 0, name = 'v'): string {
    const path = `${pod}/volume-subpaths/${name}/main/${index}`
    fs.mkdirSync(dirname(path), { recursive: true })
    if (fs.statSync(`${directory}/${subPath}`).isDirectory()) fs.mkdirSync(path)
    else fs.writeFileSync(path, '')
    execFileSync('mount', ['--bind', `${directory}/${subPath}`, path])
    return path
  }

  const mountsBelow = (path: string) =>
    fs
      .readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(` ${path}/`))

  it.each(['modekeep~fs/v', 'kubernetes.io~csi/v/mount'])(
    'heal of a deleted pod unmounts its subPath binds, and leaves only directories that kubelet removes: %s',
    async (end) => {
      const directory = await mountAt(end)
      if (end.includes('csi')) fs.writeFileSync(`${dirname(directory)}/vol_data.json`, '{}')
      for (const [index, subPath] of ['sub', 'file'].entries()) bind(directory, subPath, index)
      expect(await heal()).toMatchObject([{ state: 'orphaned', action: 'unmounted' }])
      expect(mountsBelow(pod)).toEqual([])
      expect(fs.readdirSync(pod, { recursive: true })).toEqual(['volumes', `volumes/${end.split('/')[0]}`])
      expect(fs.readFileSync(`${stage.top}/volumes/one/file`, 'utf8')).toBe('data\n')
      expect(listReadableMountRecords(stage)).toEqual([])
    },
  )

  it('heal of a deleted pod with an image releases its loop device', async () => {
    makeImage(`${stage.top}/volumes/image`, 'ext4')
    stage.allow({ fsTypes: ['ext4'] })
    const directory = await mountAt('modekeep~fs/v', {
      source: `${stage.top}/volumes/image`,
      'kubernetes.io/fsType': 'ext4',
    })
    bind(directory, 'sub')
    expect(listLoopDevices(stage.top)).toHaveLength(1)
    expect(await heal()).toMatchObject([{ action: 'unmounted' }])
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  it('heal of a deleted pod reports an image that a process uses, until the use ends', async () => {
    makeImage(`${stage.top}/volumes/image`, 'ext4')
    stage.allow({ fsTypes: ['ext4'] })
    const directory = await mountAt('modekeep~fs/v', {
      source: `${stage.top}/volumes/image`,
      'kubernetes.io/fsType': 'ext4',
    })
    const user = fs.openSync(`${directory}/one`, 'r')
    try {
      expect(await heal()).toMatchObject([
        {
          state: 'busy',
          action: 'unmounted',
          reason: expect.stringContaining(`still in use by process ${process.pid}`),
        },
      ])
      expect(fs.existsSync(directory)).toBe(false)
      expect(await heal()).toMatchObject([{ state: 'busy', action: 'none' }])
      expect((await readSelectedStatus(stage.session())).mounts).toMatchObject([{ directory, state: 'busy' }])
    } finally {
      fs.closeSync(user)
    }
    expect(await heal()).toMatchObject([{ state: 'orphaned', action: 'forgotten' }])
    expect(listReadableMountRecords(stage)).toEqual([])
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  it('an unmount removes the binds of its volume, and no others', async () => {
    const directory = await mountAt('modekeep~fs/v')
    bind(directory, 'sub')
    const other = `${pod}/volumes/kubernetes.io~empty-dir/w`
    fs.mkdirSync(`${other}/sub`, { recursive: true })
    const othersBind = bind(other, 'sub', 0, 'w')
    await unmountPodVolume(stage.session(), directory)
    expect(mountsBelow(pod).map((line) => line.split(' ')[4])).toEqual([othersBind])
    expect(fs.readdirSync(`${pod}/volume-subpaths`)).toEqual(['w'])
  })

  it('an unmount keeps the bind of another volume of the pod with the same name', async () => {
    const directory = await mountAt('modekeep~fs/v')
    bind(directory, 'sub', 0)
    const other = `${pod}/volumes/kubernetes.io~empty-dir/v`
    fs.mkdirSync(`${other}/sub`, { recursive: true })
    const othersBind = bind(other, 'sub', 1)
    await unmountPodVolume(stage.session(), directory)
    expect(mountsBelow(pod).map((line) => line.split(' ')[4])).toEqual([othersBind])
    expect(stage.warnings).toEqual([])
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it('a mount that heal cannot remove is named by status, doctor and gc until it is removed', async () => {
    const directory = await mountAt('modekeep~fs/v')
    const path = bind(directory, 'sub')
    fs.writeFileSync(`${dirname(path)}/mine`, 'data of a user\n')
    const inWay = `${dirname(path)}/mine`
    expect(await heal()).toMatchObject([
      { state: 'orphaned', action: 'failed', reason: expect.stringContaining(inWay) },
    ])
    expect(mountsBelow(pod)).toEqual([])
    const { mounts } = await readSelectedStatus(stage.session())
    expect(mounts).toMatchObject([{ state: 'orphaned', reason: expect.stringContaining(inWay) }])
    const found = await Array.fromAsync(checkRecordedMounts(stage.session()))
    expect(JSON.stringify(found)).toContain(inWay)
    for (const isDry of [true, false]) {
      const items = await collectGarbage(stage.session(), { isDry, forget: undefined }, kubelets())
      expect(items).toMatchObject([{ kind: 'mount record', action: 'kept', reason: expect.stringContaining(inWay) }])
    }
    expect(fs.readFileSync(inWay, 'utf8')).toBe('data of a user\n')
    fs.rmSync(inWay)
    expect(await heal()).toMatchObject([{ state: 'orphaned', action: 'forgotten' }])
    expect(fs.readdirSync(pod, { recursive: true })).toEqual(['volumes', 'volumes/modekeep~fs'])
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it('heal names files below the mount point of a deleted pod', async () => {
    const directory = `${pod}/volumes/modekeep~fs/v`
    fs.mkdirSync(directory, { recursive: true })
    await mountAt('modekeep~fs/v')
    execFileSync('umount', [directory])
    fs.writeFileSync(`${directory}/written-below`, '')
    expect(await heal()).toMatchObject([
      { state: 'orphaned', action: 'failed', reason: expect.stringContaining(directory) },
    ])
    expect((await readSelectedStatus(stage.session())).mounts).toMatchObject([
      { reason: expect.stringContaining(directory) },
    ])
    fs.rmSync(`${directory}/written-below`)
    expect(await heal()).toMatchObject([{ action: 'forgotten' }])
    expect(fs.existsSync(directory)).toBe(false)
  })

  it("a mount whose unmount left files in the pod's directory is not remounted by heal", async () => {
    const directory = await mountAt('modekeep~fs/v')
    const path = bind(directory, 'sub')
    fs.writeFileSync(`${dirname(path)}/mine`, '')
    await unmountPodVolume(stage.session(), directory)
    expect(stage.warnings).toEqual([expect.stringContaining(`${dirname(path)}/mine`)])
    await heal()
    expect(mountsBelow(pod)).toEqual([])
    // Kubelet's next call mounts there as ever.
    await mountAt('modekeep~fs/v')
    expect(await heal(true)).toMatchObject([{ state: 'orphaned', action: 'unmounted' }])
    expect(mountsBelow(pod)).toHaveLength(1)
  })
})
