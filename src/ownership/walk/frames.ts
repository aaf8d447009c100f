import { Dirents } from '../../host/dirents.ts'
import { errorCode, type Handle, type Inodes, type Name, type Stat } from '../../host/host.ts'
import { ignoreVanished, pathBelow } from './entry.ts'

const NONE = new Uint8Array()
const PARENT = Uint8Array.from([0x2e, 0x2e])
// The handles a walk keeps open at once, however deep the tree is.
const MOST_OPEN = 32

/** A directory half read. `Block`: entries read but not visited; bytes where another thread is to visit them. */
interface Directory<Block> extends Pick<Stat, 'inode' | 'born' | 'mountId'> {
  /** Undefined: parked. */
  handle: Handle | undefined
  /** Its name in the frame above. */
  name: Name
  path: Uint8Array
  block: Block | undefined
  /** Where to read on after them; undefined: nowhere, the rest is another thread's or there is none. */
  position: bigint | undefined
}

type Frame = Directory<Dirents>

/** A directory that is being walked. */
export type OpenFrame = Frame & { handle: Handle }

/** A part of a walk that another thread can take over: directories, from where the part begins to where it is. */
export type PackedFrames = Directory<Uint8Array>[]

/** The part that is a whole tree. @param top its root, which stays the caller's, as does its visit */
export function wholeTree(inodes: Inodes, top: Handle, stat: Stat): PackedFrames {
  return [unread(inodes.duplicate(top), stat, NONE, NONE)]
}

function unread(handle: Handle, { inode, born, mountId }: Stat, name: Name, path: Uint8Array) {
  return { inode, born, mountId, handle, name, path, block: undefined, position: 0n }
}

/** The directories from where a walk began to where it is. Far ones are parked: closed, to be found again by "..". */
export class Frames {
  readonly #inodes: Inodes
  readonly #stack: Frame[]

  constructor(inodes: Inodes, part: PackedFrames) {
    this.#inodes = inodes
    this.#stack = part.map((frame) => ({ ...frame, block: frame.block && new Dirents(frame.block) }))
  }

  top(): OpenFrame | undefined {
    const top = this.#stack.at(-1)
    if (top && !isOpen(top)) throw new Error('a closed frame was used')
    return top
  }

  /** Whether the top is where the walk began: whoever began it looks after that directory itself. */
  atBase(): boolean {
    return this.#stack.length === 1
  }

  /** The next entry of a directory, undefined at the end. */
  next(frame: OpenFrame): Dirents | undefined {
    while (!frame.block?.next()) {
      if (frame.position === undefined) return undefined
      // A directory that was removed has no entries: ENOENT.
      const bytes = ignoreVanished(() => this.#inodes.readEntries(frame.handle))
      const isMore = bytes !== undefined && bytes.length > 0
      frame.block = isMore ? new Dirents(bytes) : undefined
      frame.position = frame.block?.end
    }
    return frame.block
  }

  push(parent: OpenFrame, handle: Handle, stat: Stat, name: Name): void {
    // The name is a view into a block that is not kept.
    this.#stack.push(unread(handle, stat, Uint8Array.from(name), pathBelow(parent.path, name)))
    // The base (index 0) stays open: everything can be found again from it.
    const far = this.#stack.length - MOST_OPEN
    if (far > 0) this.#park(this.#stack[far])
  }

  /** Leaves the top directory. Returns paths of directories that cannot be taken up again, their rest unvisited. */
  pop(): Uint8Array[] {
    const left = this.top()
    this.#stack.pop()
    const parent = this.#stack.at(-1)
    const isLost = left && parent && !isOpen(parent) && !this.#resume(parent, left.handle, PARENT)
    const lost = isLost ? this.#descend() : []
    this.#park(left)
    return lost
  }

  /** The directory below was moved away: its parents are looked for from the base, each checked to be the one left. */
  #descend(): Uint8Array[] {
    for (const [depth, frame] of this.#stack.entries()) {
      const parent = this.#stack[depth - 1]
      if (isOpen(frame) || parent?.handle === undefined) continue
      if (this.#resume(frame, parent.handle, frame.name)) continue
      for (const dropped of this.#stack.splice(depth)) this.#park(dropped)
      return [frame.path]
    }
    return []
  }

  /** Takes a directory up again where it was left, if what is found under the name really is that directory. */
  #resume(frame: Frame, parent: Handle, name: Name): boolean {
    const handle = ignoreVanished(() => this.#inodes.openDirectory(parent, name))
    if (handle === undefined) return false
    const { inode, born, mountId } = this.#inodes.stat(handle)
    const isSame = inode === frame.inode && born === frame.born && mountId === frame.mountId
    if (isSame && (!frame.position || this.#seek(handle, frame.position))) {
      frame.handle = handle
      return true
    }
    this.#inodes.close(handle)
    return false
  }

  /** False for a directory that was removed: it has no entries, and ext4 refuses positions in it (EINVAL). */
  #seek(handle: Handle, position: bigint): boolean {
    try {
      this.#inodes.seekEntries(handle, position)
      return true
    } catch (error) {
      if (errorCode(error) === 'EINVAL' && this.#inodes.stat(handle).links === 0) return false
      throw error
    }
  }

  /** Lets go of the handle and of what was read ahead. */
  #park(frame: Frame | undefined): void {
    if (frame?.handle === undefined) return
    this.#inodes.close(frame.handle)
    frame.handle = undefined
    // What another thread has of a block must not be read again.
    if (frame.position !== undefined && !frame.block?.isSplit) forgetReadAhead(frame)
  }

  /** Hands the walk on as it is; its handles belong to whoever takes it, who reads on with them. */
  pack(): PackedFrames {
    return this.#stack.splice(0).map((frame) => {
      forgetReadAhead(frame)
      const { handle, position } = frame
      const isGone = handle !== undefined && position !== undefined && !this.#seek(handle, position)
      return { ...frame, block: undefined, position: isGone ? undefined : position }
    })
  }

  /** A part of the walk for another thread: the nearer to where it began, the more there is below. */
  split(): PackedFrames | undefined {
    for (const frame of this.#stack) {
      if (!isOpen(frame) || !frame.block?.isWorthSharing()) continue
      const handle = this.#inodes.tryDuplicate(frame.handle)
      if (handle !== undefined) return [{ ...frame, handle, block: frame.block.split(), position: undefined }]
    }
    return undefined
  }

  close(): void {
    for (const frame of this.#stack) this.#park(frame)
  }
}

function isOpen(frame: Frame): frame is OpenFrame {
  return frame.handle !== undefined
}

function forgetReadAhead(frame: Frame): void {
  frame.position = frame.block?.after ?? frame.position
  frame.block = undefined
}
