import { setTimeout } from 'node:timers/promises'
import { tryLockNode } from '../src/store/locks.ts'
import { tellEvent } from './events.ts'

const LOOK_MS = 500

/**
 * Waits for an older process of this node that does the same to end.
 * @param who as it is told: `another CSI server`
 * @returns undefined where this one is to end first
 */
export async function nodeLock(
  store: Parameters<typeof tryLockNode>[0],
  work: 'csi' | 'nri',
  who: string,
  stop: AbortSignal,
): Promise<Disposable | undefined> {
  for (let isTold = false; !stop.aborted; ) {
    const lock = tryLockNode(store, work)
    if (lock !== undefined) return lock
    if (!isTold) tellEvent('warn', 'waiting', { message: `${who} is at work on this node` })
    isTold = true
    await setTimeout(LOOK_MS, undefined, { signal: stop }).catch(() => {})
  }
  return undefined
}
