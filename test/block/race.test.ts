import * as fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { listLeftLoopDevices, makeImage } from '../helpers/disks.ts'
import { sized } from '../helpers/size.ts'
import { isRoot, kernelStage } from '../helpers/stage.ts'
import { Actors } from '../race/actors.ts'

const TEST_ROUNDS = sized(100, 300, 3000)
const suiteTitle = `a source that is exchanged while it is mounted${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(suiteTitle, () => {
  it('is never mounted through a link, and never under the identity of another disk', async () => {
    const stage = kernelStage('tmpfs')
    stage.allow({ fsTypes: ['squashfs'] })
    const at = (name: string) => `${stage.top}/volumes/${name}`
    makeImage(`${stage.top}/outside`, 'squashfs', 'outside\n')
    makeImage(at('image'), 'squashfs', 'inside\n')
    makeImage(at('other'), 'squashfs', 'other\n')
    fs.symlinkSync('../outside', at('link'))
    const running = new Actors()
    await running.start('exchange', at('image'), at('link'), at('image'), at('other'))
    const seen = { inside: 0, other: 0, refused: 0 }
    for (let round = 0; round < TEST_ROUNDS; round++) {
      try {
        await stage.mount('a', { source: at('image'), 'kubernetes.io/fsType': 'squashfs' })
        const content = fs.readFileSync(`${stage.podDirectory('a')}/one`, 'utf8').trim()
        expect(['inside', 'other']).toContain(content)
        seen[content as 'inside' | 'other']++
      } catch (error) {
        if (!/symbolic link/.test((error as Error).message)) throw error
        seen.refused++
      }
      if (round % 3 === 2) await stage.unmount('a')
    }
    const [turns = 0] = await running.stop()
    await stage.unmount('a')
    expect(listLeftLoopDevices(stage.top)).toEqual([])
    stage.close()
    expect(turns).toBeGreaterThan(TEST_ROUNDS)
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0)
  })
})
