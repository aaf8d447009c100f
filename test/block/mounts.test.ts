import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listReadableMountRecords } from '../../src/state/mount-record.ts'
import {
  attachDisk,
  DISK_TYPES,
  type DiskType,
  detachDisks,
  listLeftLoopDevices,
  listLoopDevices,
  makeImage,
  ON_DISK,
} from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { groups } from '../helpers/tree.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot).each(DISK_TYPES)(`%s on a disk and in an image${suiteTitle}`, (fsType) => {
  let stage: Stage
  let image: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: [fsType, 'bind'] })
    image = `${stage.top}/volumes/image`
    makeImage(image, fsType)
  })
  afterEach(() => {
    detachDisks()
    stage.close()
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  const isReadOnly = fsType === 'squashfs'
  const changeable = isReadOnly ? () => {} : it
  const ask = (more: Record<string, string> = {}) => ({ source: image, 'kubernetes.io/fsType': fsType, ...more })
  const onDisk = { '.': ON_DISK, one: ON_DISK, sub: ON_DISK, 'sub/two': ON_DISK }
  const read = (pod: string, file = 'one') => fs.readFileSync(`${stage.podDirectory(pod)}/${file}`, 'utf8')
  const shown = (pod: string) => groups(stage.shown(pod))
  const given = () => listReadableMountRecords(stage).map(({ given: { by } }) => by)

  it('shows an image, and its loop device is removed at unmount', async () => {
    await stage.mount('a', ask())
    expect(read('a')).toBe('content\n')
    expect(listLoopDevices(stage.top)).toHaveLength(1)
    expect(stage.layers('a')).toMatchObject([{ fsType, source: expect.stringMatching(/^\/dev\/loop\d+$/) }])
    await stage.mount('a', ask())
    expect(stage.noted.decision).toBe('ready')
    await stage.unmount('a')
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  it('shows a disk by its name in /dev, and unmount does not detach it', async () => {
    const device = attachDisk(image)
    stage.allow({ sources: [device] })
    await stage.mount('a', ask({ source: device }))
    expect(read('a')).toBe('content\n')
    expect(stage.layers('a')).toMatchObject([{ source: device }])
    await stage.unmount('a')
    expect(listLoopDevices(stage.top)).toEqual([`${device} ${image}`])
  })

  it('is mounted for two pods from the same file system', async () => {
    await stage.mount('a', ask())
    await stage.mount('b', ask())
    expect(listLoopDevices(stage.top)).toHaveLength(1)
    if (!isReadOnly) {
      fs.writeFileSync(`${stage.podDirectory('a')}/new`, 'of a')
      expect(read('b', 'new')).toBe('of a')
    }
    await stage.unmount('a')
    expect(read('b')).toBe('content\n')
  })

  it('is attached to one loop device by concurrent mounts of several pods', async () => {
    const pods = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(pods.map((pod) => stage.mount(pod, ask())))
    expect(listLoopDevices(stage.top)).toHaveLength(1)
    for (const pod of pods) expect(read(pod)).toBe('content\n')
  })

  it('applies the group by a mapping, and nothing changes on disk', async () => {
    await stage.mount('a', ask({ ownership: 'auto', 'kubernetes.io/fsGroup': '2000' }))
    await stage.mount('b', ask({ ownership: 'idmap', 'kubernetes.io/fsGroup': '3000' }))
    expect(given()).toEqual(['idmap', 'idmap'])
    expect(new Set(Object.values(shown('a')))).toEqual(new Set([2000]))
    expect(new Set(Object.values(shown('b')))).toEqual(new Set([3000]))
    await stage.mount('c', ask())
    expect(shown('c')).toEqual(onDisk)
  })

  it('read-only mounts the file system itself read-only, and does not change the image', async () => {
    const before = execFileSync('sha256sum', [image], { encoding: 'utf8' })
    await stage.mount('a', ask({ 'kubernetes.io/readwrite': 'ro' }))
    expect(read('a')).toBe('content\n')
    const [row] = stage.layers('a')
    expect(row?.options).toContain('ro')
    expect(row?.superOptions).toContain('ro')
    await stage.unmount('a')
    expect(execFileSync('sha256sum', [image], { encoding: 'utf8' })).toBe(before)
  })

  it('shows a subPath, and refuses one that leads out or is a file', async () => {
    await stage.mount('a', ask({ subPath: 'sub', ownership: 'auto', 'kubernetes.io/fsGroup': '2000' }))
    expect(shown('a')).toEqual({ '.': 2000, two: 2000 })
    await expect(stage.mount('b', ask({ subPath: 'one' }))).rejects.toThrow('subPath "one" is not a directory')
    await expect(stage.mount('b', ask({ subPath: 'none' }))).rejects.toThrow('does not exist')
    expect(stage.layers('b')).toEqual([])
  })

  it('is refused if the source has another file system, which the message names', async () => {
    const other: DiskType = fsType === 'squashfs' ? 'ext4' : 'squashfs'
    makeImage(`${image}2`, other)
    await expect(stage.mount('a', ask({ source: `${image}2` }))).rejects.toThrow(
      `source "${image}2" holds ${other}, not ${fsType}`,
    )
    fs.writeFileSync(`${image}3`, Buffer.alloc(1 << 20))
    await expect(stage.mount('a', ask({ source: `${image}3` }))).rejects.toThrow(`holds no ${fsType}`)
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  it('is mounted from the new image after the image file was replaced under the same name', async () => {
    await stage.mount('a', ask())
    makeImage(`${image}2`, fsType, 'other\n')
    fs.renameSync(`${image}2`, image)
    await stage.mount('a', ask())
    expect(stage.noted).toMatchObject({ decision: 'replace', reason: 'the source is another one now' })
    expect(read('a')).toBe('other\n')
    expect(listLoopDevices(stage.top)).toHaveLength(1)
  })

  it('is mounted again after a reboot', async () => {
    await stage.mount('a', ask())
    stage.reboot()
    expect(listLeftLoopDevices(stage.top)).toEqual([])
    await stage.mount('a', ask())
    expect(read('a')).toBe('content\n')
  })

  it('is remounted by heal after it was unmounted', async () => {
    await stage.mount('a', ask())
    execFileSync('umount', [stage.podDirectory('a')])
    expect(listLeftLoopDevices(stage.top)).toEqual([])
    expect(await stage.heal()).toMatchObject([{ state: 'missing', action: 'mounted' }])
    expect(read('a')).toBe('content\n')
    expect(await stage.heal()).toMatchObject([{ state: 'healthy', action: 'none' }])
  })

  it('and a copy with the same UUID are both shown, or the refusal names the conflict', async () => {
    fs.copyFileSync(image, `${image}2`)
    await stage.mount('a', ask())
    const copy = (mountOptions = '') => stage.mount('b', ask({ source: `${image}2`, mountOptions }))
    if (fsType === 'xfs') await expect(copy()).rejects.toThrow('"nouuid"')
    if (fsType === 'btrfs') await expect(copy()).rejects.toThrow('has the UUID of a file system that is mounted')
    else {
      await copy(fsType === 'xfs' ? 'nouuid' : '')
      expect(read('b')).toBe('content\n')
    }
  })

  changeable('walks, and restores at the last unmount what no directory shows any more', async () => {
    const walk = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' }
    await stage.mount('a', ask(walk))
    await stage.mount('b', ask({ ...walk, subPath: 'sub' }))
    expect(shown('a')).toEqual({ '.': 2000, one: 2000, sub: 2000, 'sub/two': 2000 })
    await expect(stage.mount('c', ask({ ...walk, 'kubernetes.io/fsGroup': '3000' }))).rejects.toThrow('group 2000')
    await stage.unmount('b')
    await stage.unmount('a')
    expect(stage.warnings).toEqual([])
    expect(listLeftLoopDevices(stage.top)).toEqual([])
    await stage.mount('a', ask())
    expect(shown('a')).toEqual(onDisk)
  })

  changeable('keeps a restore pending while the image is missing, and runs it when it is back', async () => {
    const walk = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' }
    await stage.mount('a', ask(walk))
    fs.renameSync(image, `${image}.away`)
    await stage.unmount('a')
    expect(stage.warnings).toMatchObject([expect.stringContaining('does not exist on this node')])
    fs.renameSync(`${image}.away`, image)
    await stage.mount('a', ask())
    expect(shown('a')['.']).toBe(2000)
    await stage.unmount('a')
    await stage.mount('a', ask())
    expect(shown('a')).toEqual(onDisk)
  })

  it('is refused if the node itself has it mounted, and the message says where', async () => {
    const device = attachDisk(image)
    const place = `${stage.top}/volumes/mounted`
    fs.mkdirSync(place)
    execFileSync('mount', ['-o', 'ro', device, place])
    stage.allow({ sources: [device, `${place}/*`, image] })
    const refusal = (source: string) =>
      `source "${source}" is mounted by the node itself at "${place}": unmount that, or have the pod take a directory of it (fsType bind, a source below "${place}")`
    for (const more of [{}, { 'kubernetes.io/readwrite': 'ro' }]) {
      await expect(stage.mount('a', ask({ source: device, ...more }))).rejects.toThrow(refusal(device))
    }
    await expect(stage.mount('a', ask({ 'kubernetes.io/readwrite': 'ro' }))).rejects.toThrow(refusal(image))
    await stage.mount('b', { source: `${place}/sub`, 'kubernetes.io/fsType': '', 'kubernetes.io/readwrite': 'ro' })
    expect(fs.readFileSync(`${stage.podDirectory('b')}/two`, 'utf8')).toBe('content\n')
    await stage.unmount('b')
    execFileSync('umount', [place])
    await stage.mount('a', ask({ source: device }))
    expect(read('a')).toBe('content\n')
    await stage.unmount('a')
  })

  it("can be mounted by more pods after the node has mounted a pod's disk", async () => {
    const place = `${stage.top}/looking`
    fs.mkdirSync(place)
    await stage.mount('a', ask())
    execFileSync('mount', ['--bind', stage.podDirectory('a'), place])
    await stage.mount('b', ask())
    expect(read('b')).toBe('content\n')
    execFileSync('umount', [place])
  })
})
