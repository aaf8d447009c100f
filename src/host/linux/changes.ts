import type { Changes, FileChange } from '../host.ts'
import { changeMemory, finish, start } from './kernel.ts'

// driver/kernel/kernel.h: JOBS, CHANGES, struct change.
const JOBS = 48
const EACH = 240
const WORDS = 10
const [HANDLE, SEEN_GROUP, SEEN_MODE, GROUP, MODE, NEEDS_SAME_TIME, RESULT] = [2, 3, 4, 5, 6, 7, 8]
const OUTCOMES = ['made', 'odd', 'half'] as const
/** From so many on another thread pays. */
const WORTH_GIVING = 32

const words = new Uint32Array(changeMemory)
const doubles = new Float64Array(changeMemory)
const free = Array.from({ length: JOBS }, (_, job) => job)

/** @returns undefined where so many walks have all there is */
export function linuxChanges(size: number): Changes | undefined {
  const jobs = free.splice(0, Math.ceil(size / EACH))
  if (jobs.length * EACH >= size) return new LinuxChanges(jobs)
  free.push(...jobs)
  return undefined
}

class LinuxChanges implements Changes {
  readonly #jobs: number[]
  #started = 0

  constructor(jobs: number[]) {
    this.#jobs = jobs
  }

  set(at: number, { handle, seen, after, needsSameTime }: FileChange): void {
    const word = this.#wordOf(at)
    doubles[word / 2] = seen.changed
    words[word + HANDLE] = handle
    words[word + SEEN_GROUP] = seen.gid
    words[word + SEEN_MODE] = seen.mode
    words[word + GROUP] = after.gid
    words[word + MODE] = after.mode
    words[word + NEEDS_SAME_TIME] = needsSameTime ? 1 : 0
  }

  start(count: number): void {
    for (; this.#started * EACH < count; this.#started++) {
      const some = Math.min(EACH, count - this.#started * EACH)
      start(this.#jobs[this.#started] as number, some, count < WORTH_GIVING ? 0 : 1)
    }
  }

  finish(): void {
    while (this.#started > 0) finish(this.#jobs[--this.#started] as number)
  }

  outcome(at: number): (typeof OUTCOMES)[number] {
    return OUTCOMES[words[this.#wordOf(at) + RESULT] as number] as (typeof OUTCOMES)[number]
  }

  #wordOf(at: number): number {
    return ((this.#jobs[Math.floor(at / EACH)] as number) * EACH + (at % EACH)) * WORDS
  }

  [Symbol.dispose](): void {
    this.finish()
    free.push(...this.#jobs.splice(0))
  }
}
