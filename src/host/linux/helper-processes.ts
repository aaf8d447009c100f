import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { MARK } from '../helpers.ts'

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
    for (const pid of left) signalOne(pid)
    await sleep(PAUSE_MS)
  }
}

function signalOne(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/** Those that still run; a zombie does not. */
export function processesOf(leader: number, mark: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))
  return pids.map(Number).filter((pid) => {
    // proc(5): state, parent, group and session follow the name, which may itself hold parentheses.
    const [state, , group, session] = readText(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []
    if (state === undefined || state === '' || state === 'Z' || state === 'X') return false
    if (Number(group) === leader || Number(session) === leader) return true
    return readText(`/proc/${pid}/environ`).split('\0').includes(`${MARK}=${mark}`)
  })
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
