import type { Lock } from '../host/host.ts'
import { releaseForGood } from './locks.ts'
import { readMountRecord } from './mount-record.ts'
import type { Session } from './session.ts'

/**
 * Gives a mount's lock back, and leaves no trace of a mount of which nothing is recorded. What fails here says nothing
 * of the mount: it is told, and the lock is nobody's all the same.
 */
export function releaseMount({ host, config, warn }: Session, path: string, lock: Lock): void {
  try {
    if (!readMountRecord(host, config.stateDir, path)) releaseForGood(host, config.stateDir, path, lock)
  } catch (error) {
    warn(`the lock of ${path} was left behind: ${(error as Error).message}`)
  } finally {
    lock.release()
  }
}
