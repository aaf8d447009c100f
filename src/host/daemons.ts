import type { Handle, Name } from './handle.ts'

/** A process that serves a mount. */
export interface Daemon {
  pid: number
  /** As /proc/PID/stat has it: R, S, D, T (stopped), … */
  state: string
}

/** The processes that serve mounts; they are children of nobody that still runs. */
export interface Daemons {
  /** The one that has this among its arguments: a path that no other process was ever given. */
  find(argument: string): Daemon | undefined
  /** Whether what is mounted at parent/name says anything within this time, be it an error; true where it cannot be asked. */
  answers(parent: Handle, name: Name, milliseconds: number): Promise<boolean>
  /** All that were given a path below this directory: also the programs that a daemon has started. */
  below(directory: string): number[]
  /** SIGKILL to them. */
  kill(directory: string): void
}
