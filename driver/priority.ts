import { constants, setPriority } from 'node:os'

/** Nice values are per thread on Linux, and threads and processes inherit them (setpriority(2)). */
const ANSWERING_PRIORITY = constants.priority.PRIORITY_HIGH

/** Has the thread that answers the runtime run before others when the node has no processor to spare. */
export function raisePriority(): void {
  trySetPriority(ANSWERING_PRIORITY)
}

/** Gives a worker less than it has inherited from the thread that answers: a container waits for its few milliseconds too. */
export function yieldToPlugin(): void {
  trySetPriority(constants.priority.PRIORITY_ABOVE_NORMAL)
}

function trySetPriority(priority: number): void {
  try {
    setPriority(0, priority)
  } catch {
    // Without CAP_SYS_NICE all have the same.
  }
}
