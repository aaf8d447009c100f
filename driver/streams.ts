import { closeSync, openSync, write, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'

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

/**
 * Writes all of it to stdout, and gives way to other events meanwhile: whoever reads may be slow.
 * @throws write(2)'s error: EPIPE where nobody reads any more, ENOSPC where stdout is a file on a full disk
 */
export async function writeBytes(bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += (await promisify(write)(STDOUT, bytes, at, bytes.length - at, null)).bytesWritten
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      await setTimeout(5)
    }
  }
}
