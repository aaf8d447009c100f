import type { Entry, Handle, Inodes, Name, Stat } from '../host/host.ts'

const PARENT = Uint8Array.from([0x2e, 0x2e])
const SLASH = Uint8Array.of(0x2f)
// A record and a report of every inode of a deep tree must not hold its whole path each.
const LONGEST_PATH = 1024
const CUT = Buffer.from('…')
// The handles a walk keeps open at once, however deep the tree is.
const MOST_OPEN = 32

class Frame {
  open: Handle | undefined
  readonly name: Name
  readonly #inodes: Inodes
  readonly #stat: Stat
  #entries: Entry[] = []
  #index = 0
  #position = 0n

  constructor(inodes: Inodes, handle: Handle, stat: Stat, name: Name) {
    this.#inodes = inodes
    this.open = handle
    this.name = name
    this.#stat = stat
  }

  get handle(): Handle {
    if (this.open === undefined) throw new Error('a closed frame was used')
    return this.open
  }

  nextEntry(): Name | undefined {
    if (this.#index >= this.#entries.length) {
      this.#entries = this.#inodes.readEntries(this.handle)
      this.#index = 0
    }
    const entry = this.#entries[this.#index++]
    if (entry) this.#position = entry.next
    return entry?.name
  }

  /** Lets go of the handle and of what was read ahead. */
  park(): void {
    if (this.open !== undefined) this.#inodes.close(this.open)
    this.open = undefined
    this.#entries = []
    this.#index = 0
  }

  /** Takes the directory up again where it was left, if `handle` really is that directory. */
  resume(handle: Handle): boolean {
    const stat = this.#inodes.stat(handle)
    if (stat.inode !== this.#stat.inode || stat.born !== this.#stat.born || stat.mountId !== this.#stat.mountId)
      return false
    if (this.#position !== 0n) this.#inodes.seekEntries(handle, this.#position)
    this.open = handle
    return true
  }
}

/** The directories from the root to where a walk is. Far ones are parked: closed, to be found again by "..". */
export class Frames {
  readonly #inodes: Inodes
  readonly #stack: Frame[]

  constructor(inodes: Inodes, root: Handle, stat: Stat) {
    this.#inodes = inodes
    this.#stack = [new Frame(inodes, root, stat, new Uint8Array())]
  }

  top(): Frame | undefined {
    return this.#stack.at(-1)
  }

  push(handle: Handle, stat: Stat, name: Name): void {
    this.#stack.push(new Frame(this.#inodes, handle, stat, name))
    // The root (index 0) stays open: everything can be found again from it.
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

  /** The directory below was moved away: its parents are looked for from the root, each checked for being the one left. */
  #descend(): Uint8Array[] {
    for (let depth = 1; depth < this.#stack.length; depth++) {
      const frame = this.#stack[depth]
      const parent = this.#stack[depth - 1]
      if (!frame || !parent || frame.open !== undefined) continue
      const handle = this.#tryOpen(parent.handle, frame.name)
      if (handle === undefined || !this.#resume(frame, handle)) {
        const path = this.#pathTo(depth + 1)
        for (const dropped of this.#stack.splice(depth)) dropped.park()
        return [path]
      }
    }
    return []
  }

  #tryOpen(parent: Handle, name: Name): Handle | undefined {
    try {
      return this.#inodes.openDirectory(parent, name)
    } catch {
      return undefined
    }
  }

  #resume(frame: Frame, handle: Handle): boolean {
    if (frame.resume(handle)) return true
    this.#inodes.close(handle)
    return false
  }

  /** The path from the root to the top directory, or to an entry of it, as bytes: its end, where it is long. */
  path(entry?: Name): Uint8Array {
    return this.#pathTo(this.#stack.length, entry)
  }

  #pathTo(depth: number, entry?: Name): Uint8Array {
    const parts: Uint8Array[] = entry ? [entry] : []
    let length = 0
    for (let index = depth - 1; index > 0; index--) {
      const name = this.#stack[index]?.name ?? new Uint8Array()
      length += name.length + 1
      if (length > LONGEST_PATH) {
        parts.unshift(CUT)
        break
      }
      parts.unshift(name)
    }
    return Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [SLASH, part])))
  }

  close(): void {
    for (const frame of this.#stack) frame.park()
  }
}
