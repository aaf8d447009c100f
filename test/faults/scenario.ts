import type { Ended, FaultPoint, Program } from '../helpers/inject.ts'
import type { TracedCall } from '../helpers/strace-text.ts'
import type { Fault } from './fault.ts'

export const COMMANDS = [
  'mount',
  'unmount',
  'replace',
  'walk',
  'restore',
  'heal',
  'csi',
  'container',
  'install',
] as const
export type CommandName = (typeof COMMANDS)[number]

/** What a command has come to whose system call was killed or failed. */
export interface After {
  point: FaultPoint
  fault: Fault
  ended: Ended
  /** False: the command ended before it came to the fault. */
  reached: boolean
  /** Its traced calls: that one and those that change a volume. */
  calls: readonly TracedCall[]
  /** A number that differs from fault to fault: which of several ways to go on is taken. */
  turn: number
}

/** A command in one situation, of which a fault may befall each system call. */
export interface Scenario {
  title: string
  program(): Program
  /** Makes everything as it is before the command, the same each time. */
  prepare(): Promise<void>
  /** The points of a run that nothing befell. @throws {Error} where that run failed */
  points(ended: Ended, calls: readonly TracedCall[]): FaultPoint[]
  /** Of a run that differs from the traced one by a call of the runtime's: whether another was struck than a command's own. */
  isRuntimes?(struck: TracedCall): boolean
  /** What must hold right after the fault, and what the next calls must make of it. @throws what does not hold */
  check(after: After): Promise<void>
  close(): void
}
