import type { Host, Lock } from './host.ts'
import type { NodeFiles } from './node-files.ts'

/** What `install` and `uninstall` alone do to a node. */
export interface Administration {
  files: NodeFiles
  host: Host
  /** flock(2) on a directory itself: it leaves no file. Undefined while somebody else has it. */
  tryLockDirectory(path: string): Lock | undefined
  /** Never fails: what kept the program from running is its answer. */
  tryDriver(trial: DriverTrial): Promise<DriverResult>
}

/** One call of a driver, as kubelet makes it. */
export interface DriverTrial {
  command: readonly [string, ...string[]]
  /** The only variables it has. */
  environment: Readonly<Record<string, string>>
  seconds: number
  /** Ends it, as the time does. */
  stop: AbortSignal
}

export interface DriverResult {
  /** Both outputs as one, as kubelet reads them. */
  text: string
  /** As a shell tells it: 128 and the number of a signal, 126 or 127 where it could not be started. */
  status: number
  isLate: boolean
}
