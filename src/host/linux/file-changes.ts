import { chmodSync, fstatSync } from 'node:fs'
import { succeeds } from '../file-error.ts'
import type { FileChange, FileChangeBatch, Handle } from '../host.ts'
import { readText } from '../read-file.ts'
import { AT_EMPTY_PATH, changeMemory, finish, putEmpty, requireSuccess, start, systemCall } from './kernel.ts'

// driver/kernel/kernel.h: JOBS, CHANGES, struct change.
const JOBS = 48
const BATCH_SIZE = 720
const WORDS = 10
const [HANDLE, SEEN_GROUP, SEEN_MODE, GROUP, MODE, NEEDS_SAME_TIME, RESULT] = [2, 3, 4, 5, 6, 7, 8]
const OUTCOMES = ['made', 'odd', 'half'] as const
/** Smallest batch for which other threads are faster. */
const MIN_FOR_THREADS = 32

const words = new Uint32Array(changeMemory)
const doubles = new Float64Array(changeMemory)
const freeJobs = Array.from({ length: JOBS }, (_, job) => job)

/** Maximum threads besides the walk's own. More threads than processors would slow the walk down. */
const MAX_THREADS = 3

function countThreads(): number {
  // Only walks load this module.
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
    doubles[word / 2] = change.changed
    words[word + HANDLE] = change.handle
    words[word + SEEN_GROUP] = change.seenGroup
    words[word + SEEN_MODE] = change.seenMode
    words[word + GROUP] = change.group
    words[word + MODE] = change.mode
    words[word + NEEDS_SAME_TIME] = change.needsSameTime ? 1 : 0
    // Until the change is made, the caller owns the handle.
    words[word + RESULT] = OUTCOMES.indexOf('odd')
  }

  start(count: number): void {
    start(this.#job, count, count < MIN_FOR_THREADS ? 0 : this.#threads)
  }

  finish(): number {
    return finish(this.#job)
  }

  outcome(at: number): (typeof OUTCOMES)[number] {
    return OUTCOMES[words[this.#wordOf(at) + RESULT] as number] as (typeof OUTCOMES)[number]
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

const fchmodat2 = systemCall('fchmodat2')

const EPERM = -1
const ENOSYS = -38
const SET_GID = 0o2000
const CAP_FSETID = 4n

/**
 * Changes the mode of a handle's inode: fchmodat2(2), Linux 6.6.
 * @throws {SystemError}
 * @throws {Error} if the kernel cleared set-gid. chmod(2) does so without an error if the process is not in the group
 * and lacks CAP_FSETID. The inode is not at fault, so callers must not skip it
 */
export function chmod(handle: Handle, mode: number): void {
  setMode(handle, mode)
  if ((mode & SET_GID) === 0 || hasFsetid()) return
  if ((fstatSync(handle).mode & SET_GID) !== 0) return
  throw new Error('chmod left set-gid out: give modekeep CAP_FSETID')
}

let fsetid: boolean | undefined

/** Capabilities do not change while a call runs. */
function hasFsetid(): boolean {
  if (fsetid === undefined) {
    const [, digits = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readText('/proc/thread-self/status')) ?? []
    fsetid = (BigInt(`0x${digits}`) & (1n << CAP_FSETID)) !== 0n
  }
  return fsetid
}

let noFchmodat2 = false

function setMode(handle: Handle, mode: number): void {
  // The handle's magic link leads to the same inode without a lookup of its name.
  const chmodByLink = () => chmodSync(`/proc/self/fd/${handle}`, mode)
  const result = noFchmodat2 ? ENOSYS : fchmodat2(handle, putEmpty(), mode, AT_EMPTY_PATH)
  // Filters of old container runtimes return EPERM for unknown calls. The magic link still works.
  const isFiltered = result === EPERM && succeeds(chmodByLink)
  noFchmodat2 = isFiltered || result === ENOSYS
  if (result === ENOSYS) chmodByLink()
  else if (!isFiltered) requireSuccess(result, 'fchmodat2', 'an open handle')
}
