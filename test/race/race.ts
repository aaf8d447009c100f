import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import type { WalkReport } from '../../src/ownership/walk/report.ts'
import type { Stage } from '../helpers/stage.ts'
import { applyToDirectory, planDirectory, restoreDirectory, type Walked } from '../helpers/walk.ts'
import { Actors } from './actors.ts'

export type Reasons = Record<string, number>

/** Journals in memory: hundreds of walks are to race with the actors, not with the disk. */
export function journalOf(stage: Stage): string {
  const place = `${stage.top}/journals`
  mkdirSync(place)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=0755', 'journals', place])
  onTestFinished(() => {
    execFileSync('umount', [place])
  })
  return `${place}/journal.sqlite`
}

/** Of rounds, where a machine that is busy has the actors wait. */
const MOST = 20_000

/**
 * Plans, walks and restores so many times while the actors are at it, and until a reason that is expected of it was
 * reported; each must end in a report, none in an error. Returns how often each reason was reported.
 */
export async function race(
  walked: Walked,
  { rounds, expected }: { rounds: number; expected?: string },
  ...actors: readonly string[][]
): Promise<Reasons> {
  const running = new Actors()
  for (const actor of actors) await running.start(...actor)
  const reasons: Reasons = {}
  const isMissing = () => expected !== undefined && reasons[expected] === undefined
  for (let round = 0; round < rounds || (isMissing() && round < MOST); round++) {
    add(reasons, await planDirectory(walked, 2000))
    add(reasons, await applyToDirectory(walked, 2000))
    add(reasons, await restoreDirectory(walked))
  }
  const made = await running.stop()
  if (made.some((turns) => turns < rounds)) throw new Error(`the actors were too slow to race with: ${made}`)
  return reasons
}

function add(reasons: Reasons, { left }: WalkReport): void {
  for (const [reason, { count }] of Object.entries(left)) reasons[reason] = (reasons[reason] ?? 0) + count
}
