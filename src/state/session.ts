import type { LoadedConfig } from '../config/defaults.ts'
import type { PodSecrets } from '../config/json-options.ts'
import type { FaultCode } from '../errors/entries/index.ts'
import type { Host } from '../kernel/host.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'

/** Context of a call: the node, its configuration, and the call's line in the log. */
export interface Session {
  host: Host
  config: LoadedConfig
  /** Adds facts to the call's log line; a fact named again replaces the earlier one. */
  note(facts: Record<string, unknown>): void
  /** Reports the progress of a walk, about once a second. */
  progress?(counts: WalkCounts): void
  /** Reports the progress of another call's walk, repeatedly while this call waits for it. */
  waits?(counts: WalkCounts): void
  /** Reports about how many inodes the next walk will visit, if an operator watches. */
  expect?(inodes: number): void
  /** Secrets that the pod gave for this call; none if an operator or heal calls. */
  secrets?: PodSecrets
  /** Another process supervises this one, so work that may wait for a server indefinitely runs here. */
  mayHang?: true | undefined
  /** Reports to the supervising process that this one makes progress; timers have no turn during a walk. */
  isAlive?(): void
  /** Sets how long this process may report nothing. @param milliseconds undefined: as the configuration says */
  limitSilence?(milliseconds: number | undefined): void
  /** The most inodes that a walk changes between two reports. */
  largestBatch?: number
  /** This process ends with the call. */
  endsWithCall?: true
  /** Each walk runs in a worker process, because this process must not wait for a locked directory. */
  isolatesWalks?: true | undefined
  /** This call was made before by a process that was given up: the volume is not accessed. */
  givenUp?: GivenUpProcess | undefined
  /** Reports a warning to operators; the call proceeds. */
  warn(message: string, code: FaultCode): void
}

/** Runs an attempt whose failure does not fail the call: its error is a warning. */
export function warnOnFailure({ warn }: Pick<Session, 'warn'>, what: string, attempt: () => void): void {
  try {
    attempt()
  } catch (error) {
    warn(`${what}: ${(error as Error).message}`, 'cleanup-failed')
  }
}

/** A process that made this call before and was killed, because it reported nothing for too long. */
export interface GivenUpProcess {
  pid: number
  seconds: number
  /** The process still waits in the kernel, which does not let it end. */
  isLeft: boolean
}
