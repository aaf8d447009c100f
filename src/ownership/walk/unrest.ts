import { Dirents } from '../../host/dirents.ts'
import type { Handle, Inodes } from '../../host/host.ts'
import { quoted, Refusal } from '../../refusal/refusal.ts'
import { ignoreVanished } from './entry.ts'

/** How long a walk goes on, whatever moves: of 10 s some are left for the batches under way and the journal's end. */
const PATIENCE_MS = 6000
/** So many that were made or moved for each that was in its place: a walk takes three times its quiet time at most. */
const SHARE = 2
/** A slow server answers a few questions in that time: they show nothing. */
const FEW = 1000
/** Of a block of a directory that changes so many are looked at. */
const SAMPLE = 32
// ctime comes from a clock that ticks every few milliseconds.
const SLACK_MS = 100

/** A directory as it is read. */
export interface Read {
  handle: Handle
  path: Uint8Array
  /** ctime when it was last looked at, milliseconds. */
  changed: number
  /** It was made or moved since the walk began, or one above it was. */
  isMoved: boolean
  /** Entries that were met, but are to be read again. */
  again: number
}

/**
 * Tells whether a walk can end. What is in its place since the walk began is met once, so there is an end to it. What is
 * made or moved meanwhile can be met for ever: entries whose ctime, which no user can set, and whose directory's are of
 * the time since the walk began, and all below such a directory.
 */
export class Unrest {
  readonly #patience: number
  readonly #began = performance.now()
  readonly #from = Date.now() - SLACK_MS
  #inPlace = 0
  #moved = 0
  #last: Uint8Array | undefined

  /** @param patience milliseconds */
  constructor(patience = PATIENCE_MS) {
    this.#patience = patience
  }

  /** Whether a ctime is of the time since the walk began: one that is yet to come says nothing of what was done now. */
  isRecent(changed: number): boolean {
    return changed >= this.#from && changed <= Date.now() + SLACK_MS
  }

  /** Entries that were read from a directory and are to be visited. */
  met(inodes: Inodes, read: Read, block: Dirents): void {
    const count = Math.max(0, block.rest - read.again)
    read.again = 0
    const share = read.isMoved ? 1 : this.isRecent(read.changed) ? this.#recentOf(inodes, read, block) : 0
    const moved = Math.round(share * count)
    this.#inPlace += count - moved
    if (moved > 0) this.moved(moved, read.path)
  }

  /** Work that a tree at rest does not make. @param path where */
  moved(count: number, path: Uint8Array): void {
    this.#moved += count
    this.#last = path
  }

  /** Which share of a block is recent, by a sample that nobody can foresee. */
  #recentOf(inodes: Inodes, { handle }: Read, { bytes }: Dirents): number {
    const entries = new Dirents(bytes)
    const step = Math.max(1, entries.rest / SAMPLE)
    let [looked, recent] = [0, 0]
    let next = Math.random() * step
    for (let at = 0; entries.next(); at++) {
      if (at < Math.floor(next)) continue
      next += step
      looked++
      const changed = ignoreVanished(() => inodes.lookEntry(handle, entries.name).changed)
      if (changed === undefined || this.isRecent(changed)) recent++
    }
    return looked === 0 ? 0 : recent / looked
  }

  /** @throws {Refusal} when it is time to give up */
  check(): void {
    if (this.#moved <= SHARE * this.#inPlace + FEW) return
    if (performance.now() - this.#began < this.#patience) return
    throw new Refusal(
      `the volume changes faster than it can be walked: ${this.#moved} entries were made or moved since the walk began, and ${this.#inPlace} were in their places; ` +
        `the last ones were in directory ${textOf(this.#last)}: stop the programs that do this, then try again (what was changed is recorded, and the next call goes on from there)`,
    )
  }
}

/** A path as messages show it. */
export function textOf(path: Uint8Array | undefined): string {
  return quoted(Buffer.from(path ?? []).toString() || '.')
}
