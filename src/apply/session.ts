import type { Host } from '../host/host.ts'
import type { WalkReport } from '../ownership/report.ts'
import type { NodeConfig } from '../protocol/defaults.ts'

/** What an effect works with: the node, its configuration, and the call's line in the log. */
export interface Session {
  host: Host
  config: NodeConfig
  /** Adds facts to the call's log line; a fact named again replaces the earlier one. */
  note(facts: Record<string, unknown>): void
  /** A person should look at this, though the call goes on. */
  warn(message: string): void
  /** Told now and then while a walk is under way. */
  progress?: (counts: Pick<WalkReport, 'visited' | 'changed'>) => void
}
