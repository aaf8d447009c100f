import { setTimeout as sleep } from 'node:timers/promises'
import { MARK } from '../helpers.ts'
import { environmentOf, killProcess, processIds, statOf } from './processes.ts'

const LONGEST_MS = 2000
const PAUSE_MS = 20

/** Sends a signal to all that is left of a helper's process group, which has its leader's id. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal)
  } catch {
    // Nothing is left.
  }
}

/** Ends every process of a helper, of its session or with its mark. @returns false where the kernel holds one of them */
export async function endAll(leader: number, mark: string): Promise<boolean> {
  const until = performance.now() + LONGEST_MS
  for (;;) {
    const left = processesOf(leader, mark)
    if (left.length === 0) return true
    if (performance.now() > until) return false
    for (const pid of left) killProcess(pid)
    await sleep(PAUSE_MS)
  }
}

/** Those that still run; a zombie does not. */
export function processesOf(leader: number, mark: string): number[] {
  return processIds().filter((pid) => {
    const stat = statOf(pid)
    if (stat === undefined) return false
    if (stat.group === leader || stat.session === leader) return true
    return environmentOf(pid).split('\0').includes(`${MARK}=${mark}`)
  })
}
