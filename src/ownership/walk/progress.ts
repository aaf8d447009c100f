import type { WalkCounts } from './report.ts'

/** Called at most about once a second while a walk runs. */
export type ProgressListener = (counts: WalkCounts) => void

const EVERY_MS = 1000

/** Tells how far a walk is. */
export class Progress implements Disposable {
  readonly #listener: ProgressListener | undefined
  #told = performance.now()
  #timer: NodeJS.Timeout | undefined

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

  /** Tells what other threads count meanwhile, until the end of the walk. */
  watch(read: () => WalkCounts): void {
    if (this.#listener) this.#timer = setInterval(() => this.tell(read()), EVERY_MS / 2)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
