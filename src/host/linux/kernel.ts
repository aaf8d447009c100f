import { fileURLToPath } from 'node:url'
import { getSystemErrorName } from 'node:util'
import { SystemError } from '../host.ts'

/** What driver/kernel exports. */
export interface KernelAddon {
  /** Names and structures of calls: rows hold offsets into it where the kernel takes addresses. */
  readonly arena: ArrayBuffer
  /** Calls to make, eight numbers each: an index of `calls`, six arguments, the result. */
  readonly rows: Float64Array
  readonly calls: Readonly<Record<string, number>>
  /** Makes the calls of the first rows. A result is the kernel's own, -errno on failure, NaN if the row is refused. */
  run(count: number): void
  /** What jobs are to change: see driver/kernel/kernel.h. */
  readonly changes: ArrayBuffer
  /** The first changes of a job are to be made: by so many `others` too. */
  start(job: number, count: number, others: number): void
  /** What entries are called, and what is seen of them: see driver/kernel/kernel.h. */
  readonly sights: ArrayBuffer
  /** Entries of a directory are to be looked at by a job of sights: `how` and `others` as there. */
  look(job: number, parent: number, how: number, count: number, others: number): void
  /** Returns when a job is done. @returns how many of its changes were not made */
  finish(job: number): number
  /** @returns the number of an ended child in a user namespace of its own, or -errno */
  cloneUserNamespace(): number
}

const addon = load()
const { arena, rows, calls, run } = addon
export const { changes: changeMemory, sights: sightMemory, start, look: startLook, finish, cloneUserNamespace } = addon

// A row of numbers: the call, six arguments, the result.
const ROW = 8
const RESULT = 7

/** An addon is loaded once in each thread; the only module that does. */
function load(): KernelAddon {
  const loaded = { exports: {} as KernelAddon }
  process.dlopen(loaded, addonFile())
  return loaded.exports
}

/** In the executable, which has no URL, the loader made a memory file of it and says which. */
function addonFile(): string {
  if (import.meta.url === '') return `/proc/self/fd/${process.env.MODEKEEP_KERNEL}`
  return fileURLToPath(new URL(`../../../driver/kernel/${process.arch}.node`, import.meta.url))
}

/** How many calls can be made together. */
export const MAX_CALLS = rows.length / ROW

/** Prepares a call of `callNamed` as one of several; see `systemCall`. */
export function prepareCall(at: number, call: number, a = 0, b = 0, c = 0, d = 0, e = 0): void {
  const start = at * ROW
  rows[start] = call
  rows[start + 1] = a
  rows[start + 2] = b
  rows[start + 3] = c
  rows[start + 4] = d
  rows[start + 5] = e
}

/** Makes the first so many calls in their order, whatever becomes of each. */
export { run as runPrepared }

export function findCallIndex(name: string): number {
  const index = calls[name]
  if (index === undefined) throw new Error(`driver/kernel permits no call ${name}`)
  return index
}

/**
 * A call that driver/kernel/calls.h permits, as a function of its arguments: whole numbers, and for names and
 * structures offsets into the arena. It returns what the kernel returned, -errno on failure; see `done`.
 */
export function systemCall(name: string) {
  const index = findCallIndex(name)
  return (a = 0, b = 0, c = 0, d = 0, e = 0): number => {
    prepareCall(0, index, a, b, c, d, e)
    run(1)
    return rows[RESULT] as number
  }
}

// include/uapi/linux/fcntl.h
export const AT_FDCWD = -100
export const AT_SYMLINK_NOFOLLOW = 0x100
export const AT_EMPTY_PATH = 0x1000

// Where a call's arguments lie in the arena: up to two names, then one structure or block of bytes. What statx(2) says
// has places of its own: it is still read when other calls are made.
const NAME_SIZE = 8192
export const SECOND_NAME = NAME_SIZE
export const DATA = 2 * NAME_SIZE
/** Room for a block, such as the largest value of an extended attribute. */
export const BLOCK_SIZE = 1 << 16
export const STATX_DATA = DATA + BLOCK_SIZE

/** All of it. */
export const arenaBytes = Buffer.from(arena)

/** The arena from DATA on. The next call may change it: whoever keeps something of it copies. */
export const data = Buffer.from(arena, DATA, BLOCK_SIZE)

/**
 * Puts a call's name where the kernel will find it, and returns its offset.
 * @param start SECOND for the second name of a call that takes two
 * @throws {SystemError} EINVAL for a NUL, which would silently cut it, and for a name no kernel takes
 */
export function putName(name: Uint8Array | string, start = 0): number {
  const from = typeof name === 'string' ? Buffer.from(name) : name
  if (from.length >= NAME_SIZE) throw new SystemError('name', 'EINVAL', formatTarget(name))
  // Names are short: a loop is quicker than the calls that look for a byte and copy.
  for (let index = 0; index < from.length; index++) {
    const byte = from[index] as number
    if (byte === 0) throw new SystemError('name', 'EINVAL', formatTarget(name))
    arenaBytes[start + index] = byte
  }
  arenaBytes[start + from.length] = 0
  return start
}

/** The path "", for calls on a handle itself (AT_EMPTY_PATH). */
export function putEmpty(): number {
  arenaBytes[0] = 0
  return 0
}

const ENOSYS_DETAIL =
  "this node's kernel does not have it, or a filter of system calls hides it; modekeep needs Linux 5.12 or newer"

/** A call's result where it succeeded. @throws {SystemError} with the name of the errno */
export function requireSuccess(
  result: number,
  syscall: string,
  target: string | Uint8Array,
  detail?: () => string,
): number {
  if (result >= 0) return result
  if (Number.isNaN(result)) throw new Error(`driver/kernel refused ${syscall} of ${formatTarget(target)}`)
  const code = formatErrno(-result)
  throw new SystemError(syscall, code, formatTarget(target), code === 'ENOSYS' ? ENOSYS_DETAIL : detail?.())
}

/** libuv names no error of a damaged file system. */
function formatErrno(errno: number): string {
  return errno === EUCLEAN ? 'EUCLEAN' : getSystemErrorName(-errno)
}

const EUCLEAN = 117

function formatTarget(target: string | Uint8Array): string {
  return typeof target === 'string' ? target : JSON.stringify(Buffer.from(target).toString())
}
