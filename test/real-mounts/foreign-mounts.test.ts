import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseFlexVolumeRequest } from '../../src/config/request.ts'
import { mountPodVolume } from '../../src/mount/mount.ts'
import { unmountPodVolume } from '../../src/mount/unmount.ts'
import { volumeKindLookup } from '../../src/volume/index.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'

onKernelStages("a foreign mount outside of kubelet's volume directories", (open) => {
  let stage: Stage
  let directory: string
  beforeEach(() => {
    stage = open()
    directory = `${stage.top}/home`
    makeTree(stage.fs, `${stage.top}/volumes/data`, ['file a 0644'])
    stage.fs.mkdirSync(directory)
  })
  afterEach(() => stage.close())

  const session = () => ({ host: stage.host, config: stage.config, note: () => {}, warn: () => {} })
  const request = () =>
    parseFlexVolumeRequest(
      directory,
      JSON.stringify({ source: `${stage.top}/volumes/data` }),
      stage.config,
      volumeKindLookup,
    )

  it('is neither replaced nor unmounted by modekeep, and the message names the remedy', async () => {
    execFileSync('mount', ['-t', 'tmpfs', 'theirs', directory])
    try {
      stage.fs.writeFileSync(`${directory}/theirs`, '')
      await expect(mountPodVolume(session(), request())).rejects.toThrow(
        /no volume directory of kubelet's: unmount it first/,
      )
      await expect(unmountPodVolume(session(), directory)).rejects.toThrow(/is not modekeep's.*use umount/)
      expect(stage.fs.readdirSync(directory)).toEqual(['theirs'])
      expect(stage.fs.readdirSync(`${stage.config.stateDir}/mounts`)).toEqual([])
    } finally {
      execFileSync('umount', [directory])
    }
  })

  it('does not keep an operator from mounting and unmounting by hand at any path', async () => {
    await mountPodVolume(session(), request())
    await mountPodVolume(session(), request())
    expect(stage.fs.readdirSync(directory)).toEqual(['a'])
    await unmountPodVolume(session(), directory)
    expect(stage.fs.readdirSync(directory)).toEqual([])
    await unmountPodVolume(session(), directory)
  })
})
