import { Dirents } from '../../host/dirents.ts'
import { errorCode, type Handle, type Inodes, type Name, orClosed, type Stat } from '../../host/host.ts'
import { Refusal } from '../../refusal/refusal.ts'
import { ignoreVanished, pathBelow } from './entry.ts'
import { NameSet, nameNumber } from './name-set.ts'
import { type Read, textOf, type Unrest } from './unrest.ts'

const NONE = Buffer.alloc(0)
const PARENT = Uint8Array.from([0x2e, 0x2e])
// The handles a walk keeps open at once, however deep the tree is.
const MOST_OPEN = 32
// What is kept of a directory on the way down is 2 KiB at most.
const DEEPEST = 16_384
// Eight bytes each. A directory beyond them that is moved may be walked once more.
const MOST_REMEMBERED = 1 << 20

/** A directory half read. */
interface Frame extends Pick<Stat, 'inode' | 'born' | 'mountId'>, Omit<Read, 'handle'> {
  /** Undefined: parked. */
  handle: Handle | undefined
  /** Tells it from all others: see nameNumber. */
  number: number
  /** Its name in the frame above. */
  name: Name
  /** Entries read but not visited. */
  block: Dirents | undefined
  /** Where to read on after them; undefined: there is nothing. */
  position: bigint | undefined
  /** Blocks that were read, and the position after one of them. */
  blocks: number
  mark: bigint | undefined
}

/** A directory that is being walked. */
export type OpenFrame = Frame & { handle: Handle }

function unread(handle: Handle, stat: Stat, name: Name, path: Uint8Array, isMoved: boolean): Frame {
  const { inode, born, mountId, changed } = stat
  const nothing = { block: undefined, position: 0n, blocks: 0, mark: undefined, again: 0 }
  return { inode, born, mountId, changed, isMoved, handle, number: nameNumber(stat, NONE), name, path, ...nothing }
}

/** The directories from where a walk began to where it is. Far ones are parked: closed, to be found again by "..". */
export class Frames {
  readonly #inodes: Inodes
  readonly #stack: Frame[]
  readonly #unrest: Unrest
  /** Numbers of the directories from where the walk began to where it is. */
  readonly #onTheWay = new Set<number>()
  /** Those of directories that were read to their end. */
  readonly #walked = new NameSet()

  /** @param top the root of a tree, which stays the caller's */
  constructor(inodes: Inodes, top: Handle, stat: Stat, unrest: Unrest) {
    this.#inodes = inodes
    this.#stack = []
    this.#unrest = unrest
    this.#add(unread(inodes.duplicate(top), stat, NONE, NONE, false))
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
      if (frame.block) this.#note(frame, frame.block)
    }
    return frame.block
  }

  #note(frame: OpenFrame, block: Dirents): void {
    // A server can lead in a circle. One of any length comes to the mark, which goes on after ever more blocks (Brent).
    if (frame.position === frame.mark && frame.again === 0) {
      throw new Refusal(
        `directory ${textOf(frame.path)} lists the same entries again and again: repair its file system`,
      )
    }
    // The first follows the look at the directory at once.
    if (frame.blocks++ > 0) frame.changed = this.#inodes.look(frame.handle).changed
    this.#unrest.met(this.#inodes, frame, block)
    if (Number.isInteger(Math.log2(frame.blocks))) frame.mark = frame.position
  }

  /**
   * Goes down into a directory. False: it is walked already, or was, and has been moved; the handle is the caller's.
   * @throws {Refusal} where directories are nested too deep
   */
  push(parent: OpenFrame, handle: Handle, stat: Stat, name: Name): boolean {
    const isMoved = this.isMoved(parent, stat)
    const path = pathBelow(parent.path, name)
    // The name is a view into a block that is not kept.
    const frame = unread(handle, stat, Uint8Array.from(name), path, isMoved)
    if (this.#onTheWay.has(frame.number) || (isMoved && this.#walked.has(frame.number))) return false
    if (this.#stack.length > DEEPEST) {
      throw new Refusal(`directory ${textOf(path)} is nested more than ${DEEPEST} deep, too deep for a walk: remove it`)
    }
    this.#add(frame)
    // The base (index 0) stays open: everything can be found again from it.
    const far = this.#stack.length - MOST_OPEN
    if (far > 0) this.#park(this.#stack[far])
    return true
  }

  /**
   * Whether a directory was made or moved since the walk began, or one above it: a move changes the ctime of the directory
   * and of the one that it is in.
   */
  isMoved(parent: OpenFrame, { changed }: Stat): boolean {
    if (parent.isMoved) return true
    if (!this.#unrest.isRecent(changed)) return false
    parent.changed = this.#inodes.look(parent.handle).changed
    return this.#unrest.isRecent(parent.changed)
  }

  #add(frame: Frame): void {
    this.#stack.push(frame)
    this.#onTheWay.add(frame.number)
  }

  /** Leaves the top directory. Returns paths of directories that cannot be taken up again, their rest unvisited. */
  pop(): Uint8Array[] {
    const left = this.top()
    this.#stack.pop()
    if (left) this.#remember(left)
    const parent = this.#stack.at(-1)
    try {
      const isLost = left && parent && !isOpen(parent) && !this.#resume(parent, left.handle, PARENT)
      return isLost ? this.#descend() : []
    } finally {
      this.#park(left)
    }
  }

  #remember({ number }: Frame): void {
    this.#onTheWay.delete(number)
    if (this.#walked.size < MOST_REMEMBERED) this.#walked.add(number)
  }

  /** The directory below was moved away: its parents are looked for from the base, each checked to be the one left. */
  #descend(): Uint8Array[] {
    for (const [depth, frame] of this.#stack.entries()) {
      const parent = this.#stack[depth - 1]
      if (isOpen(frame) || parent?.handle === undefined) continue
      this.#unrest.moved(1, parent.path)
      if (this.#resume(frame, parent.handle, frame.name)) {
        // As few handles as on the way down.
        if (depth > 1) this.#park(parent)
        continue
      }
      for (const dropped of this.#stack.splice(depth)) {
        this.#park(dropped)
        this.#onTheWay.delete(dropped.number)
      }
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
    const { inode, born, mountId, changed } = this.#inodes.stat(handle)
    frame.changed = changed
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
    frame.again += frame.block?.rest ?? 0
    frame.block = undefined
  }

  close(): void {
    for (const frame of this.#stack) this.#park(frame)
  }
}

function isOpen(frame: Frame): frame is OpenFrame {
  return frame.handle !== undefined
}
