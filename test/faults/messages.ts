import type { Job, Outcome } from './every-fault.ts'
import type { Fault } from './fault.ts'

/** What a worker is asked, about the scenario with that number. */
export type Order = { scenario: number; jobsOf: readonly Fault[] } | { scenario: number; strike: Job }

export type Answer = { title: string; jobs: Job[] } | { outcome: Outcome } | { error: string }
