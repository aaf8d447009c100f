import type { EntryName, FileChange, FileChangeBatch, Handle, StatBatch, StatView } from '../host.ts'
import { countProcessors } from '../worker-process.ts'
import { hasListxattrat, recordListxattratResult } from './attributes.ts'
import { changeMemory, finish, sightMemory, start, startLook } from './kernel.ts'
import { recordOverlayDevice, StatxView } from './statx.ts'

// driver/kernel/kernel.h: the first job of sights, SIGHTS, struct sight, enum how.
const FIRST_STAT_JOB = 48
const STAT_BATCH_SIZE = 256
const STAT_ENTRY_BYTES = 640
const [STATX, LIST, NAME] = [16, 272, 384]
const [LOOK, HOLD, HOLD_AND_LIST] = [0, 1, 2]
const [HANDLE, LOOKED, LISTED] = [0, 1, 2]
const NAME_LENGTH_COUNT = 256
const NO_PARENT_HANDLE = -1
/** Smallest batch for which another thread is faster. */
const MIN_STATS_FOR_THREADS = 8

const statMemoryBytes = new Uint8Array(sightMemory)
const statMemoryText = Buffer.from(sightMemory)
const statMemoryFields = new DataView(sightMemory)
const statMemoryWords = new Int32Array(sightMemory)

class LinuxStatBatch implements StatBatch {
  readonly size = STAT_BATCH_SIZE
  readonly #job: number
  readonly #start: number
  readonly #lengths = new Int32Array(STAT_BATCH_SIZE)
  /** Views are reused, because one for each of a million names would keep the garbage collector busy. */
  readonly #names: Uint8Array[] = []
  readonly #look: StatxView
  #parent = NO_PARENT_HANDLE as Handle
  #how = LOOK
  #count = 0

  /** @param which index among the jobs that driver/kernel has */
  constructor(which: number) {
    this.#job = FIRST_STAT_JOB + which
    this.#start = which * STAT_BATCH_SIZE * STAT_ENTRY_BYTES
    this.#look = new StatxView(statMemoryFields, this.#start + STATX)
  }

  setName(at: number, block: Uint8Array, start: number, length: number): void {
    const place = this.#start + at * STAT_ENTRY_BYTES + NAME
    // Names are short, so a loop is faster than a call.
    for (let index = 0; index < length; index++) statMemoryBytes[place + index] = block[start + index] as number
    statMemoryBytes[place + length] = 0
    this.#lengths[at] = length
  }

  nameOf(at: number): EntryName {
    const length = this.#lengths[at] as number
    const kept = at * NAME_LENGTH_COUNT + length
    const place = this.#start + at * STAT_ENTRY_BYTES + NAME
    this.#names[kept] ??= statMemoryBytes.subarray(place, place + length)
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
    startLook(this.#job, parent, how, count, isAhead && count >= MIN_STATS_FOR_THREADS ? 1 : 0)
  }

  finish(): void {
    finish(this.#job)
    if (this.#how === HOLD_AND_LIST && this.#count > 0 && this.handle(0) !== undefined)
      recordListxattratResult(this.#word(0, LISTED))
  }

  #word(at: number, which: number): number {
    return statMemoryWords[(this.#start + at * STAT_ENTRY_BYTES) / 4 + which] as number
  }

  stat(at: number): StatView | undefined {
    if (this.#how !== LOOK && this.handle(at) === undefined) return undefined
    if (this.#word(at, LOOKED) !== 0) return undefined
    this.#look.at = this.#start + at * STAT_ENTRY_BYTES + STATX
    // A mount's root is on another device than its directory's handle.
    if (this.#how !== LOOK) recordOverlayDevice(this.#word(at, HANDLE) as Handle, this.#look.device)
    else if (!this.#look.mountRoot) recordOverlayDevice(this.#parent, this.#look.device)
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
    const place = this.#start + at * STAT_ENTRY_BYTES + LIST
    return statMemoryText.toString('latin1', place, place + size)
  }
}

/** A thread has two batches. One walk at a time uses them, and releases them between its steps. */
export const linuxStatBatches: readonly [StatBatch, StatBatch] = [new LinuxStatBatch(0), new LinuxStatBatch(1)]

// driver/kernel/kernel.h: JOBS, CHANGES, struct change.
const CHANGE_JOB_COUNT = 48
const CHANGE_BATCH_SIZE = 1200
const WORDS_PER_CHANGE = 10
const [CHANGE_HANDLE, SEEN_GROUP, SEEN_MODE, GROUP, MODE, NEEDS_SAME_TIME, RESULT] = [2, 3, 4, 5, 6, 7, 8]
const CHANGE_OUTCOMES = ['made', 'odd', 'half'] as const
/** Smallest batch of changes for which other threads are faster. */
const MIN_CHANGES_FOR_THREADS = 32

const changeWords = new Uint32Array(changeMemory)
const changeDoubles = new Float64Array(changeMemory)
const freeChangeJobs = Array.from({ length: CHANGE_JOB_COUNT }, (_, job) => job)

/** Maximum threads besides the walk's own. More threads than processors would slow the walk down. */
const MAX_CHANGE_THREADS = 3

function countChangeThreads(): number {
  const otherProcessors = countProcessors() - 1
  return Math.max(1, Math.min(MAX_CHANGE_THREADS, otherProcessors))
}

/** @returns undefined if other walks use all jobs, or the batch is too large for one */
export function allocateFileChangeBatch(size: number): FileChangeBatch | undefined {
  const job = size <= CHANGE_BATCH_SIZE ? freeChangeJobs.pop() : undefined
  return job === undefined ? undefined : new LinuxFileChangeBatch(job)
}

class LinuxFileChangeBatch implements FileChangeBatch {
  readonly #job: number
  readonly #threads = countChangeThreads()
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
    changeWords[word + RESULT] = CHANGE_OUTCOMES.indexOf('odd')
  }

  start(count: number): void {
    start(this.#job, count, count < MIN_CHANGES_FOR_THREADS ? 0 : this.#threads)
  }

  finish(): number {
    return finish(this.#job)
  }

  outcome(at: number): (typeof CHANGE_OUTCOMES)[number] {
    return CHANGE_OUTCOMES[changeWords[this.#wordOf(at) + RESULT] as number] as (typeof CHANGE_OUTCOMES)[number]
  }

  #wordOf(at: number): number {
    return (this.#job * CHANGE_BATCH_SIZE + at) * WORDS_PER_CHANGE
  }

  [Symbol.dispose](): void {
    if (this.#isFree) return
    this.#isFree = true
    this.finish()
    freeChangeJobs.push(this.#job)
  }
}
