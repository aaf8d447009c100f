import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_CONFIG } from '../../src/config/defaults.ts'
import { parseSource } from '../../src/config/source.ts'
import { diskKinds } from '../../src/volume/disk.ts'
import {
  attachDisk,
  createUdevLink,
  type DiskType,
  detachDisks,
  listLeftLoopDevices,
  makeImage,
} from '../helpers/disks.ts'
import { requireProgram } from '../helpers/needs.ts'
import { rendered } from '../helpers/rendered.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

function faults(fsType: DiskType, mountOptions: string[], readOnly = false) {
  const kind = diskKinds.find(({ name }) => name === fsType)
  const request = {
    source: parseSource('/srv/image', true),
    fsType,
    ownership: 'none',
    mountOptions,
    readOnly,
  } as const
  return rendered(kind?.faults(request, DEFAULT_CONFIG))
}

describe('the mount options of a disk', () => {
  it.each([
    ['ext4', ['noatime', 'data=journal', 'errors=continue', 'discard']],
    ['xfs', ['nouuid', 'noquota', 'discard']],
    ['btrfs', ['subvol=/a/b c', 'compress=zstd:3', 'discard']],
    ['btrfs', ['subvolid=256']],
    ['squashfs', ['ro', 'noexec']],
  ] as const)('with file system %s accept %j', (fsType, options) => {
    expect(faults(fsType, [...options])).toEqual([])
  })

  it.each([
    ['ext4', 'journal_dev=0x801'],
    ['ext4', 'journal_path=/dev/sda'],
    ['ext4', 'usrjquota=x'],
    ['ext4', 'debug'],
    ['ext4', 'source=/dev/sda'],
    ['xfs', 'logdev=/dev/sda'],
    ['xfs', 'rtdev=/dev/sda'],
    ['btrfs', 'device=/dev/sda'],
    ['btrfs', 'degraded'],
    ['btrfs', 'fatal_errors=panic'],
    ['squashfs', 'errors=panic'],
    ['squashfs', 'threads=1'],
  ] as const)('with file system %s do not include %s', (fsType, option) => {
    expect(faults(fsType, [option])).toEqual([expect.stringContaining(`has ["${option}"]: ${fsType} takes ro, rw,`)])
  })

  it.each([
    ['ext4', 'errors=panic', 'errors=remount-ro'],
    ['ext4', 'data=writeback', 'data=journal'],
    ['btrfs', 'subvol=', 'subvol=data'],
    ['btrfs', 'subvolid=0', 'subvolid=256'],
    ['btrfs', 'rescue=all', 'rescue=nologreplay'],
    ['xfs', 'nouuid=1', 'nouuid'],
  ] as const)('with file system %s refuse %s and show a valid value', (fsType, option, example) => {
    expect(faults(fsType, [option])).toEqual([`option "mountOptions" has "${option}": write it like ${example}`])
  })

  it.each([
    ['ext4', 'noload'],
    ['xfs', 'norecovery'],
    ['btrfs', 'rescue=nologreplay'],
  ] as const)('with file system %s accept %s only for read-only volumes', (fsType, option) => {
    expect(faults(fsType, [option], true)).toEqual([])
    expect(faults(fsType, [option])).toEqual([expect.stringContaining('which is for read-only volumes')])
  })

  it('of squashfs do not include rw', () => {
    expect(faults('squashfs', ['rw'])).toEqual([expect.stringContaining('squashfs is always read-only')])
  })
})

