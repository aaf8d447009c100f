import { Dirents } from '../../host/dirents.ts'
import { errorCode, type Handle, type Inodes, type Name, orClosed, type Stat } from '../../host/host.ts'
import { ignoreVanished, pathBelow } from './entry.ts'

const NONE = Buffer.alloc(0)
const PARENT = Uint8Array.from([0x2e, 0x2e])
// The handles a walk keeps open at once, however deep the tree is.
const MOST_OPEN = 32

/** A directory half read. */
interface Frame extends Pick<Stat, 'inode' | 'born' | 'mountId'> {
  /** Undefined: parked. */
  handle: Handle | undefined
  /** Its name in the frame above. */
  name: Name
  path: Uint8Array
  /** Entries read but not visited. */
  block: Dirents | undefined
  /** Where to read on after them; undefined: there is nothing. */
  position: bigint | undefined
}

/** A directory that is being walked. */
export type OpenFrame = Frame & { handle: Handle }

function unread(handle: Handle, { inode, born, mountId }: Stat, name: Name, path: Uint8Array): Frame {
  return { inode, born, mountId, handle, name, path, block: undefined, position: 0n }
}

/** The directories from where a walk began to where it is. Far ones are parked: closed, to be found again by "..". */
export class Frames {
  readonly #inodes: Inodes
  readonly #stack: Frame[]

  /** @param top the root of a tree, which stays the caller's */
  constructor(inodes: Inodes, top: Handle, stat: Stat) {
    this.#inodes = inodes
    this.#stack = [unread(inodes.duplicate(top), stat, NONE, NONE)]
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

  /** Entries of a directory that are to be visited next, undefined at the end. */
  block(frame: OpenFrame): Dirents | undefined {
    while (frame.block === undefined || frame.block.isAtEnd) {
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
    try {
      const isLost = left && parent && !isOpen(parent) && !this.#resume(parent, left.handle, PARENT)
      return isLost ? this.#descend() : []
    } finally {
      this.#park(left)
    }
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
    if (orClosed(this.#inodes, handle, () => this.#isAt(frame, handle))) {
      frame.handle = handle
      return true
    }
    this.#inodes.close(handle)
    return false
  }

  #isAt(frame: Frame, handle: Handle): boolean {
    const { inode, born, mountId } = this.#inodes.stat(handle)
    const isSame = inode === frame.inode && born === frame.born && mountId === frame.mountId
    return isSame && (!frame.position || this.#seek(handle, frame.position))
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
    if (frame.position === undefined) return
    frame.position = frame.block?.after ?? frame.position
    frame.block = undefined
  }

  close(): void {
    for (const frame of this.#stack) this.#park(frame)
  }
}

function isOpen(frame: Frame): frame is OpenFrame {
  return frame.handle !== undefined
}
