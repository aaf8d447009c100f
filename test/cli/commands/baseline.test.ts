import { afterEach, beforeEach, expect, it } from 'vitest'
import { runVerb } from '../../../src/cli/commands/index.ts'
import { volumeRecords } from '../../../src/state/volume-record.ts'
import { memoryStage, onEveryStage, type Stage } from '../../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../../helpers/tree.ts'
import { Killed } from '../../memory-host/world.ts'

const TREE = [...SIX_FILES, 'dir sub 0750 7', 'file sub/suid 4755', 'file sub/sgid 2755', 'file sub/right 0600 2000']

/** A directory of a node, what people and pods do with it, and what its inodes are. */
class Volume {
  readonly stage: Stage
  readonly source: string

  constructor(stage: Stage) {
    this.stage = stage
    this.source = `${stage.top}/volumes/data`
    makeTree(stage.fs, this.source, TREE)
  }

  apply(group: number, access: 'keep' | 'grant' = 'keep') {
    const fsGroup = { groupId: group, access, changePolicy: 'OnRootMismatch' } as const
    return runVerb(this.stage.session(), { verb: 'apply', directory: this.source, fsGroup })
  }

  restore() {
    const target = { directory: this.source }
    return runVerb(this.stage.session(), { verb: 'restore', target, isDry: false, isForced: false })
  }

  mount(pod: string, group: number, more: Record<string, string> = {}) {
    const options = { 'kubernetes.io/fsGroup': String(group), ownership: 'walk', restoreOnUnmount: 'true' }
    return this.stage.mount(pod, { source: this.source, ...options, ...more })
  }

  state() {
    const listed = listTree(this.stage.fs, this.source)
    return { groups: groups(listed), modes: modes(listed) }
  }

  recorded() {
    const place = `${this.stage.config.stateDir}/ownership`
    const names = this.stage.fs.existsSync(place) ? this.stage.fs.readdirSync(place) : []
    return names.flatMap((name) => volumeRecords.readUnlessDamaged(this.stage, String(name)) ?? [])
  }
}

onEveryStage('the state that apply sets', (open) => {
  let volume: Volume
  let original: ReturnType<Volume['state']>
  beforeEach(() => {
    volume = new Volume(open())
    original = volume.state()
  })
  afterEach(() => volume.stage.close())

  it('the last unmount with restoreOnUnmount restores the state set by apply, and a manual restore the first state', async () => {
    await volume.apply(2000)
    const applied = volume.state()
    expect(applied.groups.test1).toBe(2000)
    for (const [group, groupAccess] of [
      [3000, 'grant'],
      [4000, 'keep'],
      [2000, 'grant'],
    ] as const) {
      await volume.mount('a', group, { groupAccess })
      expect(volume.state()).not.toEqual(applied)
      await volume.stage.unmount('a')
      expect(volume.state()).toEqual(applied)
      expect(volume.recorded()).toMatchObject([{ group: 2000, complete: true, restorePending: false }])
    }
    expect(await volume.restore()).toMatchObject({ outcome: 'restored' })
    expect(volume.state()).toEqual(original)
    expect(volume.recorded()).toEqual([])
    await volume.mount('a', 3000)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(original)
  })

  it('the last unmount restores the modes that apply granted', async () => {
    await volume.apply(2000, 'grant')
    const applied = volume.state()
    await volume.mount('a', 3000)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(applied)
    await volume.restore()
    expect(volume.state()).toEqual(original)
  })

  it.each(['grant', 'keep'])(
    'the last unmount restores the state of an apply that ran while a pod was mounted (groupAccess %s)',
    async (groupAccess) => {
      await volume.mount('a', 2000, { groupAccess })
      await volume.apply(2000)
      const applied = volume.state()
      expect(applied.groups.test1).toBe(2000)
      await volume.stage.unmount('a')
      expect(volume.state()).toEqual(applied)
      await volume.restore()
      expect(volume.state()).toEqual(original)
      expect(volume.recorded()).toEqual([])
    },
  )

  it('after two applies, an unmount restores the state of the last apply, and a restore the first state', async () => {
    await volume.apply(2000)
    await volume.mount('a', 3000, { restoreOnUnmount: 'false' })
    await volume.stage.unmount('a')
    await volume.apply(4000)
    const applied = volume.state()
    await volume.mount('a', 5000)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(applied)
    await volume.restore()
    expect(volume.state()).toEqual(original)
  })

  it('the state set by apply excludes a file that was created later', async () => {
    await volume.apply(2000)
    const later = `${volume.source}/later`
    volume.stage.fs.writeFileSync(later, '')
    volume.stage.fs.chownSync(later, 0, 8)
    const before = volume.state()
    await volume.mount('a', 3000)
    expect(volume.state().groups.later).toBe(3000)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(before)
  })

  it('a volume with a record of an earlier version, without the state set by apply, returns to the first state', async () => {
    await volume.mount('a', 3000)
    for (const { baseline: _, ...record } of volume.recorded()) volumeRecords.write(volume.stage, record)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(original)
    await volume.apply(2000)
    const applied = volume.state()
    for (const { baseline: _, ...record } of volume.recorded()) volumeRecords.write(volume.stage, record)
    await volume.mount('a', 3000)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(original)
    await volume.apply(2000)
    await volume.mount('a', 3000)
    await volume.stage.unmount('a')
    expect(volume.state()).toEqual(applied)
  })
})

