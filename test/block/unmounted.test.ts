import * as fs from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GcDocument } from '../../src/cli/commands/gc.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import { listVolumesWithRecords } from '../../src/state/record-directories.ts'
import { detachDisks, makeImage } from '../helpers/disks.ts'
import { isRoot, kernelStage, type Stage } from '../helpers/stage.ts'

const suiteTitle = isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'

describe.skipIf(!isRoot)(`a walked image that no pod uses${suiteTitle}`, () => {
  let stage: Stage
  let image: string
  let volume: string
  beforeEach(async () => {
    stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: ['ext4'] })
    image = `${stage.top}/volumes/image`
    makeImage(image, 'ext4')
    await walk()
    ;[volume = ''] = listVolumesWithRecords(stage)
  })
  afterEach(() => {
    detachDisks()
    stage.close()
  })

  async function walk(more: Record<string, string> = {}): Promise<void> {
    const options = { source: image, 'kubernetes.io/fsType': 'ext4', 'kubernetes.io/fsGroup': '2000', ...more }
    await stage.mount('a', { ...options, ownership: 'walk' })
    await stage.unmount('a')
  }
  const gc = async () =>
    ((await runVerb(stage.session(), { verb: 'gc', isDry: true, forget: undefined })) as GcDocument).items.map(
      ({ reason }) => reason,
    )
  const restore = () => runVerb(stage.session(), { verb: 'restore', target: { volume }, isDry: false, isForced: false })

  it('is reported as not mounted by gc and restore, and no message advises to forget it', async () => {
    expect(await gc()).toEqual([
      `${image} is not mounted: mount it, then "modekeep restore ${volume}"; its next mount uses the records`,
    ])
    const refusal = await restore().catch(({ message }) => message)
    expect(refusal).toBe(
      `volume ${volume} cannot be found: ${image} is not mounted: mount it, then call this again; its next mount uses the records`,
    )
  })

  it('is reported as missing if its file was deleted, and as a different image if its file was replaced', async () => {
    fs.renameSync(image, `${image}.away`)
    expect(await gc()).toEqual([expect.stringContaining(`${image} is missing: put it back or mount it`)])
    await expect(restore()).rejects.toThrow(
      `cannot be found: ${image} is missing: put it back or mount it, then call this again;`,
    )
    makeImage(image, 'ext4')
    const forget = `"modekeep gc --forget ${volume}" removes its record`
    expect(await gc()).toEqual([expect.stringMatching(`${image} is another one now: .*${forget}`)])
    await expect(restore()).rejects.toThrow(`cannot be found: ${image} is another one now: put the former one back`)
  })
})
