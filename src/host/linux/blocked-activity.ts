import { readFileSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'
import { listThreadDirectories } from './lock-holders.ts'

/**
 * Returns the context switch counters of a process's threads while one of them waits in the kernel for a lock or a disk
 * (state D). Otherwise returns undefined. A process that makes progress changes them with each wait.
 */
export function readBlockedActivity(pid: number): string | undefined {
  return tolerateSystemErrors(() => {
    const threads = listThreadDirectories(pid).map((task) => readFileSync(`${task}/status`, 'latin1'))
    if (!threads.some((status) => /^State:\s*D/m.test(status))) return undefined
    return threads.map((status) => status.match(/ctxt_switches:\s*\d+/g)?.join(' ')).join(' ')
  })
}
