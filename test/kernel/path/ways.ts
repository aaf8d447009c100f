import { Refusal } from '../../../src/errors/refusal.ts'
import { type Handle, type Host, type Inodes, SystemError } from '../../../src/kernel/host.ts'
import { openSubPath } from '../../../src/kernel/path/open-sub-path.ts'

/** The ways a path is resolved: by the kernel, and by parts where the kernel cannot, or says that it leads out. */
export const WAYS: readonly (readonly [string, (inodes: Inodes) => Inodes])[] = [
  ['at once', (inodes) => inodes],
  ['by parts, before Linux 5.6', (inodes) => ({ ...inodes, openBeneath: refusing('ENOSYS') })],
  ['by parts, after a rename elsewhere', (inodes) => ({ ...inodes, openBeneath: refusing('EAGAIN') })],
]

function refusing(code: string): () => Handle {
  return () => {
    throw new SystemError('openat2', code, 'a path')
  }
}

/** The identity of an inode. */
export function identity(inodes: Inodes, handle: Handle): string {
  const { device, inode } = inodes.stat(handle)
  return `inode ${device}:${inode}`
}

/** The identity of what is opened inside, or the words of the refusal. Nothing stays open. */
export function outcomeOf(inodes: Inodes, root: Handle, subPath: string): string {
  let handle: Handle
  try {
    handle = openSubPath(inodes, root, subPath)
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
  try {
    return identity(inodes, handle)
  } finally {
    inodes.close(handle)
  }
}

/** By an absolute path without links. */
export function identityAt({ inodes }: Pick<Host, 'inodes'>, path: string): string {
  const handle = inodes.openLinkFree(path)
  try {
    return identity(inodes, handle)
  } finally {
    inodes.close(handle)
  }
}
