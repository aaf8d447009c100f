import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readSelectedStatus } from '../../src/cli/commands/status.ts'
import { detachDisks, makeImage, ON_DISK } from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'
import { groups } from '../helpers/tree.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot)(`a copy of an xfs image that is mounted${suiteTitle}`, () => {
  let stage: Stage
  let image: string
  beforeEach(() => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: ['xfs'] })
    image = `${stage.top}/volumes/image`
    makeImage(image, 'xfs')
    fs.copyFileSync(image, `${image}2`)
  })
  afterEach(() => {
    detachDisks()
    stage.close()
  })

  const GROUP = { 'kubernetes.io/fsGroup': '2000' }
  const original = (more: Record<string, string> = {}) =>
    stage.mount('a', { source: image, 'kubernetes.io/fsType': 'xfs', ...GROUP, ...more })
  const copy = (more: Record<string, string> = {}) =>
    stage.mount('b', { source: `${image}2`, 'kubernetes.io/fsType': 'xfs', ...GROUP, ...more })
  const counted = async () => (await readSelectedStatus(stage.session())).volumes.map(({ mounts }) => mounts)

  it('is refused, and the message names both remedies: nouuid for a mapping, a new UUID for a walk', async () => {
    await original({ ownership: 'walk' })
    const refusal = await copy({ ownership: 'walk' }).catch(({ message }) => message)
    for (const way of ['"nouuid"', 'ownership "idmap" or "none"', '"xfs_admin -U generate"'])
      expect(refusal).toContain(way)
    const second = await copy({ ownership: 'walk', mountOptions: 'nouuid' }).catch(({ message }) => message)
    for (const way of ['give one a new UUID', 'ownership "idmap" or "none"']) expect(second).toContain(way)
    await copy({ ownership: 'idmap', mountOptions: 'nouuid' })
    expect(groups(stage.shown('b')).one).toBe(2000)
    await stage.unmount('b')
    execFileSync('xfs_admin', ['-U', 'generate', `${image}2`], { stdio: 'ignore' })
    await copy({ ownership: 'walk' })
    expect(groups(stage.shown('b')).one).toBe(2000)
  })

  it.each(['auto', 'idmap', 'none'])(
    'is not counted as a mount of the original in status with ownership %s',
    async (ownership) => {
      await original({ ownership: 'walk' })
      expect(await counted()).toEqual([1])
      await copy({ ownership, mountOptions: 'nouuid' })
      expect(await counted()).toEqual([1])
      await stage.unmount('a')
      expect(await counted()).toEqual([0])
    },
  )

  it('does not prevent the restore of the original', async () => {
    await original({ ownership: 'walk', restoreOnUnmount: 'true' })
    await copy({ ownership: 'idmap', mountOptions: 'nouuid' })
    await stage.unmount('a')
    expect(await counted()).toEqual([])
    await stage.unmount('b')
    await original({ ownership: 'none' })
    expect(groups(stage.shown('a')).one).toBe(ON_DISK)
  })
})
