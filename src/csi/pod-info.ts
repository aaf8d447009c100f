import { formatError, quoted } from '../errors/refusal.ts'
import type { LogLevel } from '../log/call-log.ts'
import type { PodInfoAnswer } from './driver-object.ts'
import { CallFailure } from './worker-tasks.ts'

interface PodInfoSources {
  /** The name of the CSIDriver object. */
  readonly name: string
  /** Whether the node's configuration states `csiPodInfoOnMount: true`. */
  readonly isStated: () => Promise<boolean>
  /** Reads the object. Undefined: the server has no access to the API. */
  readonly readObject: (() => Promise<PodInfoAnswer>) | undefined
  /** Returns milliseconds. */
  readonly now: () => number
  readonly log: (level: LogLevel, event: string, facts: Record<string, unknown>) => void
}

/** Interval between checks of a running server. */
export const CHECK_INTERVAL_MS = 5 * 60_000
/** Minimum interval between checks that calls cause while publishing is refused. */
const MIN_RETRY_MS = 5000

/**
 * Refuses to publish until the CSIDriver object is known to have `podInfoOnMount: true`. Without it the author of a
 * PersistentVolume could write any namespace into its attributes, and the node's rules depend on the namespace.
 */
export class PodInfoGuard {
  readonly #sources: PodInfoSources
  #isConfirmed = false
  #reason = 'it was not checked yet'
  #checkedAt = Number.NEGATIVE_INFINITY
  #running: Promise<void> | undefined

  constructor(sources: PodInfoSources) {
    this.#sources = sources
  }

  /** Starts a check, or joins the running one. Never rejects. */
  check(): Promise<void> {
    this.#running ??= this.#check().finally(() => {
      this.#checkedAt = this.#sources.now()
      this.#running = undefined
    })
    return this.#running
  }

  /** @throws {CallFailure} FAILED_PRECONDITION unless the field is known to be true */
  async assertConfirmed(): Promise<void> {
    const isDue = !this.#isConfirmed && this.#sources.now() - this.#checkedAt >= MIN_RETRY_MS
    if (this.#running !== undefined || isDue) await this.check()
    if (this.#isConfirmed) return
    throw new CallFailure(
      'FAILED_PRECONDITION',
      `modekeep does not know that the CSIDriver object ${quoted(this.#sources.name)} says podInfoOnMount: true (${this.#reason}): let "modekeep csi" read the object by --api-server and --api-access, or write "csiPodInfoOnMount": true into the node's configuration`,
    )
  }

  async #check(): Promise<void> {
    const { isStated, readObject } = this.#sources
    try {
      if (await isStated()) return this.#set(true, "the node's configuration states it")
      if (readObject === undefined) return this.#set(false, 'the server may not read the object')
      const answer = await readObject()
      if (answer === 'no object') return this.#set(false, 'there is no such object')
      this.#set(answer, answer ? 'the object says so' : 'the object does not say so')
    } catch (error) {
      // The last answer stays valid while the API server is unreachable: only a cluster administrator changes the object.
      this.#set(this.#isConfirmed, `the object cannot be read: ${formatError(error)}`)
    }
  }

  #set(isConfirmed: boolean, reason: string): void {
    if (isConfirmed === this.#isConfirmed && reason === this.#reason) return
    this.#isConfirmed = isConfirmed
    this.#reason = reason
    // A value from the node's configuration is not logged.
    if (!isConfirmed) this.#sources.log('warn', 'pod-info-unconfirmed', { message: reason })
    else if (this.#sources.readObject !== undefined) this.#sources.log('info', 'pod-info', { message: reason })
  }
}
