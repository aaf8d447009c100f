import * as fs from 'node:fs'
import { release } from 'node:os'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { readSeed, SEED_VARIABLE } from '../helpers/door-seed.ts'
import { addSkipReason, cannotMountWith } from '../helpers/needs.ts'
import { type ActionName, createAction, MomentFailure, type PowerAction } from './actions.ts'
import type { PowerCut } from './disk-log.ts'
import { chooseMoments, MOMENTS_VARIABLE, selectMomentNumbers } from './moments.ts'
import { type FsType, PowerNode, type StateDisk } from './power-node.ts'

export interface Combination {
  fsType: FsType
  stateDisk: StateDisk
  action: ActionName
  /** The volume's file system is synced all the time. */
  isCommitting?: boolean
  /** Number of moments. */
  moments: number
}

/** Names a file that gets a line of JSON for each combination. */
const RESULTS_VARIABLE = 'MODEKEEP_POWER_RESULTS'

/**
 * Records one run of an action, and cuts its power at many moments: a test for each. The seed chooses the moments, but
 * the recorded writes differ a little from run to run.
 */
export function describePowerCuts(combination: Combination): void {
  const { fsType, stateDisk, moments: count } = combination
  const numbers = selectMomentNumbers(count)
  if (numbers.length === 0) return
  const skipped = cannotMountWith(`mkfs.${fsType}`, 'btrfs', 'mkfs.ext4', 'getfattr', 'setfattr', 'setpriv', 'prlimit')
  const name = `${fsType}, state on ${stateDisk}, ${formatAction(combination)}`

  describe.skipIf(skipped !== '')(addSkipReason(name, skipped), () => {
    const seed = readSeed()
    const figures = { moments: 0, flushes: 0, failed: 0, lost: 0 }
    let node: PowerNode | undefined
    let run: RecordedRun | undefined

    beforeAll(async () => {
      node = new PowerNode(fsType, stateDisk)
      run = await recordRun(node, combination, seed)
      figures.flushes = run.flushes
      console.log(`${name}: seed ${seed}, ${run.events} events, ${run.endsAt} of them before the end of the call`)
    })

    afterAll(async () => {
      await node?.stop()
      if (run === undefined) figures.failed = numbers.length
      reportFigures(name, combination, figures)
    })

    for (const number of numbers) {
      it(`${name}: moment ${number} of ${count}`, async () => {
        const { action, cuts, events, endsAt } = run as RecordedRun
        const cut = cuts[number - 1] as PowerCut
        figures.moments++
        try {
          ;(node as PowerNode).rebootAfter(cut)
          await action.check(cut.index >= endsAt, number)
        } catch (error) {
          figures.failed++
          if (error instanceof MomentFailure) figures.lost += error.lost
          const { message } = error as Error
          const kept = Object.entries(cut.kept).map(([disk, kept]) => `${disk}: ${kept}`)
          const place = `after ${cut.index} of ${events} events, unflushed writes kept: ${kept.join(', ')}`
          const repeat = `${SEED_VARIABLE}=${seed} ${MOMENTS_VARIABLE}=${number}-${number}`
          throw new Error(`${name}, moment ${number} (${place}; ${repeat}): ${message}`, { cause: error })
        }
      })
    }
  })
}

interface RecordedRun {
  action: PowerAction
  cuts: PowerCut[]
  events: number
  /** Number of events at the end of the action. */
  endsAt: number
  flushes: number
}

function formatAction({ action, isCommitting = false }: Combination): string {
  return isCommitting ? `${action} while the volume commits` : action
}

async function recordRun(
  node: PowerNode,
  { action: actionName, moments, isCommitting = false }: Combination,
  seed: number,
): Promise<RecordedRun> {
  await node.makeDisks()
  const action = createAction(actionName, node)
  await action.prepare()
  node.sync()
  node.recorder.run({ do: 'begin' })
  if (isCommitting) await node.runWhileVolumeCommits(() => action.run())
  else await action.run()
  const { events: endsAt } = node.recorder.run({ do: 'status' })
  // File systems write the rest later. The state is written first, as it may have lost the records of unwritten changes.
  node.sync('state first')
  const log = node.recorder.run({ do: 'end' })
  const disks = node.disks.map(({ name }) => name)
  const cuts = chooseMoments(moments, log, disks, seed)
  return { action, cuts, events: log.events, endsAt, flushes: log.flushes.length }
}

function reportFigures(
  name: string,
  combination: Combination,
  { moments, flushes, failed, lost }: { moments: number; flushes: number; failed: number; lost: number },
): void {
  const failures = failed > 0 ? `, ${failed} moments failed` : ''
  console.log(`${name}: ${moments} moments (${flushes} flushes), ${lost} inodes lost${failures}`)
  const file = process.env[RESULTS_VARIABLE]
  if (file === undefined) return
  const { fsType, stateDisk } = combination
  const action = formatAction(combination)
  const state = stateDisk === 'the same disk' ? 'same' : 'other'
  fs.appendFileSync(file, `${JSON.stringify({ fsType, state, action, kernel: release(), moments, flushes, failed })}\n`)
}
