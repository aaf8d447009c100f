import type { Fault } from '../errors/fault.ts'
import { Refusal } from '../errors/refusal.ts'
import { findErrnoName, formatErrorWithErrnoName } from './errno-names.ts'

/** A failed system call. Code decides by `syscall` and `code` (ENOENT, …), and the message is for users. */
export class SystemError extends Error {
  readonly code: string
  readonly syscall: string

  constructor(syscall: string, code: string, target: string, detail = '') {
    super(`${syscall} ${truncateTarget(target)}: ${code}${detail && ` (${detail})`}`)
    this.name = 'SystemError'
    this.code = code
    this.syscall = syscall
  }
}

function truncateTarget(target: string): string {
  return target.length > 200 ? `${target.slice(0, 200)}…` : target
}

/** Returns the errno name of a failed call of modekeep or node:fs, and undefined for other errors. */
export function getErrno(error: unknown): string | undefined {
  return error instanceof Error ? findErrnoName(error) : undefined
}

/**
 * Makes a system call and replaces its error by a sentence for users.
 * @param sentences by errno name, or several names separated by spaces; a sentence may quote the kernel's message
 * @throws {Refusal} with the sentence; other errors unchanged
 */
export function refuseOnErrno<T>(
  call: () => T,
  sentences: (message: string, code: string) => Readonly<Record<string, Fault>>,
): T {
  try {
    return call()
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined) throw error
    const entries = Object.entries(sentences((error as Error).message, code))
    const [, sentence] = entries.find(([codes]) => codes.split(' ').includes(code)) ?? []
    throw sentence === undefined ? error : new Refusal(sentence, { cause: error })
  }
}

/** Returns undefined if the call fails with this errno. Several names are separated by spaces. */
export function tolerateErrno<T>(codes: string, call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (codes.split(' ').includes(getErrno(error) ?? '')) return undefined
    throw error
  }
}

/** The administrator's remedy for each errno of a disk. */
const ERRNO_REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'free space or inodes on its file system',
  EDQUOT: 'raise the quota of its file system',
  EROFS: 'make its file system writable',
  EIO: 'repair or replace its disk',
  EUCLEAN: 'repair its file system',
}

/** An error of a file of modekeep's own, with path, reason and remedy. `code` is the errno name. */
export class FileError extends Error {
  readonly code: string

  constructor(operation: string, path: string, code: string, cause: Error) {
    super(
      `cannot ${operation} ${path} (${formatErrorWithErrnoName(cause)}): ${ERRNO_REMEDIES[code] ?? 'remove the cause'}`,
      {
        cause,
      },
    )
    this.name = 'FileError'
    this.code = code
  }
}

/** Adds the path to the errors of a file operation: those of write(2) and fsync(2) do not name the file. */
export function addPathToErrors<T>(operation: string, path: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    const code = getErrno(error)
    if (code === undefined || error instanceof FileError) throw error
    throw new FileError(operation, path, code, error as Error)
  }
}

/** Returns undefined if the call fails with any errno. */
export function tolerateSystemErrors<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (getErrno(error) === undefined) throw error
    return undefined
  }
}

/** Returns false if the call fails with any errno. */
export function hasCallSucceeded(attempt: () => void): boolean {
  const isDone = tolerateSystemErrors(() => {
    attempt()
    return true
  })
  return isDone ?? false
}

/** Returns true if the system rejects the file at a path, and false if the file is missing. */
export function isPathRefusal(error: unknown): boolean {
  return ['EPERM', 'EINVAL', 'ELOOP', 'ENXIO'].includes(getErrno(error) ?? '')
}
