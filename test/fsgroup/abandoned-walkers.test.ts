import { describe, expect, it } from 'vitest'
import { refuseManyAbandonedWalkers } from '../../src/fsgroup/conflicts.ts'
import { locateWalkerLock } from '../../src/state/lock-holders.ts'
import { tryLockRecordDirectory } from '../../src/state/locks.ts'
import { reservationRecords } from '../../src/state/process-records.ts'
import { locateVolumeRecords } from '../../src/state/record-directories.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'

const VOLUMES = ['ef53.1-2-3', 'ef53.1-3-3', 'ef53.1-4-3', 'ef53.1-5-3']

function abandon(stage: Stage, volume: string, pod: string) {
  stage.host.files.makeDirectory(locateVolumeRecords(stage, volume).path)
  reservationRecords.write(stage, { volume, pod, group: 2000, directory: `/pods/${volume}` })
  return stage.host.tryWorkerLock(locateWalkerLock(stage, volume))
}

describe('walkers that outlive their calls', () => {
  it('are limited to four for each namespace', () => {
    const stage = memoryStage()
    for (const volume of VOLUMES.slice(1)) abandon(stage, volume, `shop/${volume}`)
    expect(() => refuseManyAbandonedWalkers(stage.session(), 'shop/b')).not.toThrow()
    abandon(stage, VOLUMES[0] ?? '', 'shop/a')
    expect(() => refuseManyAbandonedWalkers(stage.session(), 'shop/b')).toThrow(
      /^the walks of 4 volumes of namespace shop were given up, and their processes still wait in the kernel/,
    )
    expect(() => refuseManyAbandonedWalkers(stage.session(), 'other/b')).not.toThrow()
    expect(() => refuseManyAbandonedWalkers(stage.session(), undefined)).not.toThrow()
  })

  it('keep the restore of a further volume pending once four exist, and the unmount of that volume succeeds', async () => {
    const stage = memoryStage()
    const source = `${stage.top}/volumes/data`
    stage.fs.mkdirSync(source, { recursive: true })
    const pod = { 'kubernetes.io/pod.namespace': 'shop', 'kubernetes.io/pod.name': 'web' }
    const walk = { ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' }
    await stage.mount('a', { source, ...walk, ...pod })
    for (const volume of VOLUMES) abandon(stage, volume, `shop/${volume}`)
    await stage.unmount('a')
    expect(stage.warnings).toEqual([
      expect.stringMatching(
        /^volume not restored, tried again at its next unmount: the walks of 4 volumes of namespace shop/,
      ),
    ])
    expect(stage.fs.statSync(source).gid).toBe(2000)
  })

  it('do not include walkers of running calls', () => {
    const stage = memoryStage()
    for (const volume of VOLUMES) {
      expect(tryLockRecordDirectory(stage, locateVolumeRecords(stage, volume))).toBeDefined()
      abandon(stage, volume, `shop/${volume}`)
    }
    expect(() => refuseManyAbandonedWalkers(stage.session(), 'shop/b')).not.toThrow()
  })
})
