import { describe, expect, it } from 'vitest'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'

/**
 * A process that dies in place of its n-th effect, for every n, in memory: the order of effects is right.
 * That the kernel's own effects survive a real SIGKILL is shown in sigkill.test.ts.
 */
const TREE = [...SIX_FILES, 'dir sub 0750 7', 'file sub/suid 4755', 'file sub/other 0600 9']

function arrange(): { stage: Stage; source: string; asked: Record<string, string> } {
  const stage = memoryStage()
  const source = `${stage.top}/volumes/data`
  makeTree(stage.fs, source, TREE)
  makeTree(stage.fs, `${stage.top}/volumes/other`, TREE)
  return {
    stage,
    source,
    asked: { source, ownership: 'walk', 'kubernetes.io/fsGroup': '2000', restoreOnUnmount: 'true' },
  }
}

/** Kills `call` at each of its actions in turn, then checks with `after`; returns at how many. */
async function killEverywhere(
  prepare: (stage: Stage, asked: Record<string, string>) => Promise<void>,
  call: (stage: Stage, asked: Record<string, string>) => Promise<unknown>,
  after: (stage: Stage, source: string, asked: Record<string, string>) => Promise<void>,
): Promise<number> {
  for (let n = 0; ; n++) {
    const { stage, source, asked } = arrange()
    await prepare(stage, asked)
    if (stage.world) stage.world.killAt = n
    const died = await call(stage, asked).then(
      () => false,
      (error) => {
        if (!(error instanceof Killed)) throw error
        return true
      },
    )
    stage.world?.revive()
    // Warnings of the crashed process are lost.
    stage.warnings.length = 0
    await after(stage, source, asked)
    if (!died) return n
  }
}

const original = (() => {
  const { stage, source } = arrange()
  const listed = listTree(stage.fs, source)
  return { modes: modes(listed), groups: groups(listed) }
})()

async function mountedWhole(stage: Stage, source: string, asked: Record<string, string>): Promise<void> {
  const before = stage.layers('a').length
  expect(before).toBeLessThanOrEqual(1)
  if (before === 1) expect(groups(stage.shown('a'))).toMatchObject({ '.': 2000, test1: 2000, 'sub/suid': 2000 })
  await stage.mount('a', asked)
  expect(stage.layers('a')).toHaveLength(1)
  expect(new Set(Object.values(groups(listTree(stage.fs, source))))).toEqual(new Set([2000]))
  expect(modes(listTree(stage.fs, source))).toEqual({ ...original.modes, '.': '2755', sub: '2750' })
  await restored(stage, source)
}

async function expectWell(stage: Stage): Promise<void> {
  expect((await stage.heal()).filter(({ state }) => state !== 'healthy')).toEqual([])
}

async function restored(stage: Stage, source: string): Promise<void> {
  await stage.unmount('a')
  expect(stage.layers('a')).toEqual([])
  expect(groups(listTree(stage.fs, source))).toEqual(original.groups)
  expect(modes(listTree(stage.fs, source))).toEqual(original.modes)
  expect(stage.fs.readdirSync(`${stage.config.stateDir}/mounts`)).toEqual([])
  expect(stage.warnings).toEqual([])
}

describe('a call that crashes at any of its effects', () => {
  it('during a mount shows nothing or the complete volume, the next mount completes, and a restore returns the first state', async () => {
    const points = await killEverywhere(
      async () => {},
      (stage, asked) => stage.mount('a', asked),
      mountedWhole,
    )
    expect(points).toBeGreaterThan(25)
  })

  it('during a mount can be followed by the unmount, which returns the first state', async () => {
    await killEverywhere(
      async () => {},
      (stage, asked) => stage.mount('a', asked),
      async (stage, source, asked) => {
        const recorded = stage.fs.existsSync(`${stage.config.stateDir}/mounts`)
        await stage.unmount('a')
        expect(stage.layers('a')).toEqual([])
        if (!recorded) return
        expect(stage.fs.readdirSync(`${stage.config.stateDir}/mounts`)).toEqual([])
        // All changes before the crash were recorded, and a later call for the volume restores them.
        await stage.mount('a', asked)
        await restored(stage, source)
      },
    )
  })

  it('during a mount can be followed by heal, which leaves nothing incomplete', async () => {
    await killEverywhere(
      async () => {},
      (stage, asked) => stage.mount('a', asked),
      async (stage, source, asked) => {
        await stage.heal()
        await expectWell(stage)
        await mountedWhole(stage, source, asked)
      },
    )
  })

  it('during a replacement can be followed by heal, which leaves one complete mount', async () => {
    await killEverywhere(
      (stage, asked) => stage.mount('a', { ...asked, source: `${stage.top}/volumes/other` }),
      (stage, asked) => stage.mount('a', asked),
      async (stage) => {
        await stage.heal()
        await expectWell(stage)
        expect(stage.layers('a')).toHaveLength(1)
        expect(groups(stage.shown('a'))).toMatchObject({ '.': 2000, test1: 2000, 'sub/suid': 2000 })
      },
    )
  })

  it('during heal is completed by the next heal', async () => {
    const points = await killEverywhere(
      async (stage, asked) => {
        await stage.mount('a', asked)
        stage.reboot()
        await stage.mount('a', { ...asked, source: `${stage.top}/volumes/other` })
        await stage.mount('b', { ...asked, source: `${stage.top}/volumes/other` })
        for (const mount of stage.world?.mounts.slice(1) ?? []) mount.at = undefined
        stage.fs.rmSync(`${stage.top}/pods/b`, { recursive: true })
      },
      async (stage) => {
        const died = (await stage.heal()).find(({ reason }) => /^killed before|^dead already/.test(reason))
        if (died) throw new Killed(died.reason)
      },
      async (stage) => {
        await stage.heal()
        await expectWell(stage)
        expect(stage.layers('a')).toHaveLength(1)
        expect(stage.layers('b')).toEqual([])
      },
    )
    expect(points).toBeGreaterThan(10)
  })

  it('during an unmount with a restore is completed by the next unmount', async () => {
    const points = await killEverywhere(
      (stage, asked) => stage.mount('a', asked),
      (stage) => stage.unmount('a'),
      (stage, source) => restored(stage, source),
    )
    expect(points).toBeGreaterThan(15)
  })

  it('during a replacement leaves the old or the new mount at every moment, and the next call completes it', async () => {
    const points = await killEverywhere(
      (stage, asked) => stage.mount('a', { ...asked, source: `${stage.top}/volumes/other` }),
      (stage, asked) => stage.mount('a', asked),
      async (stage, source, asked) => {
        expect(stage.layers('a').length).toBeGreaterThanOrEqual(1)
        await stage.mount('a', asked)
        expect(stage.layers('a')).toHaveLength(1)
        expect(new Set(Object.values(groups(listTree(stage.fs, source))))).toEqual(new Set([2000]))
      },
    )
    expect(points).toBeGreaterThan(20)
  })
})
