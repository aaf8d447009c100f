import type { Handle, Inodes, Name, Stat } from '../../host/host.ts'
import { ignoreVanished, pathBelow } from './entry.ts'
import { Frame, frameOf, type PackedFrame } from './frame.ts'

const NONE = new Uint8Array()
const PARENT = Uint8Array.from([0x2e, 0x2e])
// The handles a walk keeps open at once, however deep the tree is.
const MOST_OPEN = 32

/** A part of a walk that another thread can take over: directories, from the one where the part begins to where it is. */
export type PackedFrames = PackedFrame[]

/** The part that is a whole tree. @param top its root, which stays the caller's, as does its visit */
export function wholeTree(inodes: Inodes, top: Handle, stat: Stat): PackedFrames {
  return [frameOf(inodes.duplicate(top), stat, NONE, NONE)]
}

/** Closes the handles of a part that nobody will walk. */
export function closePart(inodes: Inodes, part: PackedFrames): void {
  for (const { handle } of part) if (handle !== undefined) inodes.close(handle)
}

/** The directories from where a walk began to where it is. Far ones are parked: closed, to be found again by "..". */
export class Frames {
  readonly #inodes: Inodes
  readonly #stack: Frame[]

  constructor(inodes: Inodes, frames: PackedFrames) {
    this.#inodes = inodes
    this.#stack = frames.map((frame) => new Frame(inodes, frame))
  }

  top(): Frame | undefined {
    return this.#stack.at(-1)
  }

  /** Whether the top is where the walk began: whoever began it looks after that directory itself. */
  atBase(): boolean {
    return this.#stack.length === 1
  }

  push(handle: Handle, stat: Stat, name: Name): void {
    // The name is a view into a block that is not kept.
    this.#stack.push(new Frame(this.#inodes, frameOf(handle, stat, Uint8Array.from(name), this.path(name))))
    // The base (index 0) stays open: everything can be found again from it.
    const far = this.#stack.length - MOST_OPEN
    if (far > 0) this.#stack[far]?.park()
  }

  /** Leaves the top directory. Returns the paths of directories that could not be taken up again, their rest unvisited. */
  pop(): Uint8Array[] {
    const left = this.#stack.pop()
    const parent = this.top()
    const lost: Uint8Array[] = []
    if (left && parent && parent.open === undefined) {
      const above = this.#tryOpen(left.handle, PARENT)
      if (above === undefined || !this.#resume(parent, above)) lost.push(...this.#descend())
    }
    left?.park()
    return lost
  }

  /** The directory below was moved away: its parents are looked for from the base, each checked for being the one left. */
  #descend(): Uint8Array[] {
    for (let depth = 1; depth < this.#stack.length; depth++) {
      const frame = this.#stack[depth]
      const parent = this.#stack[depth - 1]
      if (!frame || !parent || frame.open !== undefined) continue
      const handle = this.#tryOpen(parent.handle, frame.name)
      if (handle === undefined || !this.#resume(frame, handle)) {
        for (const dropped of this.#stack.splice(depth)) dropped.park()
        return [frame.path]
      }
    }
    return []
  }

  #tryOpen(parent: Handle, name: Name): Handle | undefined {
    return ignoreVanished(() => this.#inodes.openDirectory(parent, name))
  }

  #resume(frame: Frame, handle: Handle): boolean {
    if (frame.resume(handle)) return true
    this.#inodes.close(handle)
    return false
  }

  /** The path from the volume's root to the top directory, or to an entry of it, as bytes: its end, where it is long. */
  path(entry?: Name): Uint8Array {
    const directory = this.top()?.path ?? NONE
    return entry ? pathBelow(directory, entry) : directory
  }

  /** Hands the walk on as it is; its handles belong to whoever takes it. */
  pack(): PackedFrames {
    return this.#stack.splice(0).map((frame) => frame.pack())
  }

  /** A part of the walk for another thread: the nearer to where it began, the more there is below. */
  split(): PackedFrames | undefined {
    for (const frame of this.#stack) {
      const part = frame.split()
      if (part) return [part]
    }
    return undefined
  }

  close(): void {
    for (const frame of this.#stack) frame.park()
  }
}
