import type { WalkReport } from './walk/report.ts'
import { changedOf, visitedOf } from './workers/messages.ts'

export type Counts = Pick<WalkReport, 'visited' | 'changed'>

/** Called at most about once a second while a walk runs. */
export type ProgressListener = (counts: Counts) => void

const EVERY_MS = 1000

/** Tells how far a walk is. */
export class Progress {
  readonly #listener: ProgressListener | undefined
  #told = performance.now()
  #timer: NodeJS.Timeout | undefined

  constructor(listener: ProgressListener | undefined) {
    this.#listener = listener
  }

  /** Told often, it tells seldom. */
  tell(counts: Counts): void {
    const now = performance.now()
    if (now - this.#told < EVERY_MS) return
    this.#told = now
    this.#listener?.({ visited: counts.visited, changed: counts.changed })
  }

  /** What several threads count in shared memory, on top of what one did before them. */
  watch(shared: Int32Array, size: number, before: Counts): void {
    if (this.#listener === undefined) return
    this.#timer = setInterval(() => {
      const counts = { visited: before.visited, changed: before.changed }
      for (let index = 0; index < size; index++) {
        counts.visited += shared[visitedOf(index)] ?? 0
        counts.changed += shared[changedOf(index)] ?? 0
      }
      this.tell(counts)
    }, EVERY_MS / 2)
  }

  end(): void {
    clearInterval(this.#timer)
  }
}
