import { dirname } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { type HealDocument, healAfterEachChange, type NodeWatcher } from '../../../src/cli/commands/heal.ts'
import type { RunHeal } from '../../../src/repair/watch.ts'
import { memoryStage, type Stage } from '../../helpers/stage.ts'
import { makeTree, SIX_FILES } from '../../helpers/tree.ts'

let stage: Stage
let source: string
let told: HealDocument[]
beforeEach(() => {
  stage = memoryStage()
  stage.config = { ...stage.config, logFile: `${stage.top}/log` }
  source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, SIX_FILES)
  told = []
})

/** Watches as a node does that changes only when the test says so. */
async function watching(
  play: (heal: RunHeal, ...told: Parameters<NodeWatcher>) => Promise<void>,
  config = stage.config,
) {
  await healAfterEachChange(
    { ...stage.session(), config },
    { verb: 'heal', isDry: false, isWatching: true, listen: undefined, kubelet: undefined },
    {
      fs: stage.fs,
      configNow: async () => stage.config,
      report: (found) => told.push(found),
      watch: (heal, more) => play(heal, heal, more),
      serveHealth: async () => ({ [Symbol.dispose]() {} }),
      metrics: async () => '',
    },
  )
}
const logged = () =>
  stage.fs.existsSync(stage.config.logFile)
    ? stage.fs
        .readFileSync(stage.config.logFile, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : []

describe('heal --watch', () => {
  it('reports its findings at the start, prints nothing while nothing changes, and names the paths to watch', async () => {
    await stage.mount('a', { source })
    await watching(async (heal) => {
      const { watched, isUnsettled } = await heal()
      expect(watched).toContain(`${stage.top}/volumes`)
      expect(isUnsettled).toBe(false)
      await heal()
    })
    expect(told).toMatchObject([{ mounts: [{ state: 'healthy' }], subPaths: [] }])
    expect(logged()).toEqual([])
  })

  it('reports each action once, and checks the mounts again soon', async () => {
    await stage.mount('a', { source })
    const directory = stage.podDirectory('a')
    await watching(async (heal) => {
      stage.host.mounts.detach(stage.host.inodes.openTrusted(dirname(directory)), Buffer.from('v'))
      expect(await heal()).toMatchObject({ isUnsettled: true })
      await heal()
    })
    expect(told.map(({ mounts }) => mounts.map(({ state, action }) => [state, action]))).toEqual([
      [['missing', 'mounted']],
    ])
    expect(logged()).toMatchObject([{ verb: 'heal', outcome: 'Success' }])
  })

  it('logs a repeated failure once even if numbers in its text differ, and again after a successful heal', async () => {
    await watching(async (heal, _heal, { failed }) => {
      failed(new Error('process 12 is in the way'))
      failed(new Error('process 345 is in the way'))
      await heal()
      failed(new Error('process 6 is in the way'))
    })
    expect(logged().map(({ error }) => error)).toEqual(['process 12 is in the way', 'process 6 is in the way'])
  })
})
