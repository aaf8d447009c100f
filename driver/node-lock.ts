import { setTimeout } from 'node:timers/promises'
import { tryLockNode } from '../src/store/locks.ts'
import { logEvent } from './events.ts'

const POLL_INTERVAL_MS = 500

/**
 * Takes the node's lock for a server. Waits until an older process that holds it has ended.
 * @param holder for messages: `another CSI server`
 * @returns undefined if `stop` is aborted first
 */
export async function waitForNodeLock(
  store: Parameters<typeof tryLockNode>[0],
  work: 'csi' | 'nri',
  holder: string,
  stop: AbortSignal,
): Promise<Disposable | undefined> {
  for (let isLogged = false; !stop.aborted; ) {
    const lock = tryLockNode(store, work)
    if (lock !== undefined) return lock
    if (!isLogged) logEvent('warn', 'waiting', { message: `${holder} is at work on this node` })
    isLogged = true
    await setTimeout(POLL_INTERVAL_MS, undefined, { signal: stop }).catch(() => {})
  }
  return undefined
}
