import type { Stat } from '../host/host.ts'

/**
 * An inode with more links than were seen in the volume may be a file of somebody else's too. It may be changed at the
 * last of its names, when all have been seen inside. A rename moves ctime: what was counted before may be the same name
 * again, so the count starts anew.
 */
export class HardLinks {
  readonly #seen = new Map<bigint, { names: number; changed: number; path: Uint8Array }>()

  /** Whether this name completes the inode's links. */
  completes(stat: Pick<Stat, 'inode' | 'links' | 'changed'>, path: Uint8Array): boolean {
    const known = this.#seen.get(stat.inode)
    const names = known?.changed === stat.changed ? known.names + 1 : 1
    this.#seen.set(stat.inode, { names, changed: stat.changed, path })
    if (names < stat.links) return false
    this.#seen.delete(stat.inode)
    return true
  }

  /** One path for each inode that has links outside what was walked. */
  outside(): Uint8Array[] {
    return [...this.#seen.values()].map(({ path }) => path)
  }
}
