import * as fs from 'node:fs'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Handle, Inodes } from '../../src/kernel/host.ts'
import { sized } from '../helpers/size.ts'
import { onKernelStages, type Stage } from '../helpers/stage.ts'
import { identity, identityAt, outcomeOf, WAYS } from '../kernel/path/ways.ts'
import { Actors } from './actors.ts'
import { makeArena, RACES, type Race } from './sub-path-races.ts'

/** At least, of each way in each race; and on until both kinds of outcome were seen. */
const TEST_ROUNDS = sized(500, 1500, 15_000)
const MOST_ROUNDS = 100_000

onKernelStages('a subPath that is resolved while its source changes', (open) => {
  let stage: Stage
  let arena: string
  let root: Handle
  beforeEach(() => {
    stage = open()
    onTestFinished(() => stage.close())
    arena = makeArena(stage.top)
    root = stage.host.inodes.openLinkFree(`${arena}/data`)
    onTestFinished(() => stage.host.inodes.close(root))
  })

  const at = (paths: readonly string[]) => paths.map((path) => identityAt(stage.host, `${arena}/${path}`))

  async function start([how, ...paths]: Race['actor']): Promise<Actors> {
    const actors = new Actors()
    await actors.start(how, ...paths.map((path) => `${arena}/${path}`))
    return actors
  }

  /** One exchange as by exchange.c, for a test without a concurrent process. */
  function act([how, from, to]: Race['actor']): void {
    const [a, b, aside] = [`${arena}/${from}`, `${arena}/${to}`, `${arena}/aside`]
    if (how === 'exchange') fs.renameSync(b, aside)
    fs.renameSync(a, b)
    if (how === 'exchange') fs.renameSync(aside, a)
  }

  describe.each(RACES)('$name', ({ actor, subPath, found, refused }) => {
    it.each(WAYS.slice(0, 2))('opens an inode inside the source or is refused, %s', async (_name, way) => {
      const inside = at(found)
      const inodes = way(stage.host.inodes)
      const handles = fs.readdirSync('/proc/self/fd').length
      const seen = new Map<string, number>()
      const sawBoth = () => new Set([...seen.keys()].map((outcome) => inside.includes(outcome))).size === 2
      const actors = await start(actor)
      for (let round = 0; round < TEST_ROUNDS || (!sawBoth() && round < MOST_ROUNDS); round++) {
        const outcome = outcomeOf(inodes, root, subPath)
        seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      }
      await actors.stop()
      const others = [...seen.keys()].filter((outcome) => !inside.includes(outcome))
      expect(others.filter((outcome) => !refused.test(outcome))).toEqual([])
      expect(sawBoth(), 'the actor was too slow to race with').toBe(true)
      expect(fs.readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(handles)
    })

    it('opens an inode inside the source or is refused, at whichever step the change happens', () => {
      const inside = at(found)
      const inodes = WAYS[1]?.[1](stage.host.inodes) ?? stage.host.inodes
      const outcomes: string[] = []
      for (let step = 0; ; step++) {
        let calls = 0
        const turn = () => calls++ === step && act(actor)
        const outcome = outcomeOf(before(inodes, turn), root, subPath)
        if (calls <= step) break
        outcomes.push(inside.includes(outcome) ? 'inside' : outcome)
        const [how, from, to] = actor
        act(how === 'move' ? [how, to, from] : actor)
      }
      expect(outcomes.length).toBeGreaterThan(1)
      expect(outcomes.filter((outcome) => outcome !== 'inside' && !refused.test(outcome))).toEqual([])
      expect(outcomes[0]).toMatch(refused)
      expect(outcomes.at(-1)).toBe('inside')
    })
  })

  it('would be led out if its real path were checked and then opened', async () => {
    const [outside] = at(['outside/b/f'])
    const actors = await start(['exchange', 'data/a', 'data/to-outside'])
    let found: string | undefined
    for (let round = 0; found !== outside && round < MOST_ROUNDS; round++) {
      found = checkedThenOpened(stage.host.inodes, `${arena}/data`, 'a/b/f')
    }
    await actors.stop()
    expect(found).toBe(outside)
  })
})

/** Does something before each step of a way by parts. */
function before(inodes: Inodes, turn: () => void): Inodes {
  const then =
    <A extends unknown[], R>(call: (...args: A) => R) =>
    (...args: A) => {
      turn()
      return call(...args)
    }
  return {
    ...inodes,
    openEntry: then(inodes.openEntry),
    stat: then(inodes.stat),
    readLink: then(inodes.readLink),
    pathOf: then(inodes.pathOf),
  }
}

function checkedThenOpened(inodes: Inodes, source: string, subPath: string): string | undefined {
  const path = fs.realpathSync.native(`${source}/${subPath}`)
  if (!path.startsWith(`${source}/`)) return undefined
  const fd = fs.openSync(path, 'r')
  try {
    return identity(inodes, fd as Handle)
  } finally {
    fs.closeSync(fd)
  }
}
