import { execa } from 'execa'
import type { Handle, Name } from '../host.ts'
import { CHILD_OPTIONS, endingOf, within } from './child.ts'
import { isExecutable, SYSTEM_PATH } from './programs.ts'

/** Where the program finds the directory that it inherits. */
const PARENT = 3

/**
 * Asks in another process: a thread that waits for an answer for ever would keep this one from ending. Where none can
 * be started nothing speaks against a daemon, and what it has not written yet is not to be lost.
 */
export async function answers(parent: Handle, name: Name, milliseconds: number): Promise<boolean> {
  const program = SYSTEM_PATH.map((directory) => `${directory}/stat`).find(isExecutable)
  if (program === undefined) return true
  const path = `/proc/self/fd/${PARENT}/${Buffer.from(name)}`
  // statfs(2): daemons and servers are always asked for this; from a cache comes nothing.
  const child = execa(program, ['-f', path], {
    ...CHILD_OPTIONS,
    // Its types know descriptors up to 9 only.
    stdio: ['ignore', 'ignore', 'ignore', parent as number as 3],
  })
  if (child.pid === undefined) return true
  try {
    return (await within(milliseconds, endingOf(child.nodeChildProcess))) !== undefined
  } finally {
    child.nodeChildProcess.kill('SIGKILL')
    child.nodeChildProcess.unref()
  }
}