/** Kills a command in place of each of its effects in turn. @returns in how many places */
async function killEverywhere(
  prepare: (volume: Volume) => Promise<unknown>,
  command: (volume: Volume) => Promise<unknown>,
  check: (volume: Volume) => Promise<void>,
): Promise<number> {
  for (let at = 0; ; at++) {
    const volume = new Volume(memoryStage())
    await prepare(volume)
    const { world } = volume.stage
    if (world) world.killAt = at
    let isKilled = false
    try {
      await command(volume)
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      isKilled = true
    }
    world?.revive()
    await check(volume)
    if (!isKilled) return at
  }
}

it('an apply killed at any step keeps the first state, and the next apply sets the state that unmounts restore', async () => {
  const original = new Volume(memoryStage()).state()
  let applied: ReturnType<Volume['state']> | undefined
  const points = await killEverywhere(
    async () => {},
    (volume) => volume.apply(2000),
    async (volume) => {
      await volume.apply(2000)
      applied ??= volume.state()
      await volume.mount('a', 3000)
      await volume.stage.unmount('a')
      expect(volume.state()).toEqual(applied)
      await volume.restore()
      expect(volume.state()).toEqual(original)
    },
  )
  expect(points).toBeGreaterThan(15)
})

it('a second apply killed at any step leaves the state of the first or of the second apply', async () => {
  const points = await killEverywhere(
    (volume) => volume.apply(2000),
    (volume) => volume.apply(4000),
    async (volume) => {
      await volume.mount('a', 3000)
      await volume.stage.unmount('a')
      const { '.': root, ...others } = volume.state().groups
      expect([2000, 4000]).toContain(root)
      for (const group of Object.values(others)) expect(group).toBe(root)
    },
  )
  expect(points).toBeGreaterThan(15)
})

it('an unmount killed at any step is completed by the next unmount, and a later restore returns the first state', async () => {
  const original = new Volume(memoryStage()).state()
  let applied: ReturnType<Volume['state']> | undefined
  const points = await killEverywhere(
    async (volume) => {
      await volume.apply(2000)
      applied ??= volume.state()
      await volume.mount('a', 3000)
    },
    (volume) => volume.stage.unmount('a'),
    async (volume) => {
      await volume.stage.unmount('a')
      expect(volume.state()).toEqual(applied)
      await volume.restore()
      expect(volume.state()).toEqual(original)
      expect(volume.recorded()).toEqual([])
    },
  )
  expect(points).toBeGreaterThan(15)
})

it('a restore killed at any step drops the applied state if the restore has changed an inode', async () => {
  const original = new Volume(memoryStage()).state()
  let applied: ReturnType<Volume['state']> | undefined
  const points = await killEverywhere(
    async (volume) => {
      await volume.apply(2000)
      applied ??= volume.state()
    },
    (volume) => volume.restore(),
    async (volume) => {
      const isDropped = volume.state().groups.test1 !== 2000 || volume.recorded().every(({ baseline }) => !baseline)
      await volume.mount('a', 3000)
      await volume.stage.unmount('a')
      expect(volume.state()).toEqual(isDropped ? original : applied)
      await volume.restore()
      expect(volume.state()).toEqual(original)
    },
  )
  expect(points).toBeGreaterThan(15)
})
