import type { Handle } from './handle.ts'

/** The first argument of the process that runs an errand; the second is the number of who has started it. */
export const ISOLATED_PROCESS = 'errand'

/** What the process finds, besides its order in the first line of its stdin. */
export const ISOLATED_HANDLE = 3

/** Work on a file system whose server or daemon may hang, for another process of this program. */
export interface IsolatedTask {
  /** What is to be done: one line. */
  order: string
  /** What it is done to: a directory. */
  handle: Handle
  /** A lock's file: it is held from the beginning until the process has ended, whoever has started it, and says which. */
  lock: string | undefined
  /** Milliseconds: a process that says nothing for so long is killed. */
  patience: number
  /** Called with each line that the process says; empty ones only say that it is alive. */
  told(line: string): void
}

export interface IsolatedTaskEnd {
  /** It was given up. */
  isSilent: boolean
  /** The process that the kernel does not let end before the server answers. */
  leftBehind: number | undefined
  pid: number
  /** Resolves when the process has ended. */
  ended: Promise<unknown>
}
