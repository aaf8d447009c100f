import { setTimeout } from 'node:timers/promises'
import { tryLockNode } from '../src/store/locks.ts'
import { logEvent } from './events.ts'

const POLL_INTERVAL_MS = 500

/**
 * Waits for an older process of this node that does the same to end.
 * @param who as it is told: `another CSI server`
 * @returns undefined where this one is to end first
 */
export async function waitForNodeLock(
  store: Parameters<typeof tryLockNode>[0],
  work: 'csi' | 'nri',
  who: string,
  stop: AbortSignal,
): Promise<Disposable | undefined> {
  for (let isTold = false; !stop.aborted; ) {
    const lock = tryLockNode(store, work)
    if (lock !== undefined) return lock
    if (!isTold) logEvent('warn', 'waiting', { message: `${who} is at work on this node` })
    isTold = true
    await setTimeout(POLL_INTERVAL_MS, undefined, { signal: stop }).catch(() => {})
  }
  return undefined
}
