import type { Changes, FileChange } from '../host.ts'
import { changeMemory, finish, start } from './kernel.ts'

// driver/kernel/kernel.h: JOBS, CHANGES, struct change.
const JOBS = 48
const ROOM = 720
const WORDS = 10
const [HANDLE, SEEN_GROUP, SEEN_MODE, GROUP, MODE, NEEDS_SAME_TIME, RESULT] = [2, 3, 4, 5, 6, 7, 8]
const OUTCOMES = ['made', 'odd', 'half'] as const
/** From so many on another thread pays. */
const WORTH_GIVING = 32

const words = new Uint32Array(changeMemory)
const doubles = new Float64Array(changeMemory)
const free = Array.from({ length: JOBS }, (_, job) => job)

/** Threads beside the walk's own: more than there are processors would take its time. */
const MOST_THREADS = 3

function threads(): number {
  // Loaded by walks alone.
  const others = process.getBuiltinModule('node:os').availableParallelism() - 1
  return Math.max(1, Math.min(MOST_THREADS, others))
}

/** @returns undefined where so many walks have all there is */
export function linuxChanges(size: number): Changes | undefined {
  const jobs = free.splice(0, Math.max(threads(), Math.ceil(size / ROOM)))
  if (jobs.length * ROOM >= size) return new LinuxChanges(jobs, Math.ceil(size / jobs.length))
  free.push(...jobs)
  return undefined
}

class LinuxChanges implements Changes {
  readonly #jobs: number[]
  /** Changes of each job. */
  readonly #each: number
  #started = 0
  #rest = 0

  constructor(jobs: number[], each: number) {
    this.#jobs = jobs
    this.#each = each
  }

  set(at: number, change: FileChange): void {
    const word = this.#wordOf(at)
    doubles[word / 2] = change.changed
    words[word + HANDLE] = change.handle
    words[word + SEEN_GROUP] = change.seenGroup
    words[word + SEEN_MODE] = change.seenMode
    words[word + GROUP] = change.group
    words[word + MODE] = change.mode
    words[word + NEEDS_SAME_TIME] = change.needsSameTime ? 1 : 0
    // Until it is made its handle is the caller's.
    words[word + RESULT] = OUTCOMES.indexOf('odd')
  }

  start(count: number): void {
    this.#rest = 0
    for (; this.#started * this.#each < count; this.#started++) {
      const some = Math.min(this.#each, count - this.#started * this.#each)
      start(this.#jobs[this.#started] as number, some, some < WORTH_GIVING ? 0 : 1)
    }
  }

  finish(): number {
    while (this.#started > 0) this.#rest += finish(this.#jobs[--this.#started] as number)
    return this.#rest
  }

  outcome(at: number): (typeof OUTCOMES)[number] {
    return OUTCOMES[words[this.#wordOf(at) + RESULT] as number] as (typeof OUTCOMES)[number]
  }

  #wordOf(at: number): number {
    const job = this.#jobs[Math.floor(at / this.#each)] as number
    return (job * ROOM + (at % this.#each)) * WORDS
  }

  [Symbol.dispose](): void {
    this.finish()
    free.push(...this.#jobs.splice(0))
  }
}
