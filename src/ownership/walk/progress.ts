import type { WalkCounts } from './report.ts'

/** Called at most about once a second while a walk runs. */
export type ProgressListener = (counts: WalkCounts) => void

const INTERVAL_MS = 1000

/** Reports a walk's progress at intervals. */
export class ProgressReporter {
  readonly #listener: ProgressListener | undefined
  #reportedAtMs = performance.now()

  constructor(listener: ProgressListener | undefined) {
    this.#listener = listener
  }

  /** Call it often; most calls report nothing. */
  report({ visited, changed }: WalkCounts): void {
    const now = performance.now()
    if (now - this.#reportedAtMs < INTERVAL_MS) return
    this.#reportedAtMs = now
    this.#listener?.({ visited, changed })
  }
}
