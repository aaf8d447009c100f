import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GcDocument } from '../../src/cli/commands/gc.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import type { RestoreDocument } from '../../src/cli/commands/restore.ts'
import type { StatusDocument } from '../../src/cli/commands/status-document.ts'
import { listLeftLoopDevices, listLoopDevices, makeImage } from '../helpers/disks.ts'
import { requireProgram } from '../helpers/needs.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { groups } from '../helpers/tree.ts'

const suiteTitle = `subvolumes of a btrfs${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  let stage: Stage
  let image: string
  let place: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: ['btrfs', 'bind'] })
    image = `${stage.top}/volumes/image`
    place = `${stage.top}/volumes/mounted`
    makeImage(image, 'btrfs')
    fs.mkdirSync(place)
    execFileSync('mount', ['-o', 'loop', image, place])
    execFileSync(requireProgram('btrfs'), ['-q', 'subvolume', 'create', `${place}/data`])
    fs.mkdirSync(`${place}/data/deep`)
    fs.writeFileSync(`${place}/data/file`, 'data\n')
    execFileSync(requireProgram('btrfs'), ['-q', 'subvolume', 'snapshot', `${place}/data`, `${place}/copy`])
    execFileSync('umount', [place])
  })
  afterEach(() => {
    stage.close()
    expect(listLeftLoopDevices(stage.top)).toEqual([])
  })

  const ask = (subvolume: string, group: number, more: Record<string, string> = {}) => ({
    source: image,
    'kubernetes.io/fsType': 'btrfs',
    mountOptions: `subvol=${subvolume}`,
    ownership: 'walk',
    'kubernetes.io/fsGroup': String(group),
    ...more,
  })

  it('are separate volumes on one device, snapshots too', async () => {
    await stage.mount('a', ask('data', 2000, { restoreOnUnmount: 'true' }))
    await stage.mount('b', ask('copy', 3000))
    expect(listLoopDevices(stage.top)).toHaveLength(1)
    expect(groups(stage.shown('a'))).toEqual({ '.': 2000, deep: 2000, file: 2000 })
    expect(groups(stage.shown('b'))).toEqual({ '.': 3000, deep: 3000, file: 3000 })
    await stage.unmount('a')
    expect(stage.warnings).toEqual([])
    await stage.mount('a', ask('data', 2000, { ownership: 'none' }))
    expect(groups(stage.shown('a'))).toEqual({ '.': 0, deep: 0, file: 0 })
    expect(groups(stage.shown('b'))).toEqual({ '.': 3000, deep: 3000, file: 3000 })
  })

  it('are one volume with their directories, by any path', async () => {
    execFileSync('mount', ['-o', 'loop', image, place])
    const bind = { source: `${place}/data/deep`, 'kubernetes.io/fsType': '', mountOptions: '' }
    await stage.mount('a', ask('data', 2000, bind))
    await expect(stage.mount('b', ask('data', 3000))).rejects.toThrow('group 2000')
    await stage.mount('b', ask('copy', 3000))
    await stage.mount('c', ask('data', 2000))
    await stage.unmount('a')
    await expect(stage.mount('a', ask('data', 3000, bind))).rejects.toThrow('group 2000')
    for (const pod of ['b', 'c']) await stage.unmount(pod)
    execFileSync('umount', [place])
  })

  describe("a volume that contains its user's snapshot", () => {
    const source = () => `${place}/data`
    const bind = (more: Record<string, string>) => ({ source: source(), 'kubernetes.io/fsGroup': '2000', ...more })
    const snapshot = (name: string) =>
      execFileSync(requireProgram('btrfs'), ['-q', 'subvolume', 'snapshot', source(), `${source()}/${name}`])
    const volumes = async () =>
      ((await runVerb(stage.session(), { verb: 'status', metrics: undefined })) as StatusDocument).volumes
    const restore = (isForced = false) =>
      runVerb(stage.session(), {
        verb: 'restore',
        target: { directory: source() },
        isDry: false,
        isForced,
      }) as Promise<RestoreDocument>
    const gc = async () =>
      ((await runVerb(stage.session(), { verb: 'gc', isDry: false, forget: undefined })) as GcDocument).items
    beforeEach(() => {
      execFileSync('mount', ['-o', 'loop', image, place])
    })
    afterEach(() => {
      for (const pod of ['a', 'b']) if (stage.layers(pod).length > 0) execFileSync('umount', [stage.podDirectory(pod)])
      execFileSync('umount', [place])
    })

    it('is restored completely at the last unmount, and no record of it remains', async () => {
      await stage.mount('a', bind({ ownership: 'walk', restoreOnUnmount: 'true' }))
      snapshot('snapshot')
      await stage.unmount('a')
      expect(fs.statSync(`${source()}/file`).gid).toBe(0)
      expect(fs.statSync(`${source()}/snapshot/file`).gid).toBe(2000)
      expect(await volumes()).toEqual([])
      await stage.mount('b', bind({ ownership: 'idmap' }))
      expect(stage.layers('b')).toHaveLength(1)
    })

    it('is restored completely by hand, and no message advises to remove the snapshot', async () => {
      snapshot('snapshot')
      await stage.mount('a', bind({ ownership: 'walk' }))
      await stage.unmount('a')
      for (const isForced of [false, true]) {
        const outcome = isForced ? 'nothing recorded' : 'restored'
        expect(await restore(isForced)).toMatchObject({ outcome, next: null })
        expect(await volumes()).toEqual([])
      }
    })

    it('has no record of a deleted file after gc', async () => {
      await stage.mount('a', bind({ ownership: 'walk' }))
      await stage.unmount('a')
      fs.rmSync(`${source()}/file`)
      snapshot('snapshot')
      expect(await restore()).toMatchObject({ outcome: 'restored', next: null })
      expect(await volumes()).toMatchObject([{ left: 0 }])
      expect(await gc()).toMatchObject([{ kind: 'volume', action: 'removed' }])
    })
  })
})
