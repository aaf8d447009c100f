import * as fs from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { sized } from '../helpers/size.ts'
import { onKernelStages } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes } from '../helpers/tree.ts'
import { applyToDirectory, restoreDirectory, type Walked } from '../helpers/walk.ts'
import { Actors } from './actors.ts'
import { journalOf, race } from './race.ts'

const GONE: readonly [string, string] = [
  'gone or replaced during the walk',
  'directory gone or replaced during the walk',
]
const TEST_ROUNDS = sized(20, 60, 600)
const STABLE = Array.from({ length: 40 }, (_, n) => `file d${n % 3}/stable${n} ${n % 2 ? '0640' : '4750'} 5`)

onKernelStages('files that are created and deleted during a walk', (open) => {
  it('do not affect other files: all remaining files get the group, and are restored', async () => {
    const stage = open()
    onTestFinished(() => stage.close())
    const directory = `${stage.top}/volumes/data`
    makeTree(fs, directory, STABLE)
    const walked: Walked = { directory, journal: journalOf(stage) }
    const original = listTree(fs, directory)
    const handles = fs.readdirSync('/proc/self/fd').length
    const actors = new Actors()
    await actors.start('churn', `${directory}/d0`)
    await actors.start('churn', directory)
    for (let round = 0; round < TEST_ROUNDS; round++) {
      await applyToDirectory(walked, 2000)
      for (const path of Object.keys(original)) {
        expect(fs.lstatSync(`${directory}/${path}`).gid, path).toBe(2000)
      }
      const { left } = await restoreDirectory(walked)
      expect(Object.keys(left).filter((reason) => !GONE.includes(reason))).toEqual([])
    }
    for (const rounds of await actors.stop()) expect(rounds).toBeGreaterThan(TEST_ROUNDS)
    const after = listTree(fs, directory)
    expect(groups(after)).toEqual(groups(original))
    expect(modes(after)).toEqual(modes(original))
    expect(fs.readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(handles)
  })

  it('are skipped and reported, and never confused with the files that they replaced', async () => {
    const stage = open()
    onTestFinished(() => stage.close())
    const directory = `${stage.top}/volumes/data`
    makeTree(fs, directory, ['file d0/stable 0640 5'])
    const [expected] = GONE
    const walked = { directory, journal: journalOf(stage) }
    const reasons = await race(walked, { rounds: TEST_ROUNDS, expected }, ['churn', `${directory}/d0`])
    expect(Object.keys(reasons).filter((reason) => !GONE.includes(reason))).toEqual([])
  })
})
