import { errorCode } from './system-error.ts'

/** What its administrator can do about a disk. */
const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'free space or inodes on its file system',
  EDQUOT: 'raise the quota of its file system',
  EROFS: 'make its file system writable',
  EIO: 'repair or replace its disk',
  EUCLEAN: 'repair its file system',
}

/** A file of modekeep's own that cannot be used: which, why (`code` is the errno name), and the way out. */
export class FileError extends Error {
  readonly code: string

  constructor(doing: string, path: string, code: string, cause: Error) {
    super(`cannot ${doing} ${path} (${cause.message}): ${REMEDIES[code] ?? 'remove the cause'}`, { cause })
    this.name = 'FileError'
    this.code = code
  }
}

/** Runs what is done to a file: errors of write(2) and fsync(2) do not say to which. */
export function withPath<T>(doing: string, path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined || error instanceof FileError) throw error
    throw new FileError(doing, path, code, error as Error)
  }
}

/** What was looked at; undefined where the system refuses, for whatever reason. */
export function tolerateSystemErrors<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (errorCode(error) === undefined) throw error
    return undefined
  }
}

/** Whether the system lets it be done. */
export function succeeds(attempt: () => void): boolean {
  const isDone = tolerateSystemErrors(() => {
    attempt()
    return true
  })
  return isDone ?? false
}
