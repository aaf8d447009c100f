import { DIRECTORY, errorCode, FILE_TYPE, type Handle, type Inodes, type Name, type Stat } from '../host/host.ts'
import { Frames } from './frames.ts'
import type { LeftReason } from './report.ts'

const SELF = Uint8Array.of(0x2e)

/** Called for every inode of a volume below and including the root. */
export interface Visitor {
  /** `name` in `parent` is the inode; for a directory, after all that is in it, `parent` is itself and `name` is ".". */
  inode(parent: Handle, name: Name, stat: Stat, path: () => Uint8Array): void
  left(reason: LeftReason, path: Uint8Array): void
}

/**
 * Walks a tree by handles: entries before their directory, the root last. Links are not followed, other mounts not
 * entered, nothing is opened but directories. Memory and open handles do not grow with the tree, only (a little) with depth.
 */
export function traverse(inodes: Inodes, root: Handle, visitor: Visitor): void {
  const top = inodes.openDirectory(root, SELF)
  const rootStat = inodes.stat(top)
  const frames = new Frames(inodes, top, rootStat)
  try {
    for (let frame = frames.top(); frame; frame = frames.top()) {
      const entry = frame.nextEntry()
      if (entry === undefined) {
        visitor.inode(frame.handle, SELF, inodes.stat(frame.handle), () => frames.path())
        for (const lost of frames.pop()) visitor.left('moved during the walk', lost)
        continue
      }
      const stat = gone(() => inodes.statEntry(frame.handle, entry))
      if (stat === undefined) visitor.left('gone or replaced during the walk', frames.path(entry))
      else if (isElsewhere(stat, rootStat)) visitor.left('sub-mount', frames.path(entry))
      else if ((stat.mode & FILE_TYPE) !== DIRECTORY) visitor.inode(frame.handle, entry, stat, () => frames.path(entry))
      else if (!enter(inodes, frames, frame.handle, entry, rootStat))
        visitor.left('gone or replaced during the walk', frames.path(entry))
    }
  } finally {
    frames.close()
  }
}

/** False when the name is no longer a directory of this mount: replaced between being seen and being opened. */
function enter(inodes: Inodes, frames: Frames, parent: Handle, name: Name, root: Stat): boolean {
  const handle = gone(() => inodes.openDirectory(parent, name))
  if (handle === undefined) return false
  const stat = inodes.stat(handle)
  if (isElsewhere(stat, root)) {
    inodes.close(handle)
    return false
  }
  frames.push(handle, stat, name)
  return true
}

/** Another mount, or another device within the same one: a btrfs subvolume has inode numbers of its own. */
function isElsewhere(stat: Stat, root: Stat): boolean {
  return stat.mountId !== root.mountId || stat.device !== root.device
}

const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** The result, or undefined where the name vanished or became something else (a link: ELOOP) meanwhile. */
export function gone<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (GONE.has(errorCode(error) ?? '')) return undefined
    throw error
  }
}
