import type { Job, Outcome } from './every-fault.ts'
import type { Fault } from './fault.ts'

/** An argument of the process that strikes: calls go to a resident worker, and faults befall that worker. */
export const DOOR_OPTION = '--door'

/** What a worker is asked, about the scenario with that number. */
export type Order = { scenario: number; jobsOf: readonly Fault[] } | { scenario: number; strike: Job }

export type Answer = { title: string; jobs: Job[] } | { outcome: Outcome } | { error: string }
