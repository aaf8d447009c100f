import type { WalkCounts } from './report.ts'

/** Called at most about once a second while a walk runs. */
export type ProgressListener = (counts: WalkCounts) => void

const EVERY_MS = 1000

/** Tells how far a walk is. */
export class Progress {
  readonly #listener: ProgressListener | undefined
  #told = performance.now()

  constructor(listener: ProgressListener | undefined) {
    this.#listener = listener
  }

  /** Told often, it tells seldom. */
  tell({ visited, changed }: WalkCounts): void {
    const now = performance.now()
    if (now - this.#told < EVERY_MS) return
    this.#told = now
    this.#listener?.({ visited, changed })
  }
}
