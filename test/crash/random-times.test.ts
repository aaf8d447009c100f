import * as fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createRandom } from '../helpers/numbers.ts'
import { PATIENCE, sized } from '../helpers/size.ts'
import { isRoot } from '../helpers/stage.ts'
import { makeTree } from '../helpers/tree.ts'
import { Crashing } from './every-call.ts'
import { CAPABILITY, owned, setAttribute, snapshot } from './volume.ts'

// Kills that found the call still at work; some do not, the more the less even the machine is.
const DEATHS = sized(4, 25, 300)
const FILES = 1200
const title = `calls killed at random times${isRoot ? '' : ' (skipped: mounts need root; run "sudo npm test")'}`

describe.skipIf(!isRoot)(title, () => {
  it(
    'up to three calls killed at random times show no incomplete volume and add no permission, and a restore is complete',
    async () => {
      // MODEKEEP_TEST_SEED repeats a run's choices, if not the machine's timing.
      const seed = Number(process.env.MODEKEEP_TEST_SEED ?? Date.now() % 1e6)
      const random = createRandom(seed)
      const on = new Crashing('tmpfs')
      const specs = Array.from({ length: FILES }, (_, n) => {
        const mode = n % 9 ? '0640' : n % 2 ? '4750' : '2711'
        return `file d${n % 20}/f${n} ${mode} ${n % 3 ? 0 : 77}`
      })
      makeTree(fs, on.source, specs)
      for (let n = 1; n < 40; n += 2) setAttribute(`${on.source}/d${n % 20}/f${n}`, 'security.capability', CAPABILITY)
      on.original = snapshot(on.source)
      on.whole = owned(on.original, on.source)
      const calls = { mount: on.mountCall('a'), unmount: ['unmount', on.node.podDirectory('a')] }
      const times = { mount: await duration(on, calls.mount), unmount: await duration(on, calls.unmount) }

      let [deaths, tried] = [0, 0]
      while (deaths < DEATHS) {
        if (random() < 0.5) await on.mount('a')
        const story: string[] = []
        for (let more = 1 + Math.floor(random() * 3); more > 0; more--) {
          // Mostly the call that has something to do.
          const verb = on.node.layers('a').length > 0 === random() < 0.8 ? 'unmount' : 'mount'
          const delay = random() * times[verb]
          const { child, ended } = on.node.start(calls[verb])
          await Promise.race([sleep(delay), ended])
          child.kill('SIGKILL')
          const died = (await ended).code === null
          tried++
          if (died) deaths++
          story.push(`${verb} ${died ? 'killed' : 'done'} after ${delay.toFixed(1)} ms`)
          soundAfter(story, seed, () => on.expectSound(['a']))
        }
        if (random() < 0.5) await on.unmount('a')
        await on.mount('a')
        await on.unmount('a')
        soundAfter(story, seed, () => on.expectOriginal())
      }
      console.log(`random times: ${tried} kills tried, ${deaths} deaths, all survived; seed ${seed}`)
    },
    PATIENCE,
  )

  /** Milliseconds, of a call that does its work. */
  async function duration(on: Crashing, args: readonly string[]): Promise<number> {
    const start = performance.now()
    expect(await on.node.call(...args)).toEqual({ status: 'Success' })
    return performance.now() - start
  }

  function soundAfter(story: string[], seed: number, check: () => void): void {
    try {
      check()
    } catch (error) {
      throw new Error(`seed ${seed}, ${story.join(', ')}`, { cause: error })
    }
  }
})
