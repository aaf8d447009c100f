import { closeSync, openSync, writeSync } from 'node:fs'

const STDOUT = 1
const STDERR = 2

/** Kubelet reads stderr as part of the answer: whatever the runtime may say there (a warning, a fatal error) goes nowhere. */
export function closeStderr(): void {
  try {
    closeSync(STDERR)
    // The lowest free descriptor is taken: this is the new stderr.
    openSync('/dev/null', 'w')
  } catch {
    // Closed already, or no /dev/null: nothing can be written there either way.
  }
}

/** Writes all of it, whatever stdout is: a pipe may be full for a moment, or gone for good. @returns false for the latter */
export function writeAll(text: string, to: 1 | 2 = STDOUT): boolean {
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(to, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
  return true
}
