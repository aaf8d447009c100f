import type { Host } from '../host/host.ts'
import type { WalkCounts } from '../ownership/walk/report.ts'
import type { LoadedConfig } from '../request/defaults.ts'
import type { Secrets } from '../request/json-options.ts'
import type { GivenUpProcess } from './given-up-process.ts'

/** What an effect works with: the node, its configuration, and the call's line in the log. */
export interface Session {
  host: Host
  config: LoadedConfig
  /** Adds facts to the call's log line; a fact named again replaces the earlier one. */
  note(facts: Record<string, unknown>): void
  /** How far a walk is, about once a second. */
  progress?(counts: WalkCounts): void
  /** How far the walk of another call is, which this one waits for; called again and again meanwhile. */
  waits?(counts: WalkCounts): void
  /** Where a person looks on: about how many inodes the walk that comes will meet. */
  expect?(inodes: number): void
  /** What the pod gave for this call; none where a person or heal calls. */
  secrets?: Secrets
  /** Another process looks after this one: what may wait for a server for ever is done here. */
  mayHang?: true | undefined
  /** Reports to the supervising process that this one makes progress; timers have no turn during a walk. */
  isAlive?(): void
  /** Sets how long this process may report nothing. @param milliseconds undefined: as the configuration says */
  limitSilence?(milliseconds: number | undefined): void
  /** The most inodes that a walk changes between two reports. */
  largestBatch?: number
  /** A process of its own makes each walk: this one must not wait for a directory that is locked. */
  isolatesWalks?: true | undefined
  /** This call was made before by a process that was given up: the volume is not accessed. */
  givenUp?: GivenUpProcess | undefined
  /** A person should look at this, though the call goes on. */
  warn(message: string): void
}

/** Does what a call need not fail for: its error is a warning. */
export function orWarn({ warn }: Pick<Session, 'warn'>, what: string, attempt: () => void): void {
  try {
    attempt()
  } catch (error) {
    warn(`${what}: ${(error as Error).message}`)
  }
}
