import { setFlagsFromString } from 'node:v8'

/**
 * Keeps V8's space for new objects as small as it is at the start of a process, 1 MiB twice: it grows to 16 MiB twice over many
 * jobs, though each job needs little. Node reads the flag at each growth.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}
