import { setFlagsFromString } from 'node:v8'

/**
 * Keeps V8's two semi-spaces at their initial 1 MiB. Over many tasks they would grow to 16 MiB each, though each task needs
 * little. V8 reads the flag at each growth.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}
