import { fileURLToPath } from 'node:url'
import { nameErrno } from '../errno-names.ts'
import { SystemError } from '../host.ts'

/** The exports of driver/kernel. */
export interface KernelAddon {
  /** Memory for names and structures of calls. Rows contain offsets into it where the kernel takes addresses. */
  readonly arena: ArrayBuffer
  /** Rows of eight numbers, one for each call: an index of `calls`, six arguments, the result. */
  readonly rows: Float64Array
  readonly calls: Readonly<Record<string, number>>
  /** Makes the calls of the first rows. A result is the kernel's own, -errno on failure, NaN if the row is refused. */
  run(count: number): void
  /** File changes of jobs: see driver/kernel/kernel.h. */
  readonly changes: ArrayBuffer
  /** Starts the first changes of a job, with this number of `others` (threads). */
  start(job: number, count: number, others: number): void
  /** Names and stat results of entries: see driver/kernel/kernel.h. */
  readonly sights: ArrayBuffer
  /** Stats entries of a directory in a job. See driver/kernel/kernel.h for `how` and `others`. */
  look(job: number, parent: number, how: number, count: number, others: number): void
  /** Waits for a job. @returns the number of changes that were not made */
  finish(job: number): number
  /** @returns the pid of an ended child in a user namespace of its own, or -errno */
  cloneUserNamespace(): number
}

const kernelAddon = loadKernelAddon()
const { arena, rows, calls, run } = kernelAddon
export const {
  changes: changeMemory,
  sights: sightMemory,
  start,
  look: startLook,
  finish,
  cloneUserNamespace,
} = kernelAddon

// A row has eight numbers: the call, six arguments, the result.
const CALL_ROW_WORDS = 8
const CALL_RESULT_WORD = 7

/** Loads the addon once in each thread. No other module loads one. */
function loadKernelAddon(): KernelAddon {
  const loaded = { exports: {} as KernelAddon }
  process.dlopen(loaded, findKernelAddonFile())
  return loaded.exports
}

/** The executable has no URL: its loader copies the addon into a memory file, which the variable names. */
function findKernelAddonFile(): string {
  if (import.meta.url === '') return `/proc/self/fd/${process.env.MODEKEEP_KERNEL}`
  return fileURLToPath(new URL(`../../../driver/kernel/${process.arch}.node`, import.meta.url))
}

/** Maximum number of calls in one batch. */
export const MAX_BATCH_CALLS = rows.length / CALL_ROW_WORDS

/** Prepares one call of a batch. @param call from `findSystemCallIndex`; see `createSystemCall` for the arguments */
export function prepareSystemCall(at: number, call: number, a = 0, b = 0, c = 0, d = 0, e = 0): void {
  const start = at * CALL_ROW_WORDS
  rows[start] = call
  rows[start + 1] = a
  rows[start + 2] = b
  rows[start + 3] = c
  rows[start + 4] = d
  rows[start + 5] = e
}

/** Makes the first prepared calls in order, and continues after failures. */
export { run as runPrepared }

export function findSystemCallIndex(name: string): number {
  const index = calls[name]
  if (index === undefined) throw new Error(`internal error: ${name} is not in driver/kernel's table of permitted calls`)
  return index
}

/**
 * Returns a function for a call that driver/kernel/calls.h permits. Its arguments are integers: names and structures
 * are passed as offsets into the arena. It returns the kernel's result, -errno on failure; see `requireCallSuccess`.
 */
export function createSystemCall(name: string) {
  const index = findSystemCallIndex(name)
  return (a = 0, b = 0, c = 0, d = 0, e = 0): number => {
    prepareSystemCall(0, index, a, b, c, d, e)
    run(1)
    return rows[CALL_RESULT_WORD] as number
  }
}

// include/uapi/linux/fcntl.h
export const AT_FDCWD = -100
export const AT_SYMLINK_NOFOLLOW = 0x100
export const AT_EMPTY_PATH = 0x1000

// Layout of a call's arguments in the arena: up to two names, then one structure or block of bytes. Results of statx(2)
// have their own area, because they are read after other calls.
const NAME_ARGUMENT_BYTES = 8192
export const SECOND_NAME_OFFSET = NAME_ARGUMENT_BYTES
export const CALL_DATA_OFFSET = 2 * NAME_ARGUMENT_BYTES
/** Size of the buffer for a call's data. The largest value of an extended attribute fits. */
export const CALL_DATA_BYTES = 1 << 16
export const STATX_DATA_OFFSET = CALL_DATA_OFFSET + CALL_DATA_BYTES

/** The complete arena. */
export const arenaBytes = Buffer.from(arena)

/** The arena from CALL_DATA_OFFSET on. The next call may overwrite it, so results are copied. */
export const callData = Buffer.from(arena, CALL_DATA_OFFSET, CALL_DATA_BYTES)

/**
 * Writes a name into the arena and returns its offset.
 * @param start SECOND_NAME_OFFSET for the second name of a call that takes two
 * @throws {SystemError} EINVAL for a NUL, which would truncate the name silently, and for a name that is too long for
 * any kernel
 */
export function writeNameArgument(name: Uint8Array | string, start = 0): number {
  const from = typeof name === 'string' ? Buffer.from(name) : name
  if (from.length >= NAME_ARGUMENT_BYTES) throw new SystemError('name', 'EINVAL', formatCallTarget(name))
  // For short names a loop is faster than searching for a NUL and copying.
  for (let index = 0; index < from.length; index++) {
    const byte = from[index] as number
    if (byte === 0) throw new SystemError('name', 'EINVAL', formatCallTarget(name))
    arenaBytes[start + index] = byte
  }
  arenaBytes[start + from.length] = 0
  return start
}

/** Writes the path "", for calls on a handle itself (AT_EMPTY_PATH). */
export function writeEmptyNameArgument(): number {
  arenaBytes[0] = 0
  return 0
}

const ENOSYS_DETAIL = "this node's kernel does not have it, or a filter of system calls hides it"
/** Calls that modekeep can do without; it needs all others. */
const OPTIONAL_CALLS: ReadonlySet<string> = new Set(['openat2', 'fchmodat2', 'listxattrat'])

/** Returns a successful result. @throws {SystemError} with the name of the errno */
export function requireCallSuccess(
  result: number,
  syscall: string,
  target: string | Uint8Array,
  detail?: () => string,
): number {
  if (result >= 0) return result
  if (Number.isNaN(result)) throw new Error(`driver/kernel refused ${syscall} of ${formatCallTarget(target)}`)
  const code = nameErrno(-result)
  const isMissing = code === 'ENOSYS'
  const needed = isMissing && !OPTIONAL_CALLS.has(syscall) ? '; modekeep needs Linux 5.12 or newer' : ''
  throw new SystemError(syscall, code, formatCallTarget(target), isMissing ? ENOSYS_DETAIL + needed : detail?.())
}

function formatCallTarget(target: string | Uint8Array): string {
  return typeof target === 'string' ? target : JSON.stringify(Buffer.from(target).toString())
}
