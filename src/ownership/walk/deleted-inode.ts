import type { Handle, Inodes } from '../../kernel/host.ts'
import { getErrno, SystemError } from '../../kernel/system-error.ts'
import { SELF_ENTRY_NAME } from './entry.ts'
import { recordSkippedInode, type WalkReport } from './report.ts'

/** Another client of the server deleted an inode that the walk has open. A local file system keeps such an inode. */
export class DeletedInodeError extends SystemError {
  /** @param cause the server's ESTALE */
  constructor(cause: unknown) {
    super('a call', 'ENOENT', 'on an inode that another client deleted')
    this.cause = cause
  }
}

const WRAPPED_OPERATIONS = [
  ...(['openDirectory', 'openEntry', 'stat', 'look', 'viewEntry', 'ownership', 'statEntry', 'readEntries'] as const),
  ...(['seekEntries', 'chown', 'chmod', 'getAttribute', 'attributeNames', 'setAttribute', 'removeAttribute'] as const),
] as const

/**
 * Returns operations that distinguish a deleted inode from a volume that is lost. A server reports ESTALE for both. If the
 * volume's root still exists, only the inode is deleted, and the error becomes `DeletedInodeError`, with ENOENT.
 */
export function distinguishDeletedInodes(inodes: Inodes, root: Handle): Inodes {
  const wrapped: Record<string, unknown> = { ...inodes }
  for (const name of WRAPPED_OPERATIONS) {
    const operation = inodes[name] as (...args: unknown[]) => unknown
    wrapped[name] = (...args: unknown[]) => {
      try {
        return operation(...args)
      } catch (error) {
        if (getErrno(error) !== 'ESTALE' || !isRootOnServer(inodes, root)) throw error
        throw new DeletedInodeError(error)
      }
    }
  }
  return wrapped as unknown as Inodes
}

/** Queries the server, because cached attributes of a deleted root stay valid for up to a minute. */
function isRootOnServer(inodes: Inodes, root: Handle): boolean {
  try {
    inodes.queryEntry(root, SELF_ENTRY_NAME)
    return true
  } catch {
    return false
  }
}

/**
 * Skips an inode that was deleted before its change. The root, whose path is empty, is never deleted in a walk that goes on.
 * @throws the server's error for the root
 * @returns `overtaken` for a deleted inode: its record stays until the journal is pruned
 */
export function skipDeletedInode<T>(report: WalkReport, readPath: () => Uint8Array, change: () => T): T | 'overtaken' {
  try {
    return change()
  } catch (error) {
    if (!(error instanceof DeletedInodeError)) throw error
    const path = readPath()
    if (path.length === 0) throw error.cause
    recordSkippedInode(report, 'gone or replaced during the walk', path)
    return 'overtaken'
  }
}

/** Returns undefined for a deleted inode. */
export function ignoreDeletedInode<T>(inspect: () => T): T | undefined {
  try {
    return inspect()
  } catch (error) {
    if (!(error instanceof DeletedInodeError)) throw error
    return undefined
  }
}
