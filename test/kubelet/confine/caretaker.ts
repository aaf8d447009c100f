import { fork } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import type { Hierarchy } from './cgroups.ts'

/** What a run leaves on the machine; its processes and mounts go with its namespaces. */
export interface Leftovers {
  /** One run at a time has this name. */
  name: string
  cgroups: readonly Hierarchy[]
  directory: string
}

/**
 * Has a process of its own remove what the run leaves, also when this one is killed. Returns when no other run of the
 * name is at work, and what an earlier one may have left is gone.
 * @returns removes everything, and gives the name to the next run
 */
export async function careFor(leftovers: Leftovers): Promise<() => Promise<void>> {
  const script = resolve(import.meta.dirname, 'tidy-up.ts')
  // Not in the terminal's process group: an interrupt there is not for it.
  const child = fork(script, [JSON.stringify(leftovers)], { execArgv: [], detached: true })
  const ended = once(child, 'exit')
  const [message] = await Promise.race([once(child, 'message'), ended])
  if (message !== 'ready') throw new Error(`what earlier runs have left could not be removed (status ${message})`)
  return async () => {
    child.disconnect()
    await ended
  }
}
