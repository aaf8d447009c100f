import { expect, it } from 'vitest'
import type { ApplyDocument } from '../../src/cli/commands/apply.ts'
import { runVerb } from '../../src/cli/commands/index.ts'
import type { PlanDocument } from '../../src/cli/commands/plan.ts'
import type { Session } from '../../src/state/session.ts'
import { memoryStage, type Stage } from '../helpers/stage.ts'
import { groups, listTree, makeTree, modes, SIX_FILES } from '../helpers/tree.ts'
import { Killed } from '../memory-host/world.ts'

const CAPABILITY = 'security.capability'
const TREE = [...SIX_FILES, 'dir sub 0750 7', 'file sub/suid 4755', 'file sub/power 0755', 'file sub/right 0600 2000']

function arrange(): { stage: Stage; session: Session; directory: string } {
  const stage = memoryStage()
  const directory = `${stage.top}/elsewhere/data`
  makeTree(stage.fs, directory, TREE)
  const { inodes } = stage.host
  inodes.setAttribute(inodes.openLinkFree(`${directory}/sub/power`), CAPABILITY, Buffer.from('cap'))
  return { stage, session: { host: stage.host, config: stage.config, note() {}, warn() {} }, directory }
}

function found({ fs, host }: Stage, directory: string) {
  const power = host.inodes.getAttribute(host.inodes.openLinkFree(`${directory}/sub/power`), CAPABILITY)
  const listed = listTree(fs, directory)
  return { modes: modes(listed), groups: groups(listed), power: power && Buffer.from(power).toString() }
}

const fsGroup = { groupId: 2000, access: 'keep', changePolicy: 'OnRootMismatch' } as const

/** Lets the command die in place of each of its effects in turn, and then looks; returns in how many places. */
async function killEverywhere(
  verb: 'apply' | 'restore',
  after: (session: Session, directory: string, stage: Stage) => Promise<void>,
): Promise<number> {
  for (let n = 0; ; n++) {
    const { stage, session, directory } = arrange()
    if (verb === 'restore') await runVerb(session, { verb: 'apply', directory, fsGroup })
    if (stage.world) stage.world.killAt = n
    let died = false
    try {
      await runVerb(
        session,
        verb === 'apply'
          ? { verb, directory, fsGroup }
          : { verb, target: { directory }, isDry: false, isForced: false },
      )
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      died = true
    }
    stage.world?.revive()
    await after(session, directory, stage)
    if (!died) return n
  }
}

it.each(['apply', 'restore'] as const)(
  'after a crash at any step of %s, "modekeep plan" reports the same changes as the next "modekeep apply"',
  async (verb) => {
    const points = await killEverywhere(verb, async (session, directory) => {
      const planned = (await runVerb(session, { verb: 'plan', directory, fsGroup })) as PlanDocument
      const done = (await runVerb(session, { verb: 'apply', directory, fsGroup })) as ApplyDocument
      expect({ walks: planned.walks, report: planned.report }).toEqual({ walks: done.walked, report: done.report })
    })
    expect(points).toBeGreaterThan(15)
  },
)

it.each(['apply', 'restore'] as const)(
  'after a crash at any step of %s, "modekeep plan" changes nothing',
  async (verb) => {
    await killEverywhere(verb, async (session, directory, stage) => {
      const before = stage.world?.actions.length
      await runVerb(session, { verb: 'plan', directory, fsGroup })
      // What makes its own mount.
      expect(stage.world?.actions.slice(before).map((action) => action.split(' ')[0])).toEqual([
        'clone-tree',
        'set-flags',
      ])
    })
  },
)

it.each(['apply', 'restore'] as const)(
  'after a crash at any step of %s, a restore returns every inode to its first state',
  async (verb) => {
    const { stage, directory } = arrange()
    const original = found(stage, directory)
    await killEverywhere(verb, async (session, at, where) => {
      await runVerb(session, { verb: 'restore', target: { directory: at }, isDry: false, isForced: false })
      expect(found(where, at)).toEqual(original)
    })
  },
)
