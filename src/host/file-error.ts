import { errorCode } from './system-error.ts'

/** The administrator's remedy for each errno of a disk. */
const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'free space or inodes on its file system',
  EDQUOT: 'raise the quota of its file system',
  EROFS: 'make its file system writable',
  EIO: 'repair or replace its disk',
  EUCLEAN: 'repair its file system',
}

/**
 * Error for a file of modekeep's own: the message has its path, the reason and the remedy. `code` is the errno name.
 */
export class FileError extends Error {
  readonly code: string

  constructor(operation: string, path: string, code: string, cause: Error) {
    super(`cannot ${operation} ${path} (${cause.message}): ${REMEDIES[code] ?? 'remove the cause'}`, { cause })
    this.name = 'FileError'
    this.code = code
  }
}

/**
 * Runs a file operation and adds the path to its errors, because errors of write(2) and fsync(2) do not name the file.
 */
export function withPath<T>(operation: string, path: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined || error instanceof FileError) throw error
    throw new FileError(operation, path, code, error as Error)
  }
}

/** Returns undefined if the call fails with any errno. */
export function tolerateSystemErrors<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}

/** Returns false if the call fails with any errno. */
export function succeeds(attempt: () => void): boolean {
  const isDone = tolerateSystemErrors(() => {
    attempt()
    return true
  })
  return isDone ?? false
}
