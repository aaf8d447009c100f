import { type Ended, type FaultPoint, injectAt, type Program, traceProgram } from '../helpers/inject.ts'
import type { TracedCall } from '../helpers/strace-text.ts'
import type { Fault } from './fault.ts'
import type { Scenario } from './scenario.ts'

export interface InjectedRun {
  ended: Ended
  /** Whether the process came to the call at which the fault is. */
  reached: boolean
  calls: TracedCall[]
}

/** Runs a scenario's command, with a fault in the process that makes the call. */
export interface Injector {
  /** Makes the node as it is before the command. */
  prepare(scenario: Scenario): Promise<void>
  trace(program: Program): Promise<{ ended: Ended; calls: TracedCall[] }>
  /** @param also names of calls that are traced too */
  inject(program: Program, point: FaultPoint, fault: Fault, also: string): Promise<InjectedRun>
  close(): Promise<void>
}

/** The command is a process of its own, which runs under strace. */
export const ownProcessInjector: Injector = {
  prepare: (scenario) => scenario.prepare(),
  trace: (program) => traceProgram(program),
  inject: injectAt,
  close: async () => {},
}
