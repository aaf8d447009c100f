import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type RestoreDocument, restoreRecordedOwnership } from '../../src/cli/commands/restore.ts'
import { checkRecordedVolumes } from '../../src/cli/doctor/records.ts'
import { createPathLookups } from '../../src/kernel/mount-table/responsiveness.ts'
import { pruneVolumeJournal } from '../../src/repair/volume-garbage.ts'
import { type DiskType, detachDisks, listLeftLoopDevices, makeImage } from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'
const TYPES: readonly DiskType[] = ['ext4', 'xfs', 'btrfs']

/** A group that no rule of the node allows. */
const FORBIDDEN = 4242
const GIVEN = 2000
const SET_GID = 0o2755
const TIME = 1_700_000_000
const SIZE = 32

describe.skipIf(!isRoot).each(TYPES)(`a forged copy of an image with %s${suiteTitle}`, (fsType) => {
  let stage: Stage
  let image: string
  let forged: string
  let place: string
  beforeEach(async () => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: [fsType, 'bind'], fsGroups: [String(GIVEN)] })
    image = `${stage.top}/volumes/image`
    forged = `${stage.top}/volumes/forged`
    place = `${stage.top}/place`
    fs.mkdirSync(place)
    makeImage(image, fsType)
    within(image, () => fill(FORBIDDEN, 'a'))
  })
  afterEach(() => {
    detachDisks()
    stage.close()
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  /** A program whose privileges are recorded; the forged copy has another one with the same inode, size and mtime. */
  function fill(group: number, letter: string): void {
    fs.writeFileSync(`${place}/one`, letter.repeat(SIZE))
    fs.chownSync(`${place}/one`, 0, group)
    fs.chmodSync(`${place}/one`, SET_GID)
    fs.utimesSync(`${place}/one`, TIME, TIME)
  }

  function within<T>(file: string, work: () => T): T {
    execFileSync('mount', ['-o', 'loop', file, place])
    try {
      return work()
    } finally {
      execFileSync('umount', [place])
    }
  }

  async function inside<T>(file: string, work: () => Promise<T>): Promise<T> {
    execFileSync('mount', ['-o', 'loop', file, place])
    try {
      return await work()
    } finally {
      execFileSync('umount', [place])
    }
  }

  const walk = { ownership: 'walk', 'kubernetes.io/fsGroup': String(GIVEN) }
  const ask = (pod: string, source: string, more: Record<string, string> = {}) =>
    stage.mount(pod, { source, 'kubernetes.io/fsType': fsType, ...more })
  const seen = () => {
    const { gid, mode } = fs.statSync(`${place}/one`)
    return [gid, mode & 0o7777]
  }
  const volumes = () => fs.readdirSync(`${stage.top}/state/ownership`)
  const put = (target: { directory: string } | { volume: string }, { isDry = false, isForced = false } = {}) =>
    restoreRecordedOwnership(stage.session(), { verb: 'restore', target, isDry, isForced })

  /** As the walk has left it, but for the program's content. */
  function forge(at = forged): void {
    fs.copyFileSync(image, at)
    within(at, () => fill(GIVEN, 'b'))
  }

  async function walkAndForge(): Promise<string> {
    await ask('a', image, walk)
    await stage.unmount('a')
    expect(within(image, seen)).toEqual([GIVEN, SET_GID])
    forge()
    const [volume = ''] = volumes()
    return volume
  }

  const inodeOf = (file: string) => fs.statSync(file).ino
  const differs = () =>
    new RegExp(
      `are of image "${image}" \\(inode ${inodeOf(image)},.*this is image "${forged}" \\(inode ${inodeOf(forged)},`,
    )

  it('gets no recorded ownership by a restore of its directory or of the volume, unless forced', async () => {
    const volume = await walkAndForge()
    await inside(forged, async () => {
      for (const target of [{ directory: place }, { volume }]) {
        await expect(put(target)).rejects.toThrow(differs())
        await expect(put(target)).rejects.toThrow('--force')
        expect(await put(target, { isDry: true })).toMatchObject({ refusal: expect.stringMatching(differs()) })
        expect(seen()).toEqual([GIVEN, SET_GID])
      }
      // Nothing of it is taken for gone.
      fs.rmSync(`${place}/sub`, { recursive: true })
      expect(await pruneVolumeJournal(stage.session(), volume, createPathLookups(stage))).toBe(false)
    })
    await inside(image, async () => {
      expect(await put({ volume })).toMatchObject({ outcome: 'restored', otherDisk: null, directory: place })
      expect(seen()).toEqual([FORBIDDEN, SET_GID])
      expect(fs.statSync(`${place}/sub/two`).gid).not.toBe(GIVEN)
    })
  })

  it('gets the recorded ownership with --force, and the output names the difference', async () => {
    await walkAndForge()
    const done = await inside(forged, () => put({ directory: place }, { isForced: true }))
    expect(done).toMatchObject({
      outcome: 'restored',
      otherDisk: expect.stringMatching(differs()),
    } satisfies Partial<RestoreDocument>)
    expect(stage.warnings).toEqual([expect.stringMatching(differs())])
  })

  it('is not walked, even if only parts of the records remain', async () => {
    const volume = await walkAndForge()
    const { ino } = fs.statSync(forged)
    const refused = () =>
      expect(ask('b', forged, { ...walk, fsGroupChangePolicy: 'Always' })).rejects.toThrow(differs())
    await refused()
    expect(stage.layers('b')).toEqual([])
    await expect(ask('b', forged, { ...walk, restoreOnUnmount: 'true' })).rejects.toThrow(differs())
    // The journal knows it too.
    const record = `${stage.top}/state/ownership/${volume}/record.json`
    const text = fs.readFileSync(record, 'utf8')
    fs.writeFileSync(record, '{')
    await refused()
    fs.writeFileSync(record, text)
    expect(within(forged, seen)).toEqual([GIVEN, SET_GID])
    // Requests that need no record succeed for the copy, and so do all for the image itself.
    await ask('b', forged)
    await stage.unmount('b')
    await ask('a', image, walk)
    await stage.unmount('a')
    expect(fs.statSync(forged).ino).toBe(ino)
  })

  it('in place of the image is not restored by an unmount with a pending restore', async () => {
    await ask('a', image, { ...walk, restoreOnUnmount: 'true' })
    const real = `${image}.away`
    fs.copyFileSync(image, forged)
    fs.renameSync(image, real)
    await stage.unmount('a')
    expect(stage.warnings.splice(0)).toHaveLength(1)
    // A copy of what is not mounted any more.
    fs.copyFileSync(real, image)
    within(image, () => fill(GIVEN, 'b'))
    await ask('b', image)
    await stage.unmount('b')
    expect(stage.warnings).toEqual([
      expect.stringMatching(/^volume not restored, .* are of image .*, and this is image .*: a copy, or a forged one/),
    ])
    expect(within(image, seen)).toEqual([GIVEN, SET_GID])
    expect(await Array.fromAsync(checkRecordedVolumes(stage.session()))).toContainEqual({
      level: 'warning',
      text: expect.stringMatching(/the restore of .* is pending, but .* are of image .*, and this is image /),
      remedy: expect.stringContaining('--force'),
    })
    fs.renameSync(real, image)
    await ask('b', image)
    await stage.unmount('b')
    expect(within(image, seen)).toEqual([FORBIDDEN, SET_GID])
  })

  it('with a new UUID is another volume', async () => {
    await walkAndForge()
    // What was mounted since its last check gets no new UUID.
    if (fsType === 'ext4') expect(spawnSync('e2fsck', ['-f', '-p', forged]).status).toBeLessThan(2)
    if (fsType === 'ext4') execFileSync('tune2fs', ['-U', 'random', forged], { stdio: 'ignore' })
    if (fsType === 'xfs') execFileSync('xfs_admin', ['-U', 'generate', forged], { stdio: 'ignore' })
    if (fsType === 'btrfs') execFileSync('btrfstune', ['-f', '-u', forged], { stdio: 'ignore' })
    await ask('b', forged, { ...walk, fsGroupChangePolicy: 'Always' })
    await stage.unmount('b')
    expect(volumes()).toHaveLength(2)
  })
})
