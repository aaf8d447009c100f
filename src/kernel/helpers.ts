import type { FaultCode } from '../errors/entries/index.ts'
import { Refusal } from '../errors/refusal.ts'

/** The path at which a program reads `secretFile`: an inherited descriptor, which no other process can open. */
export const SECRET_FILE_PATH = '/proc/self/fd/3'

/** Environment variable of each helper. Processes that the helper starts inherit it, so modekeep recognizes them. */
export const HELPER_MARK_VARIABLE = 'MODEKEEP_HELPER'

/** A call of a node's program, without a shell and in its own session. */
export interface HelperInvocation {
  /** A bare name, looked up in the node's system directories. */
  program: string
  args: readonly string[]
  /** Content of its stdin, which is /dev/null by default. */
  input?: Uint8Array
  /** Content that the program reads at SECRET_FILE_PATH. It is on no disk, and vanishes when the last process closes it. */
  secretFile?: Uint8Array
  /** Added to PATH and LC_ALL, the only other variables of the program. */
  environment?: Readonly<Record<string, string>>
  timeoutSeconds: number
  /** If this list is not empty, messages show no output of the program, only known phrases. */
  secrets: readonly Uint8Array[]
  /** If true, the program's remaining processes continue after a success. By default they are ended. */
  leavesDaemon?: boolean
  /** Called with the reason if a restart of kubelet or of a container may end the daemon. */
  warn?(message: string, code: FaultCode): void
}

export interface HelperRunner {
  /**
   * Resolves when the program has succeeded. After a failure all its processes are ended, except those that the kernel
   * blocks.
   * @throws {HelperError}
   */
  run(invocation: HelperInvocation): Promise<void>
}

/** A helper program is missing, failed or timed out. The message quotes its output. */
export class HelperError extends Refusal {
  override name = 'HelperError'
}