describe.skipIf(!isRoot)(`a disk mount${suiteTitle}`, () => {
  let stage: Stage
  let image: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: ['ext4', 'xfs', 'btrfs', 'squashfs', 'bind'] })
    image = `${stage.top}/volumes/image`
  })
  afterEach(() => {
    detachDisks()
    stage.close()
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  const ask = (source: string, more: Record<string, string> = {}) =>
    stage.mount('a', { source, 'kubernetes.io/fsType': 'ext4', ...more })
  const disk = (...options: string[]) => {
    const device = attachDisk(image, ...options)
    stage.allow({ sources: [device, '/dev/disk/*'] })
    return device
  }

  it('is refused for a source outside the rules, a link, a directory, and an empty source', async () => {
    fs.mkdirSync(`${stage.top}/volumes/directory`)
    fs.symlinkSync('image', `${stage.top}/volumes/link`)
    const at = (name: string) => ask(`${stage.top}/volumes/${name}`)
    await expect(ask('/dev/loop0')).rejects.toThrow('does not have its source')
    await expect(ask('')).rejects.toThrow('name the block device or image file of the node to mount')
    await expect(at('link')).rejects.toThrow('has a symbolic link in its path')
    await expect(at('directory')).rejects.toThrow('is neither a block device nor an image file: name one')
    await expect(at('none')).rejects.toThrow('attach the disk, or create the image file, or correct the name')
  })

  it('is refused for a device node that a pod made in its volume', async () => {
    makeImage(image, 'ext4')
    const device = attachDisk(image)
    const { rdev } = fs.statSync(device)
    execFileSync('mknod', [`${stage.top}/volumes/node`, 'b', String(rdev >> 8), String(rdev & 0xff)])
    await expect(ask(`${stage.top}/volumes/node`)).rejects.toThrow(
      'is a device node outside /dev, which a pod may have',
    )
  })

  it('is refused for a device that does not exist', async () => {
    const device = '/dev/loop-of-the-test'
    execFileSync('mknod', [device, 'b', '240', '77'])
    try {
      stage.allow({ sources: [device] })
      await expect(ask(device)).rejects.toThrow('is a device that does not exist (ENXIO): attach the disk')
    } finally {
      fs.rmSync(device)
    }
  })

  it('is refused for writing to a read-only device, and succeeds read-only', async () => {
    makeImage(image, 'ext4')
    const device = disk('--read-only')
    await expect(ask(device)).rejects.toThrow('is a read-only device: set readOnly on the volume')
    await ask(device, { 'kubernetes.io/readwrite': 'ro' })
    await stage.unmount('a')
  })

  it('is refused if another pod has the disk mounted with the other access', async () => {
    makeImage(image, 'ext4')
    const device = disk()
    const other = (more = {}) => stage.mount('b', { source: device, 'kubernetes.io/fsType': 'ext4', ...more })
    await other({ 'kubernetes.io/readwrite': 'ro' })
    await expect(ask(device)).rejects.toThrow(`is mounted read-only already at ${stage.podDirectory('b')}`)
    await stage.unmount('b')
    await other()
    await ask(device, { 'kubernetes.io/readwrite': 'ro' })
    expect(stage.layers('a')[0]?.options).toContain('ro')
    expect(() => fs.writeFileSync(`${stage.podDirectory('a')}/new`, '')).toThrow('EROFS')
    await stage.unmount('b')
    await stage.unmount('a')
  })

  it('is refused for writing if the image is in use read-only or in part', async () => {
    makeImage(image, 'ext4')
    await stage.mount('b', { source: image, 'kubernetes.io/fsType': 'ext4', 'kubernetes.io/readwrite': 'ro' })
    await expect(ask(image)).rejects.toThrow('is in use read-only (/dev/loop')
    await stage.unmount('b')
    expect(listLeftLoopDevices(stage.top)).toEqual([])
    attachDisk(image, '--offset', '512')
    await expect(ask(image)).rejects.toThrow('a part of image')
  })

  it('is refused for an unclean disk that cannot be written, unless its log is skipped', async () => {
    makeImage(`${image}1`, 'ext4')
    const place = `${stage.top}/elsewhere`
    fs.mkdirSync(place)
    execFileSync('mount', ['-o', 'loop', `${image}1`, place])
    fs.writeFileSync(`${place}/late`, 'x')
    execFileSync('sync', ['-f', place])
    fs.copyFileSync(`${image}1`, image)
    execFileSync('umount', [place])
    const readOnly = { 'kubernetes.io/readwrite': 'ro' }
    await expect(ask(image, readOnly)).rejects.toThrow('must have its log replayed, but cannot be written')
    await ask(image, { ...readOnly, mountOptions: 'noload' })
    await stage.unmount('a')
    await ask(image)
    await stage.unmount('a')
  })

  it('is refused for a damaged disk', async () => {
    makeImage(image, 'xfs')
    const file = fs.openSync(image, 'r+')
    // The rest of the superblock after its magic number.
    fs.writeSync(file, Buffer.alloc(400, 0xff), 0, 400, 4)
    fs.closeSync(file)
    await expect(ask(image, { 'kubernetes.io/fsType': 'xfs' })).rejects.toThrow(/damaged|does not mount/)
  })

  it("never panics the node, as ext4's own errors= setting is overridden", async () => {
    makeImage(image, 'ext4')
    execFileSync(requireProgram('tune2fs'), ['-e', 'panic', image])
    await ask(image)
    const [row] = stage.layers('a')
    expect(row?.superOptions.join()).not.toContain('panic')
    expect(row?.superOptions).toContain('errors=remount-ro')
    await stage.unmount('a')
  })

  it('follows the links of udev and refuses other links', async () => {
    makeImage(image, 'ext4')
    const device = disk()
    const names = '/dev/disk/by-modekeep-test'
    const unname = createUdevLink(`${names}/disk`, device)
    try {
      fs.symlinkSync(image, `${names}/out`)
      await ask(`${names}/disk`)
      expect(stage.layers('a')).toMatchObject([{ source: device }])
      await stage.unmount('a')
      await expect(ask(`${names}/out`)).rejects.toThrow("is a link that is not udev's, or leads out of /dev")
      fs.lchownSync(`${names}/disk`, 1000, 1000)
      await expect(ask(`${names}/disk`)).rejects.toThrow("is a link that is not udev's")
    } finally {
      fs.rmSync(`${names}/out`, { force: true })
      unname()
    }
  })
})
