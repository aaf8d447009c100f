import * as fs from 'node:fs'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { sized } from '../helpers/size.ts'
import { onKernelStages } from '../helpers/stage.ts'
import { groups, listTree, modes } from '../helpers/tree.ts'
import { applyToDirectory, restoreDirectory, type Walked } from '../helpers/walk.ts'
import { Actors } from './actors.ts'
import { type Arena, makeArena } from './arena.ts'
import { journalOf, race } from './race.ts'

const TEST_ROUNDS = sized(25, 125, 1000)
const MOST_TRIES = 20_000
/** What a report may say of the arena: the first three also at rest. */
const REPORTED = [
  'symlink',
  'device',
  'linked outside the volume',
  'gone or replaced during the walk',
  'directory gone or replaced during the walk',
  'moved during the walk',
  'changed during the walk',
]

onKernelStages('a walk under attack', (open) => {
  let arena: Arena
  let walked: Walked
  beforeEach(() => {
    const stage = open()
    onTestFinished(() => stage.close())
    arena = makeArena(stage.top)
    walked = { directory: arena.volume, journal: journalOf(stage) }
  })

  async function attack(...actors: string[][]): Promise<void> {
    const before = listTree(fs, arena.volume)
    const outside = arena.outside()
    const handles = fs.readdirSync('/proc/self/fd').length
    const reasons = await race(walked, { rounds: TEST_ROUNDS }, ...actors)
    expect.soft(arena.outside()).toEqual(outside)
    expect.soft(fs.readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(handles)
    expect.soft(Object.keys(reasons).filter((reason) => !REPORTED.includes(reason))).toEqual([])
    // What a restore did not meet is still recorded: in peace, everything gets its group and everything goes back.
    await applyToDirectory(walked, 2000)
    expect.soft(groups(listTree(fs, arena.volume))).toMatchObject({ 'd0/f0': 2000, s0: 2000, p0: 2000, 'x0/a': 2000 })
    const { left } = await restoreDirectory(walked)
    expect.soft(left).toEqual({})
    const after = listTree(fs, arena.volume)
    expect.soft(groups(after)).toEqual(groups(before))
    expect.soft(modes(after)).toEqual(modes(before))
    expect.soft(arena.outside()).toEqual(outside)
  }

  it('does not leave the volume if directories and files are exchanged with links to the node', () =>
    attack(['exchange', ...arena.swapLinks.slice(0, 8)], ['exchange', ...arena.swapLinks.slice(8)]))

  it('skips devices and files linked outside, also if they are exchanged with files', () =>
    attack(['exchange', ...arena.swapSpecials]))

  it('does not leave the volume if directories are moved out of the volume and back', () =>
    attack(['move', ...arena.moveOut]))

  it('counts no name twice of a file linked outside if its directory is moved ahead of the walk', () =>
    attack(['exchange', ...arena.swapParents]))

  it('that used paths in place of handles would be led out of the volume', async () => {
    const actors = new Actors()
    await actors.start('exchange', ...arena.swapLinks)
    for (let tries = 0; tries < MOST_TRIES && !arena.isLedOut(2000); tries++) walkByPath(arena.volume, 2000)
    await actors.stop()
    expect(arena.isLedOut(2000)).toBe(true)
  })
})

/** Every call looks the whole path up again. */
function walkByPath(path: string, group: number): void {
  try {
    if (fs.lstatSync(path).isDirectory()) for (const name of fs.readdirSync(path)) walkByPath(`${path}/${name}`, group)
    fs.lchownSync(path, 0, group)
  } catch {
    // Exchanged meanwhile: the next name.
  }
}
