import type { Handle, Inodes, Name, Stat } from '../host/host.ts'
import type { PackedFrames } from './frames.ts'
import { type Held, hold } from './held.ts'
import type { Ledger } from './ledger.ts'
import { pathBelow } from './path.ts'
import { Pipeline } from './pipeline.ts'
import { type LeftReason, leave, newReport, type WalkReport } from './report.ts'
import type { Task } from './task.ts'
import { gone, isDirectory, isElsewhere, SELF, type Visitor, withRoom } from './traverse.ts'
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
    this.#pipeline = new Pipeline(inodes, task, ledger, this.report, settings.onBatch)
    this.#settings = settings
  }

  entry(parent: Handle, name: Name, above: Uint8Array): boolean {
    if (!this.#expectsMore) {
      const stat = gone(() => this.#inodes.statEntry(parent, name))
      if (stat === undefined) {
        this.left('gone or replaced during the walk', pathBelow(above, name))
        return false
      }
      if (isDirectory(stat)) return true
      if (!this.#glance(stat, above, name)) return false
    }
    const handle = this.#hold(parent, name)
    if (handle === undefined) {
      this.left('gone or replaced during the walk', pathBelow(above, name))
      return false
    }
    const stat = this.#inodes.stat(handle)
    const enters = isDirectory(stat)
    this.#expectsMore = !enters && this.#glance(stat, above, name)
    if (this.#expectsMore) this.#collect(hold(this.#inodes, handle, stat, parent, name), pathBelow(above, name))
    else this.#inodes.close(handle)
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

  #collect(held: Held, path: Uint8Array): void {
    this.report.visited++
    this.#pipeline.collect(held, path)
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
