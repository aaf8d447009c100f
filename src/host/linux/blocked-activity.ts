import { readFileSync } from 'node:fs'
import { tolerateSystemErrors } from '../file-error.ts'
import { listThreadDirectories } from './lock-holders.ts'

/**
 * Returns how often each thread of a process has given up the processor, while one of them waits for a lock or a disk in the kernel
 * (state D); undefined otherwise. A process that makes progress changes it with each wait.
 */
export function readBlockedActivity(pid: number): string | undefined {
  return tolerateSystemErrors(() => {
    const threads = listThreadDirectories(pid).map((task) => readFileSync(`${task}/status`, 'latin1'))
    if (!threads.some((status) => /^State:\s*D/m.test(status))) return undefined
    return threads.map((status) => status.match(/ctxt_switches:\s*\d+/g)?.join(' ')).join(' ')
  })
}
