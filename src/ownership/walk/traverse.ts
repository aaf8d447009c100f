import { TYPE_DIRECTORY } from '../../host/dirents.ts'
import { errorCode, type Handle, type Inodes, type Name, type Stat } from '../../host/host.ts'
import { ignoreVanished, pathBelow } from './entry.ts'
import { Frames, type OpenFrame, type PackedFrames } from './frames.ts'
import type { LeftReason } from './report.ts'

/** Another mount, or another device within one, is not walked: a btrfs subvolume has inode numbers of its own. */
export type Boundary = Pick<Stat, 'mountId' | 'device'>

export function isElsewhere(stat: Boundary, inside: Boundary): boolean {
  return stat.mountId !== inside.mountId || stat.device !== inside.device
}

/** Other threads that may be in want of work. */
export interface OtherWorkers {
  /** Called for every entry. @returns whether they want work. @throws where one of them has failed */
  poll(): boolean
  give(part: PackedFrames): void
}

/** Called for every inode below the place where a walk began. */
export interface Visitor {
  /**
   * `name` in `parent` is not known to be a directory.
   * @returns true where it turns out to be one, which is then entered
   */
  entry(parent: OpenFrame, name: Name): boolean
  /** A directory, after all that is in it. */
  directory(handle: Handle, path: Uint8Array): void
  left(reason: LeftReason, path: Uint8Array): void
  /** Lets go of handles, after the changes they are held for have been made; false: there are none. */
  makeRoom?(): boolean
  /** Asked between entries: the rest of the walk is to be handed on. */
  stops?(): boolean
  readonly others?: OtherWorkers | undefined
}

/**
 * Walks a tree by handles: entries before their directory, the one where it began left to the caller. Links are not
 * followed, other mounts not entered, nothing is opened for reading but directories. Memory and open handles do not
 * grow with the tree, only (a little) with depth.
 * @returns the rest, when the visitor stopped it
 */
export function traverse(
  inodes: Inodes,
  part: PackedFrames,
  inside: Boundary,
  visitor: Visitor,
): PackedFrames | undefined {
  const frames = new Frames(inodes, part)
  try {
    for (let frame = frames.top(); frame; frame = frames.top()) {
      if (visitor.stops?.()) return frames.pack()
      if (visitor.others?.poll()) {
        const part = frames.split()
        if (part) visitor.others.give(part)
      }
      const entry = frames.next(frame)
      if (entry === undefined) {
        if (!frames.atBase()) visitor.directory(frame.handle, frame.path)
        for (const lost of frames.pop()) visitor.left('moved during the walk', lost)
        continue
      }
      const { name } = entry
      if (entry.type !== TYPE_DIRECTORY && !visitor.entry(frame, name)) continue
      const reason = enter(inodes, frames, frame, name, inside, visitor)
      if (reason) visitor.left(reason, pathBelow(frame.path, name))
    }
    return undefined
  } finally {
    frames.close()
  }
}

/** Why it was not entered. Looked at before it is opened, which could mount something (autofs). */
function enter(
  inodes: Inodes,
  frames: Frames,
  parent: OpenFrame,
  name: Name,
  inside: Boundary,
  visitor: Visitor,
): LeftReason | undefined {
  const seen = ignoreVanished(() => inodes.statEntry(parent.handle, name))
  if (seen && isElsewhere(seen, inside)) return 'sub-mount'
  const handle = seen && openWithRoom(visitor, () => ignoreVanished(() => inodes.openDirectory(parent.handle, name)))
  if (handle === undefined) return 'gone or replaced during the walk'
  const stat = inodes.stat(handle)
  if (!isElsewhere(stat, inside)) {
    frames.push(parent, handle, stat, name)
    return undefined
  }
  inodes.close(handle)
  return 'sub-mount'
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
