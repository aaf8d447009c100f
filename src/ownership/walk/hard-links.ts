import { NameSet } from './name-set.ts'

/** An inode as it was met under one of its names. */
export interface Sighting {
  /** See keyOf. */
  key: string
  links: number
  /** ctime, and when it was read; milliseconds. */
  changed: number
  at: number
  /** Tells the name from all others of the volume: see nameNumber. */
  name: number
  path: Uint8Array
}

/** Under the first: what was recorded is put back, and a second name says nothing new. */
export class FirstNames {
  readonly #met = new Set<string>()

  addName({ key }: Sighting): boolean {
    return this.#met.size < this.#met.add(key).size
  }

  outside(): [] {
    return []
  }
}

// Before Linux 6.13 file times tick with the timer, every 10 ms at most: a rename within the same tick would not show.
const TICKS_MS = 20

/**
 * An inode with more links than were seen in the volume may be a file of somebody else's too. It may be changed at the
 * last of its names, when all have been seen inside. What counts is different names: a directory that is moved ahead of
 * the walk shows the same ones again. A rename of a name itself moves ctime, and the count starts anew; a ctime so
 * recent that the next rename might not move it is not counted on.
 */
export class HardLinks {
  readonly #seen = new Map<string, { names: NameSet; changed: number; path: Uint8Array }>()

  /** @returns whether this name completes the inode's links */
  addName({ key, links, changed, at, name, path }: Sighting): boolean {
    const known = this.#seen.get(key)
    const seen = known?.changed === changed ? known : { names: new NameSet(), changed, path }
    seen.path = path
    this.#seen.set(key, seen)
    if (at - changed > TICKS_MS) seen.names.add(name)
    if (seen.names.size < links) return false
    this.#seen.delete(key)
    return true
  }

  outside(): Uint8Array[] {
    return [...this.#seen.values()].map(({ path }) => path)
  }
}
