import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { checkRecordedMounts } from '../../src/cli/doctor/records.ts'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { publishVolume, unpublishVolume } from '../../src/frontends/csi/publish.ts'
import { SystemError } from '../../src/kernel/host.ts'
import { WORKER_PROCESS_NAME } from '../../src/kernel/worker-process.ts'
import { writeMetrics } from '../../src/metrics/expose.ts'
import { collectGarbage } from '../../src/repair/garbage.ts'
import { listReadableMountRecords, type MountRecord, mountRecords } from '../../src/state/mount-record.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import {
  attachDisk,
  DISK_TYPES,
  detachDisks,
  listLeftLoopDevices,
  listLoopDevices,
  makeImage,
} from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot)(`an unmount of a file system that is in use${suiteTitle}`, () => {
  let stage: Stage
  let image: string
  let monotonicMs: number
  let children: ChildProcess[]
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    image = `${stage.top}/volumes/image`
    children = []
    monotonicMs = stage.host.monotonicMs()
    stage.host.monotonicMs = () => monotonicMs
  })
  afterEach(async () => {
    for (const child of children) await end(child)
    detachDisks()
    stage.close()
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  async function mountImage(pod: string, fsType = 'ext4', more: Record<string, string> = {}): Promise<string> {
    if (!fs.existsSync(image)) makeImage(image, fsType as 'ext4')
    stage.allow({ fsTypes: [fsType, 'bind'] })
    await stage.mount(pod, { source: image, 'kubernetes.io/fsType': fsType, ...more })
    return stage.podDirectory(pod)
  }

  /** Runs a process, and returns when it has begun. */
  async function run(command: string, ...args: string[]): Promise<ChildProcess> {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    await new Promise((resolve, reject) => {
      child.stdout?.once('data', resolve)
      child.once('exit', (status) => reject(new Error(`${command} ended: ${status}`)))
    })
    return child
  }

  const shell = (script: string, ...args: string[]) => run('sh', '-c', script, 'sh', ...args)

  function end(child: ChildProcess): Promise<void> {
    children = children.filter((one) => one !== child)
    return new Promise((resolve) => {
      child.once('exit', () => resolve())
      child.kill('SIGKILL')
    })
  }

  const openFile = (directory: string) => shell('exec 3<"$1/one"; echo; exec sleep 1000', directory)
  const states = async () => (await stage.heal(true)).map(({ state, action }) => [state, action])
  const passLimit = () => {
    monotonicMs += stage.config.busyUnmountSeconds * 1000
  }

  it.each(DISK_TYPES)('fails first, then succeeds, and is reported until the use ends: %s', async (fsType) => {
    const directory = await mountImage('a', fsType)
    const user = await openFile(directory)
    const inUse = `the file system of "${image}" is unmounted, but still in use by process ${user.pid} ("sleep"): end that use before another node mounts it`

    for (let call = 1; call < 3; call++) {
      await expect(stage.unmount('a')).rejects.toThrow(`${inUse}; otherwise the unmount succeeds in 60 s`)
      expect(fs.readdirSync(directory)).toEqual([])
      expect(stage.layers('a')).toEqual([])
    }
    expect(await states()).toEqual([['busy', 'none']])

    passLimit()
    expect(await stage.unmount('a')).toBe(inUse)
    expect(stage.warnings).toContain(inUse)
    fs.rmdirSync(directory)

    expect((await readSelectedStatus(stage.session())).mounts).toMatchObject([
      { directory, state: 'busy', reason: inUse },
    ])
    const findings = await Array.fromAsync(checkRecordedMounts(stage.session()))
    expect(findings).toContainEqual(expect.objectContaining({ text: `${directory} is busy: ${inUse}` }))
    const garbage = await collectGarbage(stage.session(), { isDry: false, forget: undefined })
    expect(garbage).toContainEqual({ kind: 'mount record', name: directory, action: 'kept', reason: inUse })
    expect(await stage.heal()).toMatchObject([{ state: 'busy', action: 'none', reason: inUse }])
    expect(listLoopDevices(stage.top)).toHaveLength(1)

    await end(user)
    expect((await readSelectedStatus(stage.session())).mounts).toEqual([])
    expect(await stage.heal()).toMatchObject([{ state: 'orphaned', action: 'forgotten' }])
    expect(listReadableMountRecords(stage)).toEqual([])
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  it('succeeds once the use ends, before the limit', async () => {
    const user = await openFile(await mountImage('a'))
    await expect(stage.unmount('a')).rejects.toThrow('still in use')
    await end(user)
    expect(await stage.unmount('a')).toBeUndefined()
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it('waits for a worker of modekeep that ends within five seconds', async () => {
    const directory = await mountImage('a')
    const script = `process.title = '${WORKER_PROCESS_NAME}'; require('fs').openSync(process.argv[1] + '/one'); console.log(); setTimeout(() => {}, 1e6)`
    const worker = await run(process.execPath, '-e', script, directory)
    const ended = new Promise((resolve) => setTimeout(resolve, 1000)).then(() => end(worker))
    expect(await stage.unmount('a')).toBeUndefined()
    await ended
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it('succeeds at once if busyUnmountSeconds is 0', async () => {
    stage.config = { ...stage.config, busyUnmountSeconds: 0 }
    await openFile(await mountImage('a'))
    expect(await stage.unmount('a')).toContain('still in use')
  })

  it('fails for a disk as well', async () => {
    makeImage(image, 'ext4')
    const device = attachDisk(image)
    stage.allow({ sources: [device], fsTypes: ['ext4'] })
    await stage.mount('a', { source: device, 'kubernetes.io/fsType': 'ext4' })
    const user = await openFile(stage.podDirectory('a'))
    await expect(stage.unmount('a')).rejects.toThrow(`process ${user.pid} ("sleep")`)
    await end(user)
    await stage.unmount('a')
  })

  it.each<[string, string]>([
    ['a working directory', 'cd "$1"; echo; exec sleep 1000'],
    [
      'a program',
      'cp /bin/sleep "$1/program"; (until readlink /proc/$$/exe | grep -q program; do :; done; echo) & exec "$1/program" 1000',
    ],
    ['a private copy of the mounts', 'exec unshare --mount --propagation private sh -c "echo; exec sleep 1000"'],
  ])('fails if it is used by %s', async (_, script) => {
    const directory = await mountImage('a')
    await shell(script, directory)
    await expect(stage.unmount('a')).rejects.toThrow('still in use by process')
    await expect(stage.unmount('a')).rejects.not.toThrow('no process')
  })

  it('names no process if the kernel itself uses it', async () => {
    const directory = await mountImage('a')
    execFileSync('truncate', ['-s', '1M', `${directory}/inner`])
    const device = attachDisk(`${directory}/inner`)
    await expect(stage.unmount('a')).rejects.toThrow(
      'no process that can be seen (such as a loop device or a swap file in it)',
    )
    expect(device).toMatch(/^\/dev\/loop/)
    detachDisks()
    await stage.unmount('a')
  })

  it('still fails as busy after another program unmounted the directory', async () => {
    const directory = await mountImage('a')
    await openFile(directory)
    execFileSync('umount', ['-l', directory])
    await expect(stage.unmount('a')).rejects.toThrow('still in use by process')
  })

  it('fails if an earlier version recorded the mount', async () => {
    await openFile(await mountImage('a'))
    const [record] = listReadableMountRecords(stage)
    const { devices: _, tableId: __, ...mounted } = record?.mounted ?? expect.unreachable()
    mountRecords.write(stage.session(), { ...(record as MountRecord), mounted })
    for (let call = 1; call < 3; call++) await expect(stage.unmount('a')).rejects.toThrow('still in use by process')
    passLimit()
    expect(await stage.unmount('a')).toContain('still in use by process')
  })

  it('is counted as busy by the metrics, and its volume as no longer mounted', async () => {
    await openFile(
      await mountImage('a', 'ext4', { ownership: 'walk', restoreOnUnmount: 'true', 'kubernetes.io/fsGroup': '2000' }),
    )
    const stale = stage.host.inodes.chown
    stage.host.inodes = {
      ...stage.host.inodes,
      chown() {
        throw new SystemError('chown', 'EIO', 'an inode')
      },
    }
    await expect(stage.unmount('a')).rejects.toThrow('still in use')
    stage.host.inodes = { ...stage.host.inodes, chown: stale }
    let text = ''
    await writeMetrics(fs, stage.session(), '1', (samples) => {
      text = samples
    })
    expect(text).toContain('modekeep_mounts{type="ext4",ownership="walk",state="busy"} 1')
    expect(text).toContain('modekeep_restores_pending{state="overdue"} 1')
  })

  it('succeeds while another pod has the image mounted', async () => {
    const directory = await mountImage('a')
    await mountImage('b')
    const user = await openFile(directory)
    expect(await stage.unmount('a')).toBeUndefined()
    expect(listReadableMountRecords(stage)).toHaveLength(1)
    await expect(stage.unmount('b')).rejects.toThrow(`process ${user.pid}`)
  })

  it('is not reported as busy after another program unmounted it, while another pod has the image mounted', async () => {
    const directory = await mountImage('a')
    await mountImage('b')
    execFileSync('umount', [directory])
    fs.rmdirSync(directory)
    const { mounts } = await readSelectedStatus(stage.session())
    expect(mounts.map(({ state }) => state).sort()).not.toContain('busy')
    expect(mounts).toContainEqual(expect.objectContaining({ directory: stage.podDirectory('b'), state: 'healthy' }))
  })

  it('succeeds while a container has the mount', async () => {
    const directory = await mountImage('a')
    const root = `${stage.top}/root`
    fs.mkdirSync(`${root}/data`, { recursive: true })
    const script = `mount -t tmpfs none "$2" && mkdir -p "$2/data" "$2/old" "$2/bin" "$2/lib" "$2/lib64" "$2/usr" &&
      for one in bin lib lib64 usr; do [ ! -e /$one ] || mount --rbind /$one "$2/$one"; done
      mount --bind "$1" "$2/data" && cd "$2" && pivot_root . old && echo && exec sleep 1000`
    await run('unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', directory, root)
    expect(await stage.unmount('a')).toBeUndefined()
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it('succeeds while kubelet has a copy of the mount in its own mount namespace', async () => {
    const directory = await mountImage('a')
    const kubelet = await shell('exec unshare --mount --propagation private sh -c "echo; exec sleep 1000"', directory)
    const namespace = fs.readlinkSync(`/proc/${kubelet.pid}/ns/mnt`)
    const { findUsers } = stage.host.blocks
    stage.host.blocks = {
      ...stage.host.blocks,
      findUsers: (fileSystem) => findUsers({ ...fileSystem, namespace }),
    }
    expect(await stage.unmount('a')).toBeUndefined()
  })

  it('succeeds with a warning if the record was lost, as failures cannot be counted', async () => {
    const directory = await mountImage('a')
    await openFile(directory)
    fs.rmSync(`${stage.config.stateDir}/mounts`, { recursive: true })
    expect(await stage.unmount('a')).toContain('the file system of the volume is unmounted, but still in use')
    expect(stage.layers('a')).toEqual([])
  })

  it('fails through CSI too, and the target is removed', async () => {
    makeImage(image, 'ext4')
    stage.allow({ fsTypes: ['ext4'] })
    const volume = `${stage.top}/pods/a/volumes/kubernetes.io~csi/v`
    fs.mkdirSync(volume, { recursive: true })
    const directory = `${volume}/mount`
    const options = JSON.stringify({ source: image, 'kubernetes.io/fsType': 'ext4' })
    await publishVolume(stage.session(), parseFlexVolumeRequest(directory, options, stage.config, volumeKindLookup))
    const user = await openFile(directory)
    for (let call = 1; call < 3; call++) {
      await expect(unpublishVolume(stage.session(), directory)).rejects.toThrow('still in use')
      expect(fs.readdirSync(volume)).toEqual([])
    }
    passLimit()
    await unpublishVolume(stage.session(), directory)
    expect(stage.warnings).toContainEqual(expect.stringContaining('still in use'))
    expect(await states()).toEqual([['busy', 'none']])
    await end(user)
    await unpublishVolume(stage.session(), directory)
    expect(listReadableMountRecords(stage)).toEqual([])
  })

  it('does not make a mount fail that begins during the check of the device', async () => {
    const { mounts } = stage.host
    let failures = 2
    stage.host.mounts = {
      ...mounts,
      createTree(...order) {
        if (failures-- > 0) throw new SystemError('fsmount', 'EBUSY', 'a device')
        return mounts.createTree(...order)
      },
    }
    await mountImage('a')
    expect(await states()).toEqual([['healthy', 'none']])
    await stage.unmount('a')
  })

  it('is no longer reported when another mount is made at the directory', async () => {
    const user = await openFile(await mountImage('a'))
    await expect(stage.unmount('a')).rejects.toThrow('still in use')
    await mountImage('a')
    expect(await states()).toEqual([['healthy', 'none']])
    expect(listLoopDevices(stage.top)).toHaveLength(1)
    await end(user)
    expect(await stage.unmount('a')).toBeUndefined()
  })
})
