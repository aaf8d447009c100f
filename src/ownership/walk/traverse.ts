import { Refusal } from '../../errors/refusal.ts'
import type { DirentIterator } from '../../kernel/dirents.ts'
import { getErrno, type Handle, type Inodes, isDirectory, type Stat, useHandleOrClose } from '../../kernel/host.ts'
import { DirectoryStack, type OpenDirectoryFrame } from './directory-stack.ts'
import { ignoreVanishedEntry, joinEntryPath } from './entry.ts'
import { LivelockGuard } from './livelock-guard.ts'
import type { SkipReason } from './report.ts'

/** The mount and device that a walk stays on. */
export type WalkBoundary = Pick<Stat, 'mountId' | 'device'>

/**
 * Returns whether an inode is on another mount, or another device within the mount. It is not walked: a btrfs subvolume
 * has inode numbers of its own.
 * @throws {Refusal} for a file on another device than its directory's. Only an overlay of several file systems with
 * xino=off has these (overlayfs.rst). Its inode numbers are neither unique nor stable, so no record could be trusted.
 */
export function isInodeOutsideBoundary(stat: WalkBoundary & Pick<Stat, 'mode'>, boundary: WalkBoundary): boolean {
  if (stat.mountId !== boundary.mountId) return true
  if (stat.device === boundary.device || isDirectory(stat)) return stat.device !== boundary.device
  throw Refusal.of(
    'overlay-inodes',
    'the volume lies on an overlay of several file systems whose inodes have no numbers of their own, so what a walk changes could not be put back',
    'mount the overlay with xino=on, or have all of its layers on one file system',
  )
}

export const DIRECTORY_REPLACED_REASON = 'directory gone or replaced during the walk'

/** Called for every inode below the base of a walk. */
export interface TreeVisitor {
  /**
   * Visits some entries of a block.
   * @returns true if the present entry is a directory, which is then entered
   */
  visitEntries(frame: OpenDirectoryFrame, block: DirentIterator): boolean
  /** Visits a directory after its contents. */
  visitDirectory(handle: Handle, path: Uint8Array): void
  skip(reason: SkipReason, path: Uint8Array): void
  /** Called before `skip` for an inode on another mount or device. */
  onBoundary?(stat: Stat): void
  /** Closes handles after the changes that need them; false: there were none. */
  releaseHandles?(): boolean
}

/**
 * Walks a tree by handles. Entries come before their directory; the caller visits the base itself. Links are not
 * followed, other mounts are not entered, and only directories are opened for reading.
 * Memory and open handles depend on the depth (a little), not on the size of the tree. It yields between entries, so
 * that the caller can do other work.
 * @param top the tree's root, and its `stat`
 * @throws {Refusal} if the walk would not end: the tree changes faster than it can be walked, or is endless
 */
export function* traverseTree(
  inodes: Inodes,
  top: Handle,
  stat: Stat,
  visitor: TreeVisitor,
  guard = new LivelockGuard(),
): Generator<undefined, void, undefined> {
  const stack = new DirectoryStack(inodes, top, stat, guard)
  try {
    for (let frame = stack.top(); frame; frame = stack.top()) {
      yield
      guard.check()
      const block = stack.readBlock(frame)
      if (block === undefined) {
        if (!stack.isAtBase()) visitor.visitDirectory(frame.handle, frame.path)
        for (const lost of stack.pop()) visitor.skip('moved during the walk', lost)
      } else if (visitor.visitEntries(frame, block)) {
        const reason = enterDirectory(inodes, stack, frame, block, stat, visitor)
        if (reason) visitor.skip(reason, joinEntryPath(frame.path, block.name))
      }
    }
  } finally {
    stack.close()
  }
}

/**
 * Enters a listed directory, or returns why it was not entered. It is inspected before it is opened, because opening
 * could trigger a mount (autofs). A replacement is entered, too.
 */
function enterDirectory(
  inodes: Inodes,
  stack: DirectoryStack,
  parent: OpenDirectoryFrame,
  { name, inode, isFile }: DirentIterator,
  boundary: WalkBoundary,
  visitor: TreeVisitor,
): SkipReason | undefined {
  const seen = ignoreVanishedEntry(() => inodes.statEntry(parent.handle, name))
  if (seen && isInodeOutsideBoundary(seen, boundary)) {
    visitor.onBoundary?.(seen)
    return 'sub-mount'
  }
  const handle =
    seen &&
    openAfterReleasingHandles(visitor, () => ignoreVanishedEntry(() => inodes.openDirectory(parent.handle, name)))
  const stat = handle && ignoreVanishedEntry(() => useHandleOrClose(inodes, handle, inodes.stat))
  if (handle === undefined || stat === undefined) return DIRECTORY_REPLACED_REASON
  if (isInodeOutsideBoundary(stat, boundary)) {
    visitor.onBoundary?.(stat)
    inodes.close(handle)
    return 'sub-mount'
  }
  return useHandleOrClose(inodes, handle, () => {
    // A replacement is newer than the start of the walk. On other file systems, listed inode numbers can differ from
    // those of stat.
    const isAnother = !isFile && stat.inode !== inode && stack.isMoved(parent, stat)
    if (!stack.push(parent, handle, stat, name)) inodes.close(handle)
    return isAnother ? DIRECTORY_REPLACED_REASON : undefined
  })
}

/** Opens once more after handles were released, because a process may have few (RLIMIT_NOFILE). */
export function openAfterReleasingHandles<T>(visitor: Pick<TreeVisitor, 'releaseHandles'>, open: () => T): T {
  try {
    return open()
  } catch (error) {
    const code = getErrno(error)
    if ((code === 'EMFILE' || code === 'ENFILE') && visitor.releaseHandles?.()) return open()
    throw error
  }
}
