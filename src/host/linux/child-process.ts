import type { ChildProcess } from 'node:child_process'

/** Of execa, for a child that gets nothing of this process but its descriptors. */
export const CHILD_OPTIONS = {
  env: {},
  extendEnv: false,
  cwd: '/',
  // A session of its own: a signal to its group reaches no other process, and none of a terminal reaches it.
  detached: true,
  cleanup: false,
  buffer: false,
  reject: false,
} as const

export interface ExitStatus {
  code: number | null
  signal: NodeJS.Signals | null
}

/** When the process has ended, whoever still has its output open. */
export function waitUntilExit(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((done) => child.once('exit', (code, signal) => done({ code, signal })))
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Undefined when the time is over first. */
export function resolveWithin<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((done) => {
    const timer = setTimeout(() => done(undefined), Math.min(milliseconds, LONGEST_TIMER_MS))
    void promise.then((value) => {
      clearTimeout(timer)
      done(value)
    })
  })
}
