import { constants, setPriority } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/**
 * Keeps V8's two semi-spaces at their initial 1 MiB. Over many tasks they would grow to 16 MiB each, though each task needs
 * little. V8 reads the flag at each growth.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

/** Nice values are per thread on Linux, and threads and processes inherit them (setpriority(2)). */
const ANSWERING_PRIORITY = constants.priority.PRIORITY_HIGH

/** Lets the thread that answers the runtime run before others while the node's processors are busy. */
export function raisePriority(): void {
  trySetPriority(ANSWERING_PRIORITY)
}

/** Gives a worker a lower priority than the answering thread, but above normal: container creation waits for the worker too. */
export function yieldToPlugin(): void {
  trySetPriority(constants.priority.PRIORITY_ABOVE_NORMAL)
}

function trySetPriority(priority: number): void {
  try {
    setPriority(0, priority)
  } catch {
    // Raising a priority needs CAP_SYS_NICE; all threads then keep the same one.
  }
}
