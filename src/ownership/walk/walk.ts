import type { Handle, Inodes, Name, Stat } from '../../host/host.ts'
import { type Held, hold } from '../inode/open-inode.ts'
import { isDirectory } from '../inode/policy.ts'
import { pathBelow } from './entry.ts'
import type { PackedFrames } from './frames.ts'
import { gone } from './gone.ts'
import { linkName } from './hard-links.ts'
import type { Ledger } from './ledger.ts'
import { type Link, Pipeline } from './pipeline.ts'
import { type LeftReason, leave, newReport, type WalkReport } from './report.ts'
import type { Task } from './task.ts'
import { isElsewhere, type Place, SELF, type Visitor, withRoom } from './traverse.ts'
import type { WalkSettings } from './walk-settings.ts'

const NONE = new Uint8Array()

/** One thread's walk: looks at inodes, and holds those that need more than a look. */
export class Walk implements Visitor {
  readonly report: WalkReport = newReport()
  readonly #inodes: Inodes
  readonly #task: Task
  readonly #pipeline: Pipeline
  readonly #settings: WalkSettings
  /** Where one inode needs a look the next one mostly does too: it is then opened at once, not looked up twice. */
  #expectsMore = false

  constructor(inodes: Inodes, task: Task, ledger: Ledger, settings: WalkSettings) {
    this.#inodes = inodes
    this.#task = task
    this.#pipeline = new Pipeline(inodes, task, ledger, this.report, settings)
    this.#settings = settings
  }

  entry(parent: Place, name: Name): boolean {
    if (!this.#expectsMore) {
      const stat = gone(() => this.#inodes.statEntry(parent.handle, name))
      if (stat === undefined) {
        this.left('gone or replaced during the walk', pathBelow(parent.path, name))
        return false
      }
      if (isDirectory(stat)) return true
      if (!this.#glance(stat, parent.path, name)) return false
    }
    const handle = this.#hold(parent.handle, name)
    if (handle === undefined) {
      this.left('gone or replaced during the walk', pathBelow(parent.path, name))
      return false
    }
    const stat = this.#inodes.stat(handle)
    const enters = isDirectory(stat)
    this.#expectsMore = !enters && this.#glance(stat, parent.path, name)
    if (this.#expectsMore) {
      const link = stat.links > 1 ? { name: linkName(parent, name), at: Date.now() } : undefined
      this.#collect(hold(this.#inodes, handle, stat, parent.handle, name), pathBelow(parent.path, name), link)
    } else this.#inodes.close(handle)
    return enters
  }

  directory(directory: Handle, path: Uint8Array): void {
    if (!this.#glance(this.#inodes.stat(directory), path, NONE)) return
    const handle = this.#hold(directory, SELF)
    // A directory that was removed has no "." any more.
    if (handle === undefined) {
      this.left('gone or replaced during the walk', path)
      return
    }
    this.#collect(hold(this.#inodes, handle, this.#inodes.stat(handle), directory, SELF), path)
  }

  #hold(parent: Handle, name: Name): Handle | undefined {
    try {
      return this.#inodes.openEntry(parent, name)
    } catch {
      return withRoom(this, () => gone(() => this.#inodes.openEntry(parent, name)))
    }
  }

  left(reason: LeftReason, path: Uint8Array): void {
    leave(this.report, reason, path)
  }

  stops(): boolean {
    return this.report.visited >= (this.#settings.stopAfter ?? Number.POSITIVE_INFINITY)
  }

  shares(): boolean {
    return this.#settings.others?.wantWork() ?? false
  }

  share(part: PackedFrames): void {
    this.#settings.others?.take(part)
  }

  relieve(): boolean {
    const any = !this.#pipeline.isEmpty()
    this.flush()
    return any
  }

  /** Whether the inode needs a look; counts it if not. */
  #glance(stat: Stat, above: Uint8Array, name: Name): boolean {
    if (isElsewhere(stat, this.#settings.inside)) {
      this.left('sub-mount', pathBelow(above, name))
      return false
    }
    const seen = this.#task.glance(stat)
    if (seen === 'look') return true
    this.report.visited++
    if (seen === 'right') this.report.alreadyRight++
    else if (seen !== 'passed') this.left(seen.leave, pathBelow(above, name))
    return false
  }

  #collect(held: Held, path: Uint8Array, link?: Link): void {
    this.report.visited++
    this.#pipeline.collect(held, path, link)
  }

  /** Records and makes all there is to change. */
  flush(): void {
    this.#pipeline.flush()
  }

  /** Lets go of what was not changed, on the way out after an error too. */
  close(): void {
    this.#pipeline.close()
  }
}
