import { closeSync, openSync, write, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { formatError, Refusal } from '../src/errors/refusal.ts'

export const STDOUT = 1
export const STDERR = 2

/** Discards stderr, because kubelet reads it as part of the reply and Node may write warnings or fatal errors to it. */
export function discardStderr(): void {
  try {
    closeSync(STDERR)
    // open(2) returns the lowest free descriptor, which is now stderr's.
    openSync('/dev/null', 'w')
  } catch {
    // stderr is closed already, or /dev/null is missing. Either way nothing can be written to it.
  }
}

/** Writes the whole text, and retries while a pipe is full. @returns false if the stream cannot be written */
export function writeWholeText(text: string, to: 1 | 2 = STDOUT): boolean {
  return writeTextUntilError(text, to) === undefined
}

/**
 * Writes an operator's result like `writeWholeText`. A truncated result must not look like a complete one, so an error of stdout
 * is thrown. An error of stderr is not, because it could not be printed.
 * @returns false if the reader has closed the stream
 * @throws {Refusal} if stdout cannot be written, as on a full disk
 */
export function printResult(text: string, to: 1 | 2 = STDOUT): boolean {
  const error = writeTextUntilError(text, to)
  if (error && to === STDOUT && error.code !== 'EPIPE') {
    throw Refusal.of(
      'command',
      `not all of the answer was written: stdout: ${formatError(error)}`,
      'write it to another place',
    )
  }
  return error === undefined
}

/** @returns the error that ended the writing; undefined if the whole text was written */
function writeTextUntilError(text: string, to: 1 | 2): NodeJS.ErrnoException | undefined {
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
 * Writes all bytes to stdout without blocking the thread, because the reader may be slow.
 * @throws write(2)'s error: EPIPE if the reader has closed the pipe, ENOSPC if stdout is a file on a full disk
 */
export async function writeBytesToStdout(bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += (await promisify(write)(STDOUT, bytes, at, bytes.length - at, null)).bytesWritten
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      await setTimeout(5)
    }
  }
}

/** Output of a worker that serves tasks. */
export const STDOUT_WORKER_OUTPUT = { write: (text: string) => void writeWholeText(text), end: () => process.exit(1) }
