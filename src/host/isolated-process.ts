import type { Handle } from './handle.ts'

/** The first argument of an isolated process. The second argument is its parent's pid. */
export const ISOLATED_PROCESS = 'errand'

/** The descriptor of the task's directory in the isolated process. The first line of stdin contains the request. */
export const ISOLATED_HANDLE = 3

/** A task for an isolated process of this program, on a file system whose server or daemon may hang. */
export interface IsolatedTask {
  /** The request, in one line. */
  order: string
  /** The directory to work on. */
  handle: Handle
  /**
   * A lock file. The isolated process holds the lock until it ends, even if its parent ends first. The file contains
   * its pid.
   */
  lock: string | undefined
  /** Milliseconds without output, after which the process is killed. */
  patience: number
  /** Called with each line of output. An empty line only shows that the process is alive. */
  told(line: string): void
}

export interface IsolatedTaskEnd {
  /** True if the process was killed because it did not respond. */
  isSilent: boolean
  /** The pid of a killed process that cannot end before its server or daemon responds. */
  leftBehind: number | undefined
  pid: number
  /** Resolves when the process has ended. */
  ended: Promise<unknown>
}
