import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Options of execa for a child that inherits nothing from this process but its descriptors. */
export const CHILD_OPTIONS = {
  env: {},
  extendEnv: false,
  cwd: '/',
  // A session of its own: signals to the child's group reach no other process, and signals of a terminal do not reach
  // the child.
  detached: true,
  cleanup: false,
  buffer: false,
  reject: false,
} as const

export interface ExitStatus {
  code: number | null
  signal: NodeJS.Signals | null
}

/** Resolves when the process has ended, even if another process still has its output open. */
export function waitUntilExit(child: ChildProcess): Promise<ExitStatus> {
  return new Promise((done) => child.once('exit', (code, signal) => done({ code, signal })))
}

const MAX_TIMER_MS = 2 ** 31 - 1

/** Resolves to undefined on timeout. */
export function resolveWithin<T>(milliseconds: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((done) => {
    const timer = setTimeout(() => done(undefined), Math.min(milliseconds, MAX_TIMER_MS))
    void promise.then((value) => {
      clearTimeout(timer)
      done(value)
    })
  })
}

/** The running executable. The file at its path may already be another version. */
export const OWN_EXECUTABLE = '/proc/self/exe'

/** The built executable has no URL and needs no entry script. */
const ENTRY = import.meta.url === '' ? [] : [fileURLToPath(new URL('../../../driver/main.ts', import.meta.url))]

/** Returns the arguments that start this program for the work that a word names. */
export function createArguments(verb: string): string[] {
  return [...ENTRY, verb]
}
