import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { sized } from '../helpers/size.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { identityAt } from '../kernel/path/ways.ts'
import { Actors } from './actors.ts'
import { makeArena, RACES } from './sub-path-races.ts'

/** Mounts and unmounts of each race; some are refused, and both must have been seen. */
const TEST_ROUNDS = sized(40, 150, 1500)
const MOST_ROUNDS = 5000

/**
 * All outcomes that are allowed: the call mounts an inode that was in the source before it all began, or it is refused and
 * the directory is empty and unmounted. Nothing outside is ever mounted.
 */
onKernelStages('a subPath that is mounted while its source changes', (open) => {
  let stage: Stage
  let arena: string
  beforeEach(() => {
    stage = open()
    onTestFinished(() => stage.close())
    arena = makeArena(`${stage.top}/volumes`)
  })

  describe.each(RACES)('$name', ({ actor: [how, ...paths], subPath, found, refused }) => {
    it('mounts a directory inside the source, or fails with the reason', async () => {
      const inside = found.map((path) => identityAt(stage.host, `${arena}/${path}`))
      const directory = stage.podDirectory('a')
      const actors = new Actors()
      await actors.start(how, ...paths.map((path) => `${arena}/${path}`))
      const seen = { mounted: 0, refused: 0 }
      const wrong: string[] = []
      const isEnough = () => seen.mounted > 0 && seen.refused > 0
      for (let round = 0; round < TEST_ROUNDS || (!isEnough() && round < MOST_ROUNDS); round++) {
        try {
          await stage.mount('a', { source: `${arena}/data`, subPath })
          seen.mounted++
          const shown = identityAt(stage.host, directory)
          if (!inside.includes(shown)) wrong.push(`mounted ${shown}`)
        } catch (error) {
          seen.refused++
          const message = (error as Error).message
          if (!refused.test(message)) wrong.push(message)
          if (stage.layers('a').length > 0 || fs.readdirSync(directory).length > 0) wrong.push('something is left')
        }
        await stage.unmount('a')
      }
      await actors.stop()
      expect(wrong).toEqual([])
      expect(isEnough(), 'the actor was too slow to race with').toBe(true)
    })
  })
})
