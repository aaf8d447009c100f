import { closeSync, openSync, write, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { messageOf, Refusal } from '../src/refusal/refusal.ts'

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
  return writeUntilError(text, to) === undefined
}

/**
 * The same for a person's answer: what was not written must not look like an answer. On stderr there is nobody to tell.
 * @returns false: nobody reads any more
 * @throws {Refusal} where stdout cannot be written, as on a full disk
 */
export function print(text: string, to: 1 | 2 = STDOUT): boolean {
  const error = writeUntilError(text, to)
  if (error && to === STDOUT && error.code !== 'EPIPE') {
    throw new Refusal(`not all of the answer was written: stdout: ${messageOf(error)}: write it to another place`)
  }
  return error === undefined
}

/** @returns why not all of it was written */
function writeUntilError(text: string, to: 1 | 2): NodeJS.ErrnoException | undefined {
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(to, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return error as NodeJS.ErrnoException
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
  }
  return undefined
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
