import type { Host, Lock } from './host.ts'
import type { NodeFiles } from './node-files.ts'

/** The operations on a node that only `install` and `uninstall` use. */
export interface Administration {
  files: NodeFiles
  host: Host
  /**
   * Takes flock(2) on the directory itself, so no lock file is left. Returns undefined if another process holds the
   * lock.
   */
  tryLockDirectory(path: string): Lock | undefined
  /** Never rejects: if the program cannot run, the result contains the reason. */
  tryDriver(trial: DriverTrial): Promise<DriverResult>
}

/** One call of a driver, as kubelet makes it. */
export interface DriverTrial {
  command: readonly [string, ...string[]]
  /** The complete environment of the driver. */
  environment: Readonly<Record<string, string>>
  seconds: number
  /** Ends the call before its time limit. */
  stop: AbortSignal
}

export interface DriverResult {
  /** Both output streams, merged as kubelet reads them. */
  text: string
  /** Follows the shell: 128 plus the signal's number, or 126 or 127 if the program could not be started. */
  status: number
  isLate: boolean
}
