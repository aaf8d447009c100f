import { Refusal } from '../refusal/refusal.ts'

/** Where a program finds `secretFile`: in a descriptor that it inherits, which no other process can open. */
export const SECRET_FILE = '/proc/self/fd/3'

/** A variable that every helper has, and what it starts: its own processes are known by it. */
export const HELPER_MARK = 'MODEKEEP_HELPER'

/** A program of the node that does what the kernel cannot. It is run without a shell, in its own session. */
export interface HelperInvocation {
  /** A bare name, looked up in the node's system directories. */
  program: string
  args: readonly string[]
  /** Its stdin; /dev/null without. */
  input?: Uint8Array
  /** What it reads at SECRET_FILE: on no disk, and gone with the last process that has it open. */
  secretFile?: Uint8Array
  /** Added to PATH and LC_ALL, the only other variables it has. */
  environment?: Readonly<Record<string, string>>
  timeoutSeconds: number
  /** With any of them, no output of the program is shown. */
  secrets: readonly Uint8Array[]
  /** What is left of it after a success goes on; else it is ended. */
  leavesDaemon?: boolean
  /** Told that the daemon is not kept from kubelet's restarts, and why. */
  warn?(message: string): void
}

export interface Helpers {
  /**
   * Resolves when the program has succeeded. After a failure none of its processes is left, unless the kernel holds it.
   * @throws {HelperError}
   */
  run(order: HelperInvocation): Promise<void>
}

/** A helper program that is missing, failed or did not end: a sentence with the end of its output. */
export class HelperError extends Refusal {
  override name = 'HelperError'
}
