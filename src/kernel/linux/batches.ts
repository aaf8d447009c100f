import type { FileChange, FileChangeBatch, Handle, Name, StatBatch, StatView } from '../host.ts'
import { hasListxattrat, recordListxattratResult } from './attributes.ts'
import { changeMemory, finish, sightMemory, start, startLook } from './kernel.ts'
import { recordOverlay, StatxView } from './statx.ts'

// driver/kernel/kernel.h: the first job of sights, SIGHTS, struct sight, enum how.
const FIRST_JOB = 48
const SIZE = 256
const SIGHT = 640
const [STATX, LIST, NAME] = [16, 272, 384]
const [LOOK, HOLD, HOLD_AND_LIST] = [0, 1, 2]
const [HANDLE, LOOKED, LISTED] = [0, 1, 2]
const NAME_LENGTHS = 256
const NONE = -1
/** Smallest batch for which another thread is faster. */
const MIN_FOR_THREADS = 8

const bytes = new Uint8Array(sightMemory)
const text = Buffer.from(sightMemory)
const fields = new DataView(sightMemory)
const words = new Int32Array(sightMemory)

class LinuxStatBatch implements StatBatch {
  readonly size = SIZE
  readonly #job: number
  readonly #start: number
  readonly #lengths = new Int32Array(SIZE)
  /** Views are reused, because one for each of a million names would keep the garbage collector busy. */
  readonly #names: Uint8Array[] = []
  readonly #look: StatxView
  #parent = NONE as Handle
  #how = LOOK
  #count = 0

  /** @param which index among the jobs that driver/kernel has */
  constructor(which: number) {
    this.#job = FIRST_JOB + which
    this.#start = which * SIZE * SIGHT
    this.#look = new StatxView(fields, this.#start + STATX)
  }

  setName(at: number, block: Uint8Array, start: number, length: number): void {
    const place = this.#start + at * SIGHT + NAME
    // Names are short, so a loop is faster than a call.
    for (let index = 0; index < length; index++) bytes[place + index] = block[start + index] as number
    bytes[place + length] = 0
    this.#lengths[at] = length
  }

  nameOf(at: number): Name {
    const length = this.#lengths[at] as number
    const kept = at * NAME_LENGTHS + length
    const place = this.#start + at * SIGHT + NAME
    this.#names[kept] ??= bytes.subarray(place, place + length)
    return this.#names[kept]
  }

  look(parent: Handle, count: number, isAhead: boolean): void {
    this.#begin(parent, LOOK, count, isAhead)
  }

  hold(parent: Handle, count: number, isAhead: boolean): void {
    this.#begin(parent, hasListxattrat() ? HOLD_AND_LIST : HOLD, count, isAhead)
  }

  #begin(parent: Handle, how: number, count: number, isAhead: boolean): void {
    this.#parent = parent
    this.#how = how
    this.#count = count
    startLook(this.#job, parent, how, count, isAhead && count >= MIN_FOR_THREADS ? 1 : 0)
  }

  finish(): void {
    finish(this.#job)
    if (this.#how === HOLD_AND_LIST && this.#count > 0 && this.handle(0) !== undefined)
      recordListxattratResult(this.#word(0, LISTED))
  }

  #word(at: number, which: number): number {
    return words[(this.#start + at * SIGHT) / 4 + which] as number
  }

  stat(at: number): StatView | undefined {
    if (this.#how !== LOOK && this.handle(at) === undefined) return undefined
    if (this.#word(at, LOOKED) !== 0) return undefined
    this.#look.at = this.#start + at * SIGHT + STATX
    // A mount's root is on another device than its directory's handle.
    if (this.#how !== LOOK) recordOverlay(this.#word(at, HANDLE) as Handle, this.#look.device)
    else if (!this.#look.mountRoot) recordOverlay(this.#parent, this.#look.device)
    return this.#look
  }

  handle(at: number): Handle | undefined {
    if (this.#how === LOOK) return undefined
    const handle = this.#word(at, HANDLE)
    return handle < 0 ? undefined : (handle as Handle)
  }

  attributeNames(at: number): string | undefined {
    if (this.#how !== HOLD_AND_LIST) return undefined
    const size = this.#word(at, LISTED)
    if (size <= 0) return size === 0 ? '' : undefined
    const place = this.#start + at * SIGHT + LIST
    return text.toString('latin1', place, place + size)
  }
}

/** A thread has two batches. One walk at a time uses them, and releases them between its steps. */
export const linuxStatBatches: readonly [StatBatch, StatBatch] = [new LinuxStatBatch(0), new LinuxStatBatch(1)]

// driver/kernel/kernel.h: JOBS, CHANGES, struct change.
const JOBS = 48
const BATCH_SIZE = 720
const WORDS = 10
const [CHANGE_HANDLE, SEEN_GROUP, SEEN_MODE, GROUP, MODE, NEEDS_SAME_TIME, RESULT] = [2, 3, 4, 5, 6, 7, 8]
const OUTCOMES = ['made', 'odd', 'half'] as const
/** Smallest batch of changes for which other threads are faster. */
const MIN_CHANGES_FOR_THREADS = 32

const changeWords = new Uint32Array(changeMemory)
const changeDoubles = new Float64Array(changeMemory)
const freeJobs = Array.from({ length: JOBS }, (_, job) => job)

/** Maximum threads besides the walk's own. More threads than processors would slow the walk down. */
const MAX_THREADS = 3

function countThreads(): number {
  // Only walks load node:os.
  const otherProcessors = process.getBuiltinModule('node:os').availableParallelism() - 1
  return Math.max(1, Math.min(MAX_THREADS, otherProcessors))
}

/** @returns undefined if other walks use all jobs, or the batch is too large for one */
export function allocateFileChanges(size: number): FileChangeBatch | undefined {
  const job = size <= BATCH_SIZE ? freeJobs.pop() : undefined
  return job === undefined ? undefined : new LinuxFileChangeBatch(job)
}

class LinuxFileChangeBatch implements FileChangeBatch {
  readonly #job: number
  readonly #threads = countThreads()
  #isFree = false

  constructor(job: number) {
    this.#job = job
  }

  set(at: number, change: FileChange): void {
    const word = this.#wordOf(at)
    changeDoubles[word / 2] = change.changed
    changeWords[word + CHANGE_HANDLE] = change.handle
    changeWords[word + SEEN_GROUP] = change.seenGroup
    changeWords[word + SEEN_MODE] = change.seenMode
    changeWords[word + GROUP] = change.group
    changeWords[word + MODE] = change.mode
    changeWords[word + NEEDS_SAME_TIME] = change.needsSameTime ? 1 : 0
    // Until the change is made, the caller owns the handle.
    changeWords[word + RESULT] = OUTCOMES.indexOf('odd')
  }

  start(count: number): void {
    start(this.#job, count, count < MIN_CHANGES_FOR_THREADS ? 0 : this.#threads)
  }

  finish(): number {
    return finish(this.#job)
  }

  outcome(at: number): (typeof OUTCOMES)[number] {
    return OUTCOMES[changeWords[this.#wordOf(at) + RESULT] as number] as (typeof OUTCOMES)[number]
  }

  #wordOf(at: number): number {
    return (this.#job * BATCH_SIZE + at) * WORDS
  }

  [Symbol.dispose](): void {
    if (this.#isFree) return
    this.#isFree = true
    this.finish()
    freeJobs.push(this.#job)
  }
}
