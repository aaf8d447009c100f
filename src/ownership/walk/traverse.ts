import type { Dirents } from '../../host/dirents.ts'
import { errorCode, type Handle, type Inodes, isDirectory, orClosed, type Stat } from '../../host/host.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { ignoreVanished, pathBelow } from './entry.ts'
import { Frames, type OpenFrame } from './frames.ts'
import type { LeftReason } from './report.ts'
import { Unrest } from './unrest.ts'

/** Where a walk stays: see `isElsewhere`. */
export type Boundary = Pick<Stat, 'mountId' | 'device'>

/**
 * Another mount, or another device within one, is not walked: a btrfs subvolume has inode numbers of its own.
 * @throws {Refusal} for a file of another device than its directory's, which only an overlay of several file systems has,
 * with xino=off (overlayfs.rst): numbers of its inodes are not unique and do not last, so no record could be trusted
 */
export function isElsewhere(stat: Boundary & Pick<Stat, 'mode'>, inside: Boundary): boolean {
  if (stat.mountId !== inside.mountId) return true
  if (stat.device === inside.device || isDirectory(stat)) return stat.device !== inside.device
  throw new Refusal(
    'the volume lies on an overlay of several file systems whose inodes have no numbers of their own, so what a walk changes could not be put back: ' +
      'mount the overlay with xino=on, or have all of its layers on one file system',
  )
}

const ANOTHER = 'directory gone or replaced during the walk'

/** Called for every inode below the place where a walk began. */
export interface Visitor {
  /**
   * Visits some entries of a block.
   * @returns true where the present one is a directory, which is then entered
   */
  entries(frame: OpenFrame, block: Dirents): boolean
  /** A directory, after all that is in it. */
  directory(handle: Handle, path: Uint8Array): void
  left(reason: LeftReason, path: Uint8Array): void
  /** Called before `left` for what is on another mount or device. */
  skippedBoundary?(stat: Stat): void
  /** Lets go of handles, after the changes they are held for have been made; false: there are none. */
  makeRoom?(): boolean
}

/**
 * Walks a tree by handles: entries before their directory, the one where it began left to the caller. Links are not
 * followed, other mounts not entered, nothing is opened for reading but directories. Memory and open handles do not
 * grow with the tree, only (a little) with depth. It yields between entries: whoever drives it has a turn.
 * @param top the tree's root, and its `stat`
 * @throws {Refusal} where it would not end: the tree changes faster than it can be walked, or has no end
 */
export function* traverse(
  inodes: Inodes,
  top: Handle,
  stat: Stat,
  visitor: Visitor,
  unrest = new Unrest(),
): Generator<undefined, void, undefined> {
  const frames = new Frames(inodes, top, stat, unrest)
  try {
    for (let frame = frames.top(); frame; frame = frames.top()) {
      yield
      unrest.check()
      const block = frames.block(frame)
      if (block === undefined) {
        if (!frames.atBase()) visitor.directory(frame.handle, frame.path)
        for (const lost of frames.pop()) visitor.left('moved during the walk', lost)
      } else if (visitor.entries(frame, block)) {
        const reason = enter(inodes, frames, frame, block, stat, visitor)
        if (reason) visitor.left(reason, pathBelow(frame.path, block.name))
      }
    }
  } finally {
    frames.close()
  }
}

/**
 * Why what was listed was not entered. It is looked at before it is opened, which could mount something (autofs). What is
 * found in its place is entered.
 */
function enter(
  inodes: Inodes,
  frames: Frames,
  parent: OpenFrame,
  { name, inode, isFile }: Dirents,
  inside: Boundary,
  visitor: Visitor,
): LeftReason | undefined {
  const seen = ignoreVanished(() => inodes.statEntry(parent.handle, name))
  if (seen && isElsewhere(seen, inside)) {
    visitor.skippedBoundary?.(seen)
    return 'sub-mount'
  }
  const handle = seen && openWithRoom(visitor, () => ignoreVanished(() => inodes.openDirectory(parent.handle, name)))
  if (handle === undefined) return ANOTHER
  const stat = orClosed(inodes, handle, inodes.stat)
  if (isElsewhere(stat, inside)) {
    visitor.skippedBoundary?.(stat)
    inodes.close(handle)
    return 'sub-mount'
  }
  return orClosed(inodes, handle, () => {
    // What is in its place is of the time since the walk began; other file systems' lists have numbers of their own.
    const isAnother = !isFile && stat.inode !== inode && frames.isMoved(parent, stat)
    if (!frames.push(parent, handle, stat, name)) inodes.close(handle)
    return isAnother ? ANOTHER : undefined
  })
}

/** Opens once more after the handles that are held have been let go of: a process may have few (RLIMIT_NOFILE). */
export function openWithRoom<T>(visitor: Pick<Visitor, 'makeRoom'>, open: () => T): T {
  try {
    return open()
  } catch (error) {
    const code = errorCode(error)
    if ((code === 'EMFILE' || code === 'ENFILE') && visitor.makeRoom?.()) return open()
    throw error
  }
}
