import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GcDocument } from '../../src/cli/commands/gc.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import { restoreVolumeTree } from '../../src/fsgroup/restore-volume.ts'
import { locateVolumeRecords } from '../../src/state/record-directories.ts'
import { measureAllRecords } from '../../src/state/volume-journal.ts'
import { volumeRecords } from '../../src/state/volume-record.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const suiteTitle = `a pod that makes and deletes files${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`
const NAME = 'x'.repeat(200)

describe.skipIf(!isRoot)(suiteTitle, () => {
  let stage: Stage
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    fs.mkdirSync(volume())
    fs.writeFileSync(`${volume()}/kept`, '', { mode: 0o640 })
  })
  afterEach(() => stage.close())

  const volume = () => `${stage.top}/volumes/a`
  const options = () => ({ source: volume() })
  const owned = { ownership: 'walk', fsGroupChangePolicy: 'Always', 'kubernetes.io/fsGroup': '2000' }
  const make = (count: number) => {
    fs.mkdirSync(`${volume()}/new`)
    for (let at = 0; at < count; at++) fs.writeFileSync(`${volume()}/new/${at}${NAME}`, '')
  }
  const remove = () => fs.rmSync(`${volume()}/new`, { recursive: true })
  const round = async () => {
    await stage.mount('a', { ...options(), ...owned })
    await stage.unmount('a')
  }
  const stateSize = () => {
    const [id] = fs.readdirSync(`${stage.top}/state/ownership`)
    const place = `${stage.top}/state/ownership/${id}`
    return fs.readdirSync(place).reduce((sum, name) => sum + fs.statSync(`${place}/${name}`).size, 0)
  }
  const groupOf = (name: string) => fs.statSync(`${volume()}/${name}`).gid

  it('does not fill the disk: records of deleted files are removed and their space is freed', async () => {
    for (let at = 0; at < 5; at++) {
      make(4000)
      await round()
      remove()
    }
    await round()
    expect(stateSize()).toBeLessThan(200_000)
    expect(groupOf('kept')).toBe(2000)
  })

  it('leaves records that gc removes, although no pod mounts the volume again', async () => {
    make(8000)
    await round()
    remove()
    expect(stateSize()).toBeGreaterThan(2_000_000)
    const { items } = (await runVerb(stage.session(), { verb: 'gc', isDry: false, forget: undefined })) as GcDocument
    expect(items).toMatchObject([{ kind: 'volume', action: 'kept', reason: expect.stringContaining('forgotten') }])
    expect(stateSize()).toBeLessThan(200_000)
    await stage.byHand(volume(), (session, { tree, volume: id }) =>
      restoreVolumeTree(session, tree, { volume: id, source: volume(), isDisk: false }, undefined),
    )
    expect(groupOf('kept')).toBe(0)
  })

  it('with records above the quota gets no group, and unmounts, restores and mounts without a group still succeed', async () => {
    stage.config = { ...stage.config, stateQuota: 2 ** 20 }
    make(8000)
    await expect(stage.mount('a', { ...options(), ...owned })).rejects.toThrow('"stateQuota"')
    await stage.unmount('a')
    await stage.mount('b', options())
    await stage.unmount('b')
    await expect(round()).rejects.toThrow('"stateQuota"')
    await stage.byHand(volume(), (session, { tree, volume: id }) =>
      restoreVolumeTree(session, tree, { volume: id, source: volume(), isDisk: false }, undefined),
    )
    expect([...new Set(fs.readdirSync(`${volume()}/new`).map((name) => groupOf(`new/${name}`)))]).toEqual([0])
    await expect(round()).rejects.toThrow('"stateQuota"')
    remove()
    await round()
    expect(groupOf('kept')).toBe(2000)
  })

  describe('on a small disk of the state directory', () => {
    const MIB = 2 ** 20
    const OTHER = 'ab-5-6'
    const state = () => `${stage.top}/state`
    beforeEach(() => {
      fs.mkdirSync(state())
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=0700', 'state', state()])
    })
    afterEach(() => void execFileSync('umount', [state()]))

    /** As another pod's volume, gone since, leaves it. */
    function leave(bytes: number): void {
      const walk = { group: 7, groupAccess: 'keep', complete: true, restorePending: false } as const
      volumeRecords.write(stage, { volume: OTHER, source: '/srv/gone', ...walk })
      fs.writeFileSync(`${locateVolumeRecords(stage, OTHER).path}/journal.db`, Buffer.alloc(bytes))
      // A walk would have told in it what it was given.
      fs.rmSync(`${state()}/growth`, { force: true })
    }
    const full =
      /the records of all volumes take \d+ MiB of the 26 MiB .*"modekeep gc".*"modekeep restore ab-5-6".*"\/srv\/gone"/
    const pods = () => ['a', 'b'].flatMap((pod) => stage.layers(pod))

    it("gets no group once all volumes' records take a tenth of the disk: no walk begins, and other calls succeed", async () => {
      await round()
      fs.mkdirSync(`${stage.top}/volumes/other`)
      leave(26 * MIB)
      const before = fs.readdirSync(`${state()}/ownership`)
      await expect(stage.mount('b', { source: `${stage.top}/volumes/other`, ...owned })).rejects.toThrow(full)
      expect(pods()).toEqual([])
      expect(fs.readdirSync(`${state()}/ownership`)).toEqual(before)
      expect(fs.statSync(`${stage.top}/volumes/other`).gid).toBe(0)
      await stage.mount('b', { source: `${stage.top}/volumes/other` })
      await stage.unmount('b')
      // What needs no record goes on, and what only gives back.
      await round()
      await stage.mount('a', { ...options(), ...owned, restoreOnUnmount: 'true' })
      await stage.unmount('a')
      expect(groupOf('kept')).toBe(0)
      fs.rmSync(locateVolumeRecords(stage, OTHER).path, { recursive: true })
      await round()
      expect(groupOf('kept')).toBe(2000)
    })

    it('stops at a tenth of the disk during a walk, and the walk continues once there is space', async () => {
      leave(23.5 * MIB)
      make(8000)
      await expect(round()).rejects.toThrow(full)
      expect(pods()).toEqual([])
      expect(measureAllRecords(stage).bytes).toBeLessThan(26 * MIB)
      const groups = () => new Set(fs.readdirSync(`${volume()}/new`).map((name) => groupOf(`new/${name}`)))
      expect(groups()).toEqual(new Set([0, 2000]))
      await expect(round()).rejects.toThrow(full)
      await stage.unmount('a')
      leave(10 * MIB)
      await round()
      expect(groups()).toEqual(new Set([2000]))
      leave(26 * MIB)
      await stage.byHand(volume(), (session, { tree, volume: id, directory }) =>
        restoreVolumeTree(session, tree, { volume: id, source: directory, isDisk: false }, undefined),
      )
      expect(groups()).toEqual(new Set([0]))
    })
  })
})
